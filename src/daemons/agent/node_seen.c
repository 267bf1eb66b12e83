// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/node_seen.h"

#include "k8s/condition.h"

#include <stdio.h>

void node_seen_done(struct node_seen *seen)
{
	json_decref(seen->labels);
	json_decref(seen->status);
	*seen = (struct node_seen){ 0 };
}

static void copy_version(char out[NODE_VERSION_BYTES], struct str text)
{
	size_t len = min_size(text.len, NODE_VERSION_BYTES - 1);
	for (size_t i = 0; i < len; i++) {
		bool is_plain = text.data[i] > ' ' && text.data[i] <= '~';
		out[i] = '?';
		if (is_plain)
			out[i] = text.data[i];
	}
	out[len] = '\0';
}

// Names of labels as managedFields has them: "f:nvidia.com/gpu.count".
static const json_t *owned_labels(const json_t *node)
{
	size_t i;
	json_t *entry;
	json_array_foreach(json_at(node, "metadata.managedFields"), i, entry)
	{
		if (!str_eq_c(json_text(entry, "manager"), NODE_FIELD_MANAGER) ||
		    !str_eq_c(json_text(entry, "operation"), "Apply"))
			continue;
		const json_t *fields = json_object_get(entry, "fieldsV1");
		return json_object_get(json_object_get(fields, "f:metadata"), "f:labels");
	}
	return NULL;
}

err_status node_seen_node(struct node_seen *seen, struct str body,
			  struct node_versions *ret_versions, struct err *err)
{
	AUTO(json_decrefp) json_t *node = NULL;
	err_status status = json_parse(body, &node, err);
	if (status != ERR_OK)
		return status;
	const char *key;
	json_t *unused;
	json_t *all = json_at(node, "metadata.labels"), *labels = json_object();
	json_object_foreach((json_t *)(uintptr_t)owned_labels(node), key, unused)
	{
		json_t *value = strlen(key) > 2 ? json_object_get(all, key + 2) : NULL;
		if (value != NULL)
			(void)json_object_set(labels, key + 2, value);
	}
	json_decref(seen->labels);
	seen->labels = labels;
	const json_t *annotations = json_at(node, "metadata.annotations");
	const json_t *toolkit = json_object_get(annotations, NODE_TOOLKIT_ANNOTATION);
	copy_version(ret_versions->kubelet, json_text(node, "status.nodeInfo.kubeletVersion"));
	copy_version(ret_versions->runtime,
		     json_text(node, "status.nodeInfo.containerRuntimeVersion"));
	copy_version(ret_versions->toolkit, str_of(json_string_value(toolkit)));
	return ERR_OK;
}

err_status node_seen_gpu_node(struct node_seen *seen, struct str body, struct err *err)
{
	AUTO(json_decrefp) json_t *object = NULL;
	err_status status = json_parse(body, &object, err);
	if (status != ERR_OK)
		return status;
	json_decref(seen->status);
	seen->status = json_incref(json_at(object, "status"));
	return ERR_OK;
}

bool node_seen_has_labels(const struct node_seen *seen, struct str body)
{
	AUTO(json_decrefp) json_t *wanted = NULL;
	return seen->labels != NULL && json_parse(body, &wanted, NULL) == ERR_OK &&
	       json_equal(json_at(wanted, "metadata.labels"), seen->labels) == 1;
}

bool node_seen_has_status(const struct node_seen *seen, struct str body)
{
	AUTO(json_decrefp) json_t *wanted = NULL;
	return seen->status != NULL && json_parse(body, &wanted, NULL) == ERR_OK &&
	       json_equal(json_at(wanted, "status"), seen->status) == 1;
}

int64_t node_seen_timestamp_s(const struct node_seen *seen)
{
	int64_t value = 0;
	const json_t *label = json_object_get(seen->labels, "nvidia.com/gfd.timestamp");
	bool is_good = str_to_i64(str_of(json_string_value(label)), &value) && value > 0;
	return is_good ? value : 0;
}

struct str node_seen_condition_t(const struct node_seen *seen, const char *type, bool is_true)
{
	const json_t *found = k8s_condition_find(json_at(seen->status, "conditions"), type);
	if (str_eq_c(json_text(found, "status"), is_true ? "True" : "False"))
		return json_text(found, "lastTransitionTime");
	return STR("");
}

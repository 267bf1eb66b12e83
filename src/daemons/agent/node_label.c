// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/node_label.h"

#include "base/json.h"
#include "k8s/watch.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

struct node_label {
	struct node_label_config config;
	char selector[400];
	struct watch *watch;
};

static void on_item(void *arg, const struct watch_item *item)
{
	struct node_label *label = arg;
	AUTO(json_decrefp) json_t *node = NULL;
	struct err err;
	if (item->event == WATCH_FAILED)
		log_err(LOG_WARN, "watch of the node's labels", item->err);
	if (item->event != WATCH_ADDED && item->event != WATCH_MODIFIED)
		return;
	if (json_parse(item->object, &node, &err) != ERR_OK) {
		log_err(LOG_WARN, "node is not understood", &err);
		return;
	}
	const json_t *labels = json_at(node, "metadata.labels");
	label->config.on_value(label->config.arg,
			       json_string_value(json_object_get(labels, label->config.label)));
}

err_status node_label_new(struct k8s_client *client, const struct node_label_config *config,
			  struct node_label **ret, struct err *err)
{
	struct node_label *label = calloc(1, sizeof *label);
	if (label == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the watch of the node");
	label->config = *config;
	(void)snprintf(label->selector, sizeof label->selector,
		       "fieldSelector=metadata.name%%3D%.253s", config->node);
	const struct watch_config watch = {
		.path = "/api/v1/nodes", .selector = label->selector, .fn = on_item, .arg = label
	};
	label->watch = watch_start(client, &watch);
	if (label->watch == NULL) {
		free(label);
		return err_set(err, ERR_LIMIT, "no memory for the watch of the node");
	}
	*ret = label;
	return ERR_OK;
}

void node_label_free(struct node_label *label)
{
	if (label == NULL)
		return;
	watch_stop(label->watch);
	free(label);
}

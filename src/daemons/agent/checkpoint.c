// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/checkpoint.h"

#include "base/json.h"

static bool visit_ids(const json_t *ids, struct checkpoint_row *row, checkpoint_row_fn *fn,
		      void *arg)
{
	if (!json_is_array(ids))
		return false;
	for (size_t i = 0; i < json_array_size(ids); i++) {
		const json_t *id = json_array_get(ids, i);
		if (!json_is_string(id))
			return false;
		row->id = (struct str){ json_string_value(id), json_string_length(id) };
		if (fn != NULL)
			fn(arg, row);
	}
	return true;
}

static bool visit_entry(json_t *entry, checkpoint_row_fn *fn, void *arg)
{
	struct checkpoint_row row = { .pod_uid = json_text(entry, "PodUID"),
				      .container = json_text(entry, "ContainerName"),
				      .resource = json_text(entry, "ResourceName") };
	json_t *ids = json_at(entry, "DeviceIDs");
	if (row.pod_uid.len == 0 || row.container.len == 0 || row.resource.len == 0)
		return false;
	if (ids == NULL)
		return true; // an entry without devices
	if (!json_is_object(ids))
		return visit_ids(ids, &row, fn, arg); // kubelets before 1.20
	const char *numa_node = NULL;
	json_t *list = NULL;
	json_object_foreach(ids, numa_node, list)
	{
		if (!json_is_null(list) && !visit_ids(list, &row, fn, arg))
			return false;
	}
	return true;
}

err_status checkpoint_read(struct str text, checkpoint_row_fn *fn, void *arg, struct err *err)
{
	AUTO(json_decrefp) json_t *root = NULL;
	struct err local;
	err = err == NULL ? &local : err;
	if (text.len > CHECKPOINT_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "checkpoint is larger than %d bytes",
			       CHECKPOINT_MAX_BYTES);
	if (json_parse(text, &root, err) != ERR_OK)
		return err_wrap(err, "checkpoint of the kubelet");
	json_t *entries = json_at(root, "Data.PodDeviceEntries");
	if (entries == NULL)
		return ERR_OK; // nobody holds anything
	if (!json_is_array(entries))
		return err_set(err, ERR_INVALID, "checkpoint of the kubelet: no list of entries");
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < json_array_size(entries); i++) {
			if (!visit_entry(json_array_get(entries, i), pass == 0 ? NULL : fn, arg))
				return err_set(err, ERR_INVALID,
					       "checkpoint of the kubelet: entry %zu is malformed",
					       i);
		}
	}
	return ERR_OK;
}

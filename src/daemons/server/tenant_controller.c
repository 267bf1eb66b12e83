// SPDX-License-Identifier: Apache-2.0
// Tenant -> namespace with its guards. Each pass looks at every part and applies what differs, so
// that what somebody changed or deleted comes back.
#include "daemons/server/controllers_state.h"
#include "daemons/server/progress.h"

#include "base/timefmt.h"

static void next_part(struct pass *pass);

// ---- the end of a pass: status

static void on_status(void *arg, const struct object_result *result)
{
	struct pass *pass = arg;
	bool is_fine = result->status == ERR_OK || result->status == ERR_NOT_FOUND;
	pass_end(pass, is_fine ? NULL : result->err);
}

static void write_status(struct pass *pass, bool is_ready, const char *reason, const char *message)
{
	char now[TIME_TEXT_BYTES];
	(void)time_format(world_wall_s(loop_world(pass->controllers->loop)), now);
	json_t *status = json_object(), *conditions = json_array();
	struct str name = json_text(pass->object, "metadata.name");
	put_text(status, "namespace", is_ready ? name : STR(""));
	json_t *generation = json_at(pass->object, "metadata.generation");
	if (generation != NULL)
		(void)json_object_set(status, "observedGeneration", generation);
	(void)json_array_append_new(conditions, condition_new("Ready", is_ready, reason, message));
	(void)json_object_set_new(status, "conditions", conditions);
	condition_stamp(status, pass->object, now);
	AUTO(json_decrefp) json_t *patch = progress_patch(pass->object, status);
	json_decref(status);
	if (patch == NULL) {
		pass_end(pass, NULL);
		return;
	}
	struct object_write write = { .kind = OBJECT_TENANT,
				      .name = name,
				      .body = patch,
				      .is_status = true,
				      .on_done = on_status,
				      .arg = pass };
	objects_patch(pass->controllers->objects, &write);
}

// ---- parts of the namespace

static void on_part(void *arg, const struct object_result *result)
{
	struct pass *pass = arg;
	if (result->status != ERR_OK) {
		pass_end(pass, result->err); // also while an old namespace of the name goes away
		return;
	}
	pass->part_i++;
	next_part(pass);
}

static void make_parts(struct pass *pass)
{
	manifest_tenant_parts(pass->object, &pass->controllers->migs, pass->parts);
	next_part(pass);
}

static void next_part(struct pass *pass)
{
	struct str tenant = json_text(pass->object, "metadata.name");
	struct objects *objects = pass->controllers->objects;
	for (; pass->part_i < MANIFEST_TENANT_PARTS; pass->part_i++) {
		struct manifest *part = &pass->parts[pass->part_i];
		json_t *actual = objects_find(objects, part->kind, tenant, str_of(part->name));
		if (actual != NULL && manifest_is_covered(part->body, actual))
			continue;
		struct object_write write = { .kind = part->kind,
					      .namespace_ = tenant,
					      .name = str_of(part->name),
					      .body = part->body,
					      .on_done = on_part,
					      .arg = pass };
		objects_apply(objects, &write);
		return;
	}
	write_status(pass, true, "Provisioned",
		     "namespace, quota, limits, roles and policies are set");
}

// ---- the namespace

static bool is_ours(const json_t *namespace_, struct str tenant)
{
	const json_t *label = json_object_get(json_at(namespace_, "metadata.labels"), LABEL_TENANT);
	return json_is_string(label) && str_eq_c(tenant, json_string_value(label));
}

static void on_namespace(void *arg, const struct object_result *result)
{
	struct pass *pass = arg;
	struct str tenant = json_text(pass->object, "metadata.name");
	json_t *cached =
		objects_find(pass->controllers->objects, OBJECT_NAMESPACE, STR(""), tenant);
	if (result->status == ERR_CONFLICT && cached == NULL) {
		// It was there before us: never taken over.
		write_status(pass, false, "NamespaceTaken",
			     "a namespace of this name exists and belongs to nobody here; delete "
			     "the tenant and choose another name");
		return;
	}
	if (result->status != ERR_OK && result->status != ERR_CONFLICT) {
		pass_end(pass, result->err);
		return;
	}
	make_parts(pass);
}

// An earlier namespace of the name is on its way out: what keeps it, in the words of Kubernetes.
static void wait_for_end(struct pass *pass, const json_t *namespace_)
{
	size_t i;
	json_t *condition;
	struct buf text = { .limit = 4096 };
	buf_printf(&text, "the namespace of this name is being deleted; the tenant follows");
	json_array_foreach(json_at(namespace_, "status.conditions"), i, condition)
	{
		if (str_eq_c(json_text(condition, "status"), "True"))
			buf_printf(&text, "; %s", json_cstr(condition, "message"));
	}
	write_status(pass, false, "NamespaceTerminating",
		     buf_ok(&text) ? text.data : "the namespace of this name is being deleted");
	buf_done(&text);
}

void tenant_reconcile(void *arg, struct str key)
{
	struct controllers *controllers = arg;
	struct pass *pass = pass_new(controllers, controllers->tenants, key);
	struct str none, name;
	pass_split(pass, &none, &name);
	json_t *tenant = objects_find(controllers->objects, OBJECT_TENANT, STR(""), name);
	if (tenant == NULL || json_at(tenant, "metadata.deletionTimestamp") != NULL ||
	    !objects_are_synced(controllers->objects)) {
		// Its namespace goes with it by the owner reference.
		pass_end(pass, NULL);
		return;
	}
	pass->object = json_incref(tenant);
	AUTO(json_decrefp) json_t *wanted = manifest_namespace(tenant);
	json_t *actual = objects_find(controllers->objects, OBJECT_NAMESPACE, STR(""), name);
	struct object_write write = { .kind = OBJECT_NAMESPACE,
				      .name = name,
				      .body = wanted,
				      .on_done = on_namespace,
				      .arg = pass };
	if (json_at(actual, "metadata.deletionTimestamp") != NULL) {
		wait_for_end(pass, actual);
	} else if (actual == NULL) {
		objects_create(controllers->objects, &write);
	} else if (!is_ours(actual, name) || !manifest_is_covered(wanted, actual)) {
		objects_apply(controllers->objects, &write);
	} else {
		make_parts(pass);
	}
}

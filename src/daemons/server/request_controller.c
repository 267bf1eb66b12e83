// SPDX-License-Identifier: Apache-2.0
// GPURequest -> Job -> status. The plan of each pass is made by progress_plan from the cache; here
// it is carried out.
#include "daemons/server/controllers_state.h"
#include "daemons/server/progress.h"

#include "base/timefmt.h"

// ---- carrying out

static void end_pass(struct pass *pass, const struct err *err)
{
	struct err later = pass->later;
	pass_end(pass, err == NULL && later.status != ERR_OK ? &later : err);
}

static void on_status(void *arg, const struct object_result *result)
{
	struct pass *pass = arg;
	bool is_fine = result->status == ERR_OK || result->status == ERR_NOT_FOUND;
	end_pass(pass, is_fine ? NULL : result->err);
}

// A request goes through half a dozen steps in a second, and what it waits for changes with every
// pod of others. Readers want its phase at once; the rest of each is written together.
static bool is_ripe(const struct pass *pass, const json_t *patch)
{
	static const uint64_t SETTLE_NS = UINT64_C(2000000000);
	const json_t *change = json_object_get(patch, "status");
	return json_object_get(change, "phase") != NULL ||
	       json_object_get(change, "jobUID") != NULL ||
	       workqueue_settled(pass->queue, str_of(pass->key), SETTLE_NS);
}

static void write_status(struct pass *pass)
{
	AUTO(json_decrefp)
	json_t *patch = pass->status == NULL ? NULL : progress_patch(pass->object, pass->status);
	if (patch == NULL || !is_ripe(pass, patch)) {
		end_pass(pass, NULL);
		return;
	}
	struct object_write write = { .kind = OBJECT_REQUEST,
				      .namespace_ = json_text(pass->object, "metadata.namespace"),
				      .name = json_text(pass->object, "metadata.name"),
				      .body = patch,
				      .is_status = true,
				      .on_done = on_status,
				      .arg = pass };
	objects_patch(pass->controllers->objects, &write);
}

// Says why there is no Job; the room in the quota stays reserved while it is tried again. A
// conflict is a foreign Job of that name, or our own that the watch has not told of yet: then the
// next pass finds it.
static void job_refused(struct pass *pass, const struct err *err)
{
	char now[TIME_TEXT_BYTES];
	(void)time_format(world_wall_s(loop_world(pass->controllers->loop)), now);
	bool is_final = err->status == ERR_INVALID;
	json_t *status = NULL;
	if (is_final)
		status = progress_refused(pass->object, true, "InvalidJob", err->text, now);
	else if (err->status == ERR_CONFLICT)
		status = progress_refused(
			pass->object, false, "NameTaken",
			"a Job of this name is in the namespace already; delete it, "
			"or cancel and choose another name",
			now);
	else if (err->status == ERR_DENIED)
		status = progress_refused(pass->object, false, "Refused", err->text, now);
	json_decref(pass->status);
	pass->status = status;
	if (!is_final)
		pass->later = *err;
	write_status(pass);
}

static void on_job_made(void *arg, const struct object_result *result)
{
	struct pass *pass = arg;
	if (result->status != ERR_OK) {
		job_refused(pass, result->err);
		return;
	}
	pass->controllers->jobs_created++;
	json_t *uid = json_at(result->object, "metadata.uid");
	if (uid != NULL && pass->status != NULL)
		(void)json_object_set(pass->status, "jobUID", uid);
	write_status(pass);
}

static void make_job(struct pass *pass)
{
	AUTO(json_decrefp) json_t *job = manifest_job(pass->object);
	struct object_write write = { .kind = OBJECT_JOB,
				      .namespace_ = json_text(pass->object, "metadata.namespace"),
				      .name = json_text(pass->object, "metadata.name"),
				      .body = job,
				      .on_done = on_job_made,
				      .arg = pass };
	objects_create(pass->controllers->objects, &write);
}

static void on_job_changed(void *arg, const struct object_result *result)
{
	struct pass *pass = arg;
	if (result->status == ERR_OK || result->status == ERR_NOT_FOUND)
		write_status(pass);
	else
		pass_end(pass, result->err);
}

static void delete_job(struct pass *pass)
{
	struct object_write write = { .kind = OBJECT_JOB,
				      .namespace_ = json_text(pass->object, "metadata.namespace"),
				      .name = json_text(pass->object, "metadata.name"),
				      .on_done = on_job_changed,
				      .arg = pass };
	objects_delete(pass->controllers->objects, &write);
}

// The Job controller makes no pod after this time, and leaves those that have ended: their logs
// can still be read.
static void end_job(struct pass *pass)
{
	AUTO(json_decrefp)
	json_t *patch = json_pack("{s:{s:i}}", "spec", "activeDeadlineSeconds", 1);
	struct object_write write = { .kind = OBJECT_JOB,
				      .namespace_ = json_text(pass->object, "metadata.namespace"),
				      .name = json_text(pass->object, "metadata.name"),
				      .body = patch,
				      .on_done = on_job_changed,
				      .arg = pass };
	objects_patch(pass->controllers->objects, &write);
}

static const json_t *newest_refusal(const struct objects *objects, const json_t *job)
{
	json_t *event;
	const json_t *newest = NULL;
	struct str uid = json_text(job, "metadata.uid");
	struct str namespace_ = json_text(job, "metadata.namespace");
	for (size_t i = 0;
	     job != NULL && objects_next_in(objects, OBJECT_EVENT, namespace_, &i, &event);) {
		if (str_eq(json_text(event, "involvedObject.uid"), uid) &&
		    (newest == NULL || str_cmp(json_text(event, "lastTimestamp"),
					       json_text(newest, "lastTimestamp")) > 0))
			newest = event;
	}
	return newest;
}

static struct progress plan_of(struct controllers *controllers, const json_t *request)
{
	char now[TIME_TEXT_BYTES];
	struct str tenant = json_text(request, "metadata.namespace");
	const json_t *owner = objects_find(controllers->objects, OBJECT_TENANT, STR(""), tenant);
	struct progress_input input = {
		.request = request,
		.job = view_request_job(controllers->objects, request),
		.tenant = owner,
		.now = time_format(world_wall_s(loop_world(controllers->loop)), now),
	};
	// What has ended stays as it ended; its pod would be looked for among all of the namespace.
	if (view_phase_is_end(view_request_phase(request)))
		return progress_plan(&input);
	input.pod = view_request_pod(controllers->objects, request);
	if (input.pod == NULL)
		input.refusal = newest_refusal(controllers->objects, input.job);
	char text[OBJECT_KEY_BYTES];
	input.is_admitted = map_find(controllers->admitted, controllers_key(request, text)) != NULL;
	return progress_plan(&input);
}

void request_reconcile(void *arg, struct str key)
{
	struct controllers *controllers = arg;
	struct pass *pass = pass_new(controllers, controllers->requests, key);
	struct str namespace_, name;
	pass_split(pass, &namespace_, &name);
	json_t *request = objects_find(controllers->objects, OBJECT_REQUEST, namespace_, name);
	if (request == NULL || json_at(request, "metadata.deletionTimestamp") != NULL ||
	    !objects_are_synced(controllers->objects)) {
		(void)map_remove(controllers->admitted, key);
		pass_end(pass, NULL); // its Job goes with it by the owner reference
		return;
	}
	pass->object = json_incref(request);
	struct progress plan = plan_of(controllers, request);
	pass->status = plan.status;
	if (view_request_holds(controllers->objects, request) ||
	    view_phase_is_end(view_request_phase(request)))
		(void)map_remove(controllers->admitted, key); // its own objects say so now
	switch (plan.act) {
	case PROGRESS_NONE: write_status(pass); return;
	case PROGRESS_CREATE_JOB: make_job(pass); return;
	case PROGRESS_DELETE_JOB: delete_job(pass); return;
	case PROGRESS_END_JOB: end_job(pass); return;
	}
}

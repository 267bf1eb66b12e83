// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/mig_apply.h"

#include "daemons/agent/mig_record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const uint64_t S = UINT64_C(1000000000);
static const uint64_t FENCE_S = 3;        // until what was just given out has shown
static const uint64_t FENCE_MAX_S = 60;   // of waiting for the kubelet's word
static const uint64_t ANSWER_MAX_S = 120; // of a change
static const uint64_t BUSY_AGAIN_S = 15;  // after a refusal because something is held
enum { CHANGES_MAX = 256, UNDO_FAILURES_MAX = 5 };

static bool has_place(const struct mig_shape *shape, uint32_t profile_id, uint32_t start)
{
	for (uint32_t i = 0; i < shape->count; i++) {
		if (shape->places[i].profile_id == profile_id && shape->places[i].start == start)
			return true;
	}
	return false;
}

// The instance that stands there and can be used; NULL: none.
static const struct mig_instance *instance_at(const struct mig_state *mig,
					      const struct mig_place *place)
{
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		const struct mig_instance *instance = &mig->instances[i];
		if (instance->uuid[0] != '\0' && instance->profile_id == place->profile_id &&
		    instance->start == place->start)
			return instance;
	}
	return NULL;
}

static struct mig_shape shape_of(const struct mig_state *mig)
{
	struct mig_shape shape = { .is_enabled = mig->is_enabled != 0 };
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		if (mig->instances[i].uuid[0] != '\0')
			shape.places[shape.count++] =
				(struct mig_place){ mig->instances[i].profile_id,
						    mig->instances[i].start };
	}
	return shape;
}

// One step from a state to a shape; false: it has the shape.
static bool next_change(const struct mig_state *mig, const struct mig_shape *shape,
			struct nvml_mig_change *ret, uint32_t *ret_instance_i)
{
	*ret_instance_i = MIG_WHOLE;
	for (uint32_t i = 0; i < mig->instance_count; i++) {
		const struct mig_instance *instance = &mig->instances[i];
		if (instance->uuid[0] != '\0' &&
		    has_place(shape, instance->profile_id, instance->start))
			continue;
		*ret = (struct nvml_mig_change){ .op = NVML_MIG_DESTROY, .a = instance->gi };
		*ret_instance_i = i;
		return true;
	}
	if ((mig->is_enabled != 0) != shape->is_enabled) {
		*ret = (struct nvml_mig_change){ .op = NVML_MIG_MODE,
						 .a = shape->is_enabled ? 1 : 0 };
		return true;
	}
	for (uint32_t i = 0; i < shape->count; i++) {
		if (instance_at(mig, &shape->places[i]) != NULL)
			continue;
		*ret = (struct nvml_mig_change){ .op = NVML_MIG_CREATE,
						 .a = shape->places[i].profile_id,
						 .b = shape->places[i].start };
		return true;
	}
	return false;
}

static err_status save(struct mig_apply *apply, struct err *err)
{
	AUTO(buf_done) struct buf text = { 0 };
	mig_record_put(&text, apply);
	return apply->io.save(apply->io.arg, buf_str(&text), err);
}

static void end(struct mig_apply *apply, mig_outcome outcome)
{
	struct err err;
	apply->phase = MIG_IDLE;
	apply->outcome = outcome;
	apply->is_waiting = false;
	apply->interrupts = outcome == MIG_SUCCESS ? 0 : apply->interrupts;
	// A restart that finds the record of a run that has ended undoes what is as it was.
	if (save(apply, &err) != ERR_OK && outcome == MIG_SUCCESS) {
		apply->outcome = MIG_FAILED;
		(void)snprintf(apply->reason, sizeof apply->reason,
			       "done, but a restart will undo it: %.200s", err.text);
	}
	apply->io.on_offer(apply->io.arg);
}

static void fail(struct mig_apply *apply, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void fail(struct mig_apply *apply, const char *fmt, ...)
{
	char why[MIG_REASON_BYTES];
	struct err err;
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(why, sizeof why, fmt, args);
	va_end(args);
	if (apply->phase == MIG_UNDOING) {
		if (++apply->failures < UNDO_FAILURES_MAX)
			return; // tried again
		char first[MIG_REASON_BYTES];
		memcpy(first, apply->reason, sizeof first);
		(void)snprintf(apply->reason, sizeof apply->reason,
			       "%.120s; it could not be undone: %.120s", first, why);
		end(apply, MIG_FAILED);
		return;
	}
	memcpy(apply->reason, why, sizeof apply->reason);
	if (apply->phase != MIG_CHANGING) {
		end(apply, MIG_FAILED); // nothing was touched
		return;
	}
	apply->phase = MIG_UNDOING;
	apply->failures = 0;
	apply->changes = 0;
	(void)save(apply, &err); // the record of the run says enough to undo it
}

void mig_apply_init(struct mig_apply *apply, const struct mig_apply_io *io)
{
	*apply = (struct mig_apply){ .io = *io };
}

void mig_apply_load(struct mig_apply *apply, struct str text)
{
	struct err err;
	if (!mig_record_read(text, apply) || apply->phase == MIG_IDLE)
		return;
	apply->phase = MIG_UNDOING;
	apply->interrupts++;
	(void)snprintf(apply->reason, sizeof apply->reason,
		       "interrupted by a restart of the agent");
	(void)save(apply, &err); // else the count of restarts is one too low
}

void mig_apply_want(struct mig_apply *apply, const char *name, const struct mig_goal *goals,
		    const struct mig_reserves *reserves)
{
	if (strcmp(apply->ran, name) != 0)
		apply->interrupts = 0;
	(void)snprintf(apply->name, sizeof apply->name, "%s", name);
	memcpy(apply->goals, goals, sizeof apply->goals);
	apply->reserves = *reserves;
	apply->is_due = true;
	apply->again_ns = 0;
}

void mig_apply_refuse(struct mig_apply *apply, const char *name, const char *reason)
{
	apply->is_due = false;
	apply->again_ns = 0;
	(void)snprintf(apply->name, sizeof apply->name, "%s", name);
	if (apply->phase != MIG_IDLE)
		return; // it ends by itself, as what it was begun for
	(void)snprintf(apply->ran, sizeof apply->ran, "%s", name);
	(void)snprintf(apply->reason, sizeof apply->reason, "%s", reason);
	apply->outcome = name[0] == '\0' ? MIG_NONE : MIG_FAILED;
	apply->io.on_offer(apply->io.arg);
}

// Marks the instances that must stay: held ones, and of each reservation as many as it has; those
// that are held first, then in order.
static err_status mark_kept(const struct mig_apply *apply, const struct monitor_gpu *gpus,
			    uint32_t count, bool kept[GPU_MAX][MIG_INSTANCES_MAX], struct err *err)
{
	bool is_held[GPU_MAX][MIG_INSTANCES_MAX] = { { false } };
	for (uint32_t slot = 0; slot < count; slot++) {
		for (uint32_t i = 0; i < gpus[slot].mig.instance_count; i++)
			kept[slot][i] = is_held[slot][i] =
				apply->io.is_held(apply->io.arg, slot, i);
	}
	for (size_t r = 0; r < apply->reserves.count; r++) {
		const struct mig_reserve *reserve = &apply->reserves.items[r];
		uint32_t left = reserve->count, planned = 0;
		for (uint32_t slot = 0; slot < count; slot++) {
			const struct mig_state *mig = &gpus[slot].mig;
			const struct mig_profile *profile =
				mig_profile_find(mig, str_of(reserve->profile));
			if (profile != NULL && apply->goals[slot].is_set)
				planned += apply->goals[slot].want.counts[profile - mig->profiles];
		}
		for (int pass = 0; pass < 2; pass++) {
			for (uint32_t slot = 0; slot < count; slot++) {
				const struct mig_state *mig = &gpus[slot].mig;
				for (uint32_t i = 0; left > 0 && i < mig->instance_count; i++) {
					bool is_one = strcmp(mig->instances[i].profile,
							     reserve->profile) == 0 &&
						      is_held[slot][i] == (pass == 0);
					kept[slot][i] = kept[slot][i] || is_one;
					left -= is_one ? 1 : 0;
					planned += is_one && !apply->goals[slot].is_set ? 1 : 0;
				}
			}
		}
		if (planned < reserve->count)
			return err_set(err, ERR_CONFLICT,
				       "%" PRIu32
				       " x %s are reserved for %s, the layout has %" PRIu32,
				       reserve->count, reserve->profile, reserve->tenant, planned);
	}
	return ERR_OK;
}

static err_status plan_gpu(const struct mig_apply *apply, const struct monitor_gpu *gpu,
			   uint32_t slot, const bool *is_kept, struct mig_run_gpu *ret,
			   struct err *err)
{
	const struct mig_goal *goal = &apply->goals[slot];
	struct mig_run_gpu run = { .before = shape_of(&gpu->mig),
				   .target = { .is_enabled = goal->is_enabled } };
	struct mig_plan plan;
	bool is_mode = (gpu->mig.is_enabled != 0) != goal->is_enabled;
	memcpy(run.uuid, gpu->info.uuid, sizeof run.uuid);
	if (!health_is_offered(&gpu->health))
		return err_set(err, ERR_UNAVAILABLE, "it is not healthy: %.100s",
			       gpu->health.reason);
	if (is_mode && apply->io.is_held(apply->io.arg, slot, MIG_WHOLE))
		return err_set(err, ERR_CONFLICT, "it is in use, and its MIG mode would change");
	if (gpu->mig.has_places == 0)
		return err_set(err, ERR_DENIED,
			       "the driver does not let GPU instances be listed; the agent needs "
			       "CAP_SYS_ADMIN");
	struct mig_state now = gpu->mig;
	if (!goal->is_enabled)
		now.instance_count = 0;
	if (mig_plan_make(&now, is_kept, &goal->want, &plan, err) != ERR_OK)
		return err->status;
	if (goal->is_enabled)
		run.target = run.before;
	run.target.is_enabled = goal->is_enabled;
	for (size_t i = 0; i < plan.count; i++) {
		const struct mig_step *step = &plan.steps[i];
		uint32_t id = gpu->mig.profiles[step->profile_i].id;
		for (uint32_t j = 0; !step->is_create && j < run.target.count; j++) {
			struct mig_place *place = &run.target.places[j];
			if (place->profile_id != id || place->start != step->start)
				continue;
			*place = run.target.places[--run.target.count];
			break;
		}
		if (step->is_create)
			run.target.places[run.target.count++] =
				(struct mig_place){ id, step->start };
	}
	*ret = run;
	return ERR_OK;
}

// Plans all GPUs; those that have their shape already are no part of the run.
static err_status plan(struct mig_apply *apply, const struct monitor_gpu *gpus, uint32_t count,
		       struct err *err)
{
	bool kept[GPU_MAX][MIG_INSTANCES_MAX] = { { false } };
	apply->gpu_count = 0;
	if (mark_kept(apply, gpus, count, kept, err) != ERR_OK)
		return err->status;
	for (uint32_t slot = 0; slot < count; slot++) {
		struct mig_run_gpu *run = &apply->gpus[apply->gpu_count];
		struct nvml_mig_change change;
		uint32_t i = 0;
		if (!gpus[slot].is_known || !apply->goals[slot].is_set)
			continue;
		if (plan_gpu(apply, &gpus[slot], slot, kept[slot], run, err) != ERR_OK)
			return err_wrap(err, "GPU %" PRIu32, gpus[slot].info.index);
		apply->gpu_count += next_change(&gpus[slot].mig, &run->target, &change, &i);
	}
	return ERR_OK;
}

static void start(struct mig_apply *apply, const struct monitor_gpu *gpus, uint32_t count,
		  uint64_t now_ns)
{
	struct err err;
	bool is_retry = apply->again_ns != 0;
	apply->is_due = false;
	apply->again_ns = 0;
	memcpy(apply->ran, apply->name, sizeof apply->ran);
	if (apply->interrupts >= MIG_INTERRUPTS_MAX) {
		fail(apply, "interrupted %" PRIu32 " times; it is not tried again",
		     apply->interrupts);
		return;
	}
	err_status status = plan(apply, gpus, count, &err);
	if (status != ERR_OK) {
		bool is_same = is_retry && strcmp(apply->reason, err.text) == 0;
		bool may_change = status == ERR_CONFLICT || status == ERR_UNAVAILABLE;
		apply->again_ns = may_change ? now_ns + BUSY_AGAIN_S * S : 0;
		if (!is_same)
			fail(apply, "%s", err.text);
		return;
	}
	apply->reason[0] = '\0';
	apply->changes = apply->failures = 0;
	if (apply->gpu_count == 0) {
		end(apply, MIG_SUCCESS);
		return;
	}
	apply->phase = MIG_FENCING;
	apply->until_ns = now_ns + FENCE_S * S;
	if (save(apply, &err) != ERR_OK) {
		fail(apply, "what was before cannot be kept: %s", err.text);
		return;
	}
	apply->io.on_offer(apply->io.arg);
}

bool mig_apply_is_met(const struct mig_apply *apply, const struct monitor_gpu *gpus, uint32_t count)
{
	for (uint32_t slot = 0; slot < count; slot++) {
		const struct mig_goal *goal = &apply->goals[slot];
		const struct mig_state *mig = &gpus[slot].mig;
		struct mig_want has = { { 0 } };
		if (!gpus[slot].is_known || !goal->is_set)
			continue;
		for (uint32_t i = 0; i < mig->instance_count; i++) {
			uint32_t profile_i = mig_profile_of(mig, &mig->instances[i]);
			if (profile_i < mig->profile_count && mig->instances[i].uuid[0] != '\0')
				has.counts[profile_i]++;
		}
		if ((mig->is_enabled != 0) != goal->is_enabled ||
		    memcmp(&has, &goal->want, sizeof has) != 0)
			return false;
	}
	return true;
}

static uint32_t slot_of(const struct monitor_gpu *gpus, uint32_t count, const char *uuid)
{
	uint32_t slot = 0;
	while (slot < count && (!gpus[slot].is_known || strcmp(gpus[slot].info.uuid, uuid) != 0))
		slot++;
	return slot;
}

// Whether a pod holds what a change takes away.
static bool takes_held(const struct mig_apply *apply, uint32_t slot,
		       const struct nvml_mig_change *change, uint32_t instance_i)
{
	if (change->op == NVML_MIG_CREATE)
		return false;
	return apply->io.is_held(apply->io.arg, slot, instance_i);
}

// The fence has stood long enough: has anybody got through?
static void check_fence(struct mig_apply *apply, const struct monitor_gpu *gpus, uint32_t count,
			uint64_t now_ns)
{
	if (now_ns < apply->until_ns)
		return;
	if (!apply->io.knows_holders(apply->io.arg)) {
		if (now_ns > apply->until_ns + (FENCE_MAX_S - FENCE_S) * S)
			fail(apply, "the kubelet does not say who holds what");
		return;
	}
	for (uint32_t i = 0; i < apply->gpu_count; i++) {
		const struct mig_run_gpu *run = &apply->gpus[i];
		uint32_t slot = slot_of(gpus, count, run->uuid);
		if (slot == count) {
			fail(apply, "GPU %s has gone", run->uuid);
			return;
		}
		const struct mig_state *mig = &gpus[slot].mig;
		bool is_held = run->before.is_enabled != run->target.is_enabled &&
			       apply->io.is_held(apply->io.arg, slot, MIG_WHOLE);
		for (uint32_t j = 0; j < mig->instance_count; j++) {
			bool stays = has_place(&run->target, mig->instances[j].profile_id,
					       mig->instances[j].start);
			is_held = is_held || (!stays && apply->io.is_held(apply->io.arg, slot, j));
		}
		if (!is_held)
			continue;
		apply->again_ns = now_ns + BUSY_AGAIN_S * S;
		fail(apply, "GPU %" PRIu32 " came into use meanwhile", gpus[slot].info.index);
		return;
	}
	apply->phase = MIG_CHANGING;
}

// Asks for the next change; false: all GPUs have their shape.
static bool change_next(struct mig_apply *apply, const struct monitor_gpu *gpus, uint32_t count,
			uint64_t now_ns)
{
	for (uint32_t i = 0; i < apply->gpu_count; i++) {
		const struct mig_run_gpu *run = &apply->gpus[i];
		const struct mig_shape *shape = apply->phase == MIG_UNDOING ? &run->before
									    : &run->target;
		struct nvml_mig_change change;
		uint32_t slot = slot_of(gpus, count, run->uuid), instance_i = 0;
		if (slot == count) {
			fail(apply, "GPU %s has gone", run->uuid);
			return true;
		}
		if (!next_change(&gpus[slot].mig, shape, &change, &instance_i))
			continue;
		if (takes_held(apply, slot, &change, instance_i)) {
			fail(apply, "GPU %" PRIu32 " came into use meanwhile",
			     gpus[slot].info.index);
			return true;
		}
		if (++apply->changes > CHANGES_MAX) {
			fail(apply, "GPU %" PRIu32 " does not take its shape",
			     gpus[slot].info.index);
			return true;
		}
		apply->is_waiting = true;
		apply->until_ns = now_ns + ANSWER_MAX_S * S;
		apply->io.change(apply->io.arg, slot, &change);
		return true;
	}
	return false;
}

void mig_apply_changed(struct mig_apply *apply, int32_t status, const char *text)
{
	if (!apply->is_waiting)
		return; // of a life before, or too late
	apply->is_waiting = false;
	if (status != 0)
		fail(apply, "%s", text[0] == '\0' ? "the driver refuses a change" : text);
}

static void end_of_changes(struct mig_apply *apply)
{
	if (apply->phase == MIG_CHANGING) {
		end(apply, MIG_SUCCESS);
		return;
	}
	size_t len = strlen(apply->reason);
	(void)snprintf(apply->reason + len, sizeof apply->reason - len, "; all is as it was");
	end(apply, MIG_FAILED);
}

uint64_t mig_apply_step(struct mig_apply *apply, const struct monitor_gpu *gpus, uint32_t count,
			uint64_t now_ns)
{
	bool is_again = apply->again_ns != 0 && now_ns >= apply->again_ns;
	if (apply->phase == MIG_IDLE && (apply->is_due || is_again))
		start(apply, gpus, count, now_ns);
	if (apply->phase == MIG_FENCING)
		check_fence(apply, gpus, count, now_ns);
	if (apply->is_waiting && now_ns > apply->until_ns) {
		apply->is_waiting = false;
		fail(apply, "the driver did not answer");
	}
	while ((apply->phase == MIG_CHANGING || apply->phase == MIG_UNDOING) &&
	       !apply->is_waiting) {
		mig_phase phase = apply->phase;
		uint32_t failures = apply->failures;
		if (!change_next(apply, gpus, count, now_ns))
			end_of_changes(apply);
		if (apply->phase == phase && apply->failures > failures)
			return S; // an undo that failed is tried again, not at once
	}
	if (apply->phase == MIG_IDLE)
		return apply->is_due ? 1 : apply->again_ns > now_ns ? apply->again_ns - now_ns : 0;
	return S / 2;
}

static const struct mig_run_gpu *run_of(const struct mig_apply *apply, const char *uuid)
{
	for (uint32_t i = 0; apply->phase != MIG_IDLE && i < apply->gpu_count; i++) {
		if (strcmp(apply->gpus[i].uuid, uuid) == 0)
			return &apply->gpus[i];
	}
	return NULL;
}

bool mig_apply_holds_back(const struct mig_apply *apply, const struct monitor_gpu *gpu,
			  uint32_t instance_i)
{
	const struct mig_run_gpu *run = run_of(apply, gpu->info.uuid);
	if (run == NULL)
		return false;
	if (instance_i == MIG_WHOLE)
		return run->before.is_enabled != run->target.is_enabled;
	const struct mig_instance *instance = &gpu->mig.instances[instance_i];
	return !has_place(&run->before, instance->profile_id, instance->start) ||
	       !has_place(&run->target, instance->profile_id, instance->start);
}

const char *mig_apply_state(const struct mig_apply *apply)
{
	if (apply->phase != MIG_IDLE || apply->is_due)
		return "pending";
	switch (apply->outcome) {
	case MIG_NONE: return "";
	case MIG_SUCCESS: return "success";
	case MIG_FAILED: return "failed";
	}
	return "";
}

// SPDX-License-Identifier: Apache-2.0
#include "rig.h"

#include "base/yaml.h"
#include "feed/feed_claim.h"
#include "feed/feed_queue.h"
#include "feed/feed_window.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void rig_init(struct rig *rig)
{
	*rig = (struct rig){ .sched = sched_new(0, 0), .arena = arena_new(256 << 20) };
}

void rig_done(struct rig *rig)
{
	const char *broken = sched_check(rig->sched);
	if (broken != NULL) {
		fprintf(stderr, "broken: %s\n", broken);
		abort();
	}
	sched_free(rig->sched);
	arena_free(rig->arena);
}

static void must(bool good, const char *what, const struct err *err)
{
	if (good)
		return;
	fprintf(stderr, "rig: %s: %s\n", what, err == NULL ? "" : err->text);
	abort();
}

static void put_node(struct rig *rig, const json_t *value)
{
	struct kobj_node node;
	struct sched_node_in in;
	struct err err = { 0 };
	must(kobj_from_json(rig->arena, &KOBJ_NODE, value, NULL, &node, &err) == ERR_OK, "node",
	     &err);
	must(feed_node(rig->arena, &node, &in), "node", NULL);
	sched_node_set(rig->sched, &in);
}

static void put_gpu_node(struct rig *rig, const json_t *value)
{
	struct kobj_gpu_node node;
	struct sched_device_in *devices;
	size_t count;
	struct err err = { 0 };
	must(kobj_from_json(rig->arena, &KOBJ_GPU_NODE, value, NULL, &node, &err) == ERR_OK,
	     "GPUNode", &err);
	must(feed_devices(rig->arena, &node, &devices, &count), "GPUNode", NULL);
	sched_devices_set(rig->sched, node.meta.name, devices, count);
}

static void put_namespace(struct rig *rig, const json_t *value)
{
	struct kobj_namespace space;
	struct err err = { 0 };
	must(kobj_from_json(rig->arena, &KOBJ_NAMESPACE, value, NULL, &space, &err) == ERR_OK,
	     "Namespace", &err);
	struct sched_labels labels = feed_labels(&space.meta.labels);
	sched_namespace_set(rig->sched, space.meta.name, &labels);
}

void rig_read_pod(struct rig *rig, const json_t *value, struct sched_pod_in *ret_in)
{
	struct kobj_pod *pod = ARENA_NEW(rig->arena, struct kobj_pod);
	struct kobj_unknowns unknowns;
	struct err err = { 0 };
	must(pod != NULL, "memory", NULL);
	must(kobj_from_json(rig->arena, &KOBJ_POD, value, &unknowns, pod, &err) == ERR_OK, "pod",
	     &err);
	if (pod->meta.namespace_.len == 0)
		pod->meta.namespace_ = STR("default");
	if (pod->meta.uid.len == 0)
		pod->meta.uid = pod->meta.name;
	if (pod->spec.scheduler_name.len == 0)
		pod->spec.scheduler_name = STR("gpuaas");
	must(feed_pod(rig->arena, pod, &unknowns, STR("gpuaas"), ret_in), "pod", NULL);
	ret_in->stay.checkpoint_ms = 1000 * feed_checkpoint_s(pod);
	ret_in->bound_ms = 1000 * feed_bound_s(pod);
	struct str plan = kobj_pairs_get(&pod->meta.annotations, STR(FEED_PLAN_ANNOTATION));
	struct str *uuids = NULL;
	if (plan.data != NULL && feed_plan_read(rig->arena, plan, &uuids, &ret_in->device_count))
		ret_in->device_uuids = uuids;
	struct sched_hold *holds = NULL;
	if (plan.data != NULL && feed_plan_holds(rig->arena, plan, &holds, &ret_in->hold_count))
		ret_in->holds = holds;
}

static void put_pod(struct rig *rig, const json_t *value)
{
	struct sched_pod_in in;
	rig_read_pod(rig, value, &in);
	sched_pod_set(rig->sched, &in);
}

static void put_tenant(struct rig *rig, const json_t *value)
{
	struct sched_queue_in in;
	if (feed_queue(rig->arena, value, 0, &in))
		sched_queue_set(rig->sched, &in);
	else
		sched_queue_remove(rig->sched, json_text(value, "metadata.name"));
	struct sched_window_in windows[FEED_WINDOWS_MAX];
	size_t count = feed_windows(value, windows);
	sched_windows_set(rig->sched, json_text(value, "metadata.name"), windows, count);
}

static bool put_storage(struct rig *rig, struct str kind, const json_t *value)
{
	struct err err = { 0 };
	struct sched_storage_in in;
	for (int i = 0; i < SCHED_STORAGES; i++) {
		const struct feed_storage *feed = &FEED_STORAGES[i];
		if (!str_eq_c(kind, feed->kind))
			continue;
		void *object = arena_alloc(rig->arena, feed->table->size_bytes);
		must(kobj_from_json(rig->arena, feed->table, value, NULL, object, &err) == ERR_OK,
		     feed->kind, &err);
		must(feed->read(rig->arena, object, &in), feed->kind, NULL);
		sched_storage_set(rig->sched, &in);
		return true;
	}
	return false;
}

static bool put_group(struct rig *rig, struct str kind, const json_t *value)
{
	struct err err = { 0 };
	struct sched_gang_part part;
	union feed_group_object object;
	const struct feed_group *group = feed_group_find(json_text(value, "apiVersion"), kind);
	if (group == NULL)
		return false;
	must(kobj_from_json(rig->arena, group->table, value, NULL, &object, &err) == ERR_OK,
	     group->kind, &err);
	must(group->read(rig->arena, &object, &part), group->kind, NULL);
	if (part.namespace_.len == 0)
		part.namespace_ = STR("default");
	if (part.name.len == 0)
		sched_gang_part_remove(rig->sched, part.key);
	else
		sched_gang_part_set(rig->sched, &part);
	return true;
}

static bool put_claim(struct rig *rig, struct str kind, const json_t *value)
{
	for (int i = 0; i < SCHED_CLAIM_KINDS; i++) {
		if (!str_eq_c(kind, FEED_CLAIM_KINDS[i].kind))
			continue;
		struct sched_claim_object *object = feed_claim_object((sched_claim_kind)i, value);
		must(object != NULL, FEED_CLAIM_KINDS[i].kind, NULL);
		sched_claim_object_set(rig->sched, object);
		return true;
	}
	return false;
}

void rig_putf(struct rig *rig, const char *fmt, ...)
{
	char yaml[4096];
	va_list args;
	va_start(args, fmt);
	int len = vsnprintf(yaml, sizeof yaml, fmt, args);
	va_end(args);
	ASSERT(len >= 0 && len < (int)sizeof yaml);
	rig_put(rig, yaml);
}

void rig_put_object(struct rig *rig, const json_t *value)
{
	struct str kind = json_text(value, "kind");
	if (str_eq_c(kind, "Node"))
		put_node(rig, value);
	else if (str_eq_c(kind, "GPUNode"))
		put_gpu_node(rig, value);
	else if (str_eq_c(kind, "Namespace"))
		put_namespace(rig, value);
	else if (str_eq_c(kind, "Tenant"))
		put_tenant(rig, value);
	else if (!put_storage(rig, kind, value) && !put_group(rig, kind, value) &&
		 !put_claim(rig, kind, value))
		put_pod(rig, value);
}

void rig_put(struct rig *rig, const char *yaml)
{
	AUTO(json_decrefp) json_t *documents = NULL;
	struct err err = { 0 };
	must(yaml_parse_documents(str_of(yaml), &documents, &err) == ERR_OK, "yaml", &err);
	for (size_t i = 0; i < json_array_size(documents); i++)
		rig_put_object(rig, json_array_get(documents, i));
}

void rig_remove_pod(struct rig *rig, const char *uid) { sched_pod_remove(rig->sched, str_of(uid)); }

static void put_facts(struct rig *rig, const struct sched_decision *decision, struct buf *out)
{
	for (size_t i = 0; i < decision->facts->count; i++) {
		struct sched_reason reason =
			sched_fact_text(rig->sched, decision->namespace_, decision->name,
					&decision->facts->items[i], rig->arena);
		buf_printf(out, " %s:%u", reason.code, reason.nodes);
		if (reason.need.len > 0)
			buf_printf(out, "(" STR_FMT "/" STR_FMT ")", STR_ARG(reason.need),
				   STR_ARG(reason.have));
	}
}

const char *rig_next(struct rig *rig)
{
	AUTO(buf_done) struct buf out = { .limit = sizeof rig->line - 1 };
	if (!sched_next(rig->sched, rig->now_ms, &rig->decision))
		return "-";
	const struct sched_decision decision = rig->decision;
	static const char *const VERBS[] = { "bind", "wait", "refuse", "nominate", "evict" };
	buf_printf(&out, "%s " STR_FMT, VERBS[decision.verb], STR_ARG(decision.name));
	if (decision.verb == SCHED_BIND) {
		buf_printf(&out, " " STR_FMT " [", STR_ARG(decision.node));
		for (size_t i = 0; i < decision.grant_count; i++) {
			const struct sched_grant *grant = &decision.grants[i];
			buf_printf(&out, i > 0 ? ",%lld" : "%lld", (long long)grant->index);
			if (grant->resource.len > 0)
				buf_printf(&out, ":%lld/%lld", (long long)grant->milli,
					   (long long)grant->memory_mib);
		}
		buf_put_byte(&out, ']');
		if (decision.facts != NULL)
			put_facts(rig, &decision, &out);
	} else if (decision.verb >= SCHED_NOMINATE) {
		buf_printf(&out, " " STR_FMT, STR_ARG(decision.node));
		for (size_t i = 0; i < decision.victim_count; i++)
			buf_printf(&out, i > 0 ? "," STR_FMT : " " STR_FMT,
				   STR_ARG(decision.victims[i].name));
	} else {
		put_facts(rig, &decision, &out);
	}
	must(buf_ok(&out), "line", NULL);
	memcpy(rig->line, out.data, out.len + 1);
	return rig->line;
}

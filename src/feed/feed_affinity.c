// SPDX-License-Identifier: Apache-2.0
// Node affinity, pod affinity and topology spread of a pod. Preferences among pods are not
// looked at: they may be missed, never broken.
#include "feed/spec_parts.h"

#include <stdio.h>

static bool read_op(struct str text, sched_op *ret_op)
{
	static const char *const NAMES[] = {
		[SCHED_IN] = "In",         [SCHED_NOT_IN] = "NotIn",
		[SCHED_EXISTS] = "Exists", [SCHED_NOT_EXISTS] = "DoesNotExist",
		[SCHED_GREATER] = "Gt",    [SCHED_LESS] = "Lt",
	};
	for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
		if (str_eq_c(text, NAMES[i])) {
			*ret_op = (sched_op)i;
			return true;
		}
	}
	return false;
}

struct sched_selector build_requirements(struct build *build, const kobj_requirements *items,
					 const char *where)
{
	struct sched_selector selector = { .count = 0 };
	size_t count = build_limit(build, items->count, "requirements in a selector");
	selector.items = build_alloc(build, count, sizeof *selector.items);
	for (size_t i = 0; selector.items != NULL && i < count; i++) {
		const struct kobj_requirement *item = &items->items[i];
		struct sched_requirement *out = &selector.items[selector.count++];
		*out = (struct sched_requirement){ .key = item->key,
						   .values = item->values.items,
						   .value_count = build_values(
							   build, item->values.count) };
		if (!read_op(item->op, &out->op))
			build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE,
				     "operator " STR_FMT " in %s", STR_ARG(item->op), where);
	}
	return selector;
}

struct sched_selector build_pairs(struct build *build, const struct kobj_pairs *pairs)
{
	struct sched_selector selector = { .count = 0 };
	size_t count = build_limit(build, pairs->count, "labels in a selector");
	selector.items = build_alloc(build, count, sizeof *selector.items);
	for (size_t i = 0; selector.items != NULL && i < count; i++) {
		struct sched_requirement *out = &selector.items[selector.count++];
		(void)build_values(build, 1);
		*out = (struct sched_requirement){ .key = pairs->items[i].key,
						   .op = SCHED_IN,
						   .values = &pairs->items[i].value,
						   .value_count = 1 };
	}
	return selector;
}

struct sched_node_term build_node_term(struct build *build, const struct kobj_node_term *term)
{
	struct sched_node_term out;
	out.labels = build_requirements(build, &term->expressions, "node affinity");
	out.fields = build_requirements(build, &term->fields, "node affinity");
	for (size_t i = 0; i < out.fields.count; i++) {
		const struct sched_requirement *field = &out.fields.items[i];
		bool is_known = str_eq_c(field->key, "metadata.name") &&
				(field->op == SCHED_IN || field->op == SCHED_NOT_IN);
		if (!is_known)
			build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE, "matchFields of " STR_FMT,
				     STR_ARG(field->key));
	}
	return out;
}

static void build_node_affinity(struct build *build, const struct kobj_node_affinity *affinity)
{
	struct sched_spec *spec = build->spec;
	const struct kobj_node_selector *required = affinity->required;
	if (required != NULL) {
		size_t count = build_limit(build, required->terms.count, "node selector terms");
		spec->has_terms = true;
		spec->terms = build_alloc(build, count, sizeof *spec->terms);
		for (size_t i = 0; spec->terms != NULL && i < count; i++)
			spec->terms[spec->term_count++] =
				build_node_term(build, &required->terms.items[i]);
	}
	size_t count = build_limit(build, affinity->preferred.count, "node preferences");
	spec->preferences = build_alloc(build, count, sizeof *spec->preferences);
	for (size_t i = 0; spec->preferences != NULL && i < count; i++) {
		const struct kobj_preferred_term *term = &affinity->preferred.items[i];
		if (term->preference == NULL)
			continue;
		build_range(build, "weight", term->weight, 1, 100);
		spec->preferences[spec->preference_count++] =
			(struct sched_preference){ term->weight,
						   build_node_term(build, term->preference) };
	}
}

// One selector of labels, expressions and keys taken over from the pod's own labels.
static struct sched_selector build_selector(struct build *build,
					    const struct kobj_label_selector *source,
					    const struct kobj_texts *same,
					    const struct kobj_texts *different)
{
	struct sched_selector out = { .count = 0, .is_nothing = source == NULL };
	if (source == NULL)
		return out;
	struct sched_selector labels = build_pairs(build, &source->match_labels);
	struct sched_selector rest =
		build_requirements(build, &source->expressions, "a label selector");
	size_t keys = build_values(build, same->count + different->count);
	size_t max = labels.count + rest.count + keys;
	out.items = build_alloc(build, max, sizeof *out.items);
	if (out.items == NULL)
		return out;
	for (size_t i = 0; i < labels.count; i++)
		out.items[out.count++] = labels.items[i];
	for (size_t i = 0; i < rest.count; i++)
		out.items[out.count++] = rest.items[i];
	for (size_t i = 0; i < keys; i++) {
		bool is_same = i < same->count;
		struct str key = is_same ? same->items[i] : different->items[i - same->count];
		struct str value = kobj_pairs_get(&build->pod->meta.labels, key);
		struct str *values = build_alloc(build, 1, sizeof *values);
		if (value.data == NULL || values == NULL)
			continue;
		*values = value;
		out.items[out.count++] =
			(struct sched_requirement){ key, is_same ? SCHED_IN : SCHED_NOT_IN, values,
						    1 };
	}
	return out;
}

struct sched_selector build_label_selector(struct build *build,
					   const struct kobj_label_selector *source)
{
	static const struct kobj_texts NONE;
	return build_selector(build, source, &NONE, &NONE);
}

static void need_key(struct build *build, struct str topology_key)
{
	if (topology_key.len == 0)
		build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE, "no topologyKey");
}

static struct sched_term build_term(struct build *build, const struct kobj_affinity_term *term)
{
	struct sched_term out = { .topology_key = term->topology_key };
	out.selector = build_selector(build, term->selector, &term->match_label_keys,
				      &term->mismatch_label_keys);
	out.namespaces = term->namespaces.items;
	out.namespace_count = build_values(build, term->namespaces.count);
	need_key(build, term->topology_key);
	out.namespace_selector = build_label_selector(build, term->namespace_selector);
	bool is_own = term->namespaces.count == 0 && term->namespace_selector == NULL;
	struct str *own = is_own ? build_alloc(build, 1, sizeof *own) : NULL;
	if (own != NULL) {
		*own = build->pod->meta.namespace_;
		out.namespaces = own;
		out.namespace_count = 1;
	}
	return out;
}

static struct sched_term *build_terms(struct build *build, const struct kobj_pod_affinity *affinity,
				      size_t *ret_count)
{
	size_t count = build_limit(build, affinity->required.count, "pod affinity terms");
	struct sched_term *terms = build_alloc(build, count, sizeof *terms);
	if (terms == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++)
		terms[i] = build_term(build, &affinity->required.items[i]);
	*ret_count = count;
	return terms;
}

void build_affinity(struct build *build)
{
	const struct kobj_affinity *affinity = build->pod->spec.affinity;
	struct sched_spec *spec = build->spec;
	spec->node_selector = build_pairs(build, &build->pod->spec.node_selector);
	if (affinity == NULL)
		return;
	if (affinity->node != NULL)
		build_node_affinity(build, affinity->node);
	if (affinity->pod != NULL)
		spec->near = build_terms(build, affinity->pod, &spec->near_count);
	if (affinity->anti != NULL)
		spec->apart = build_terms(build, affinity->anti, &spec->apart_count);
}

static bool read_policy(struct build *build, struct str text, bool *ret_honors)
{
	if (text.len == 0)
		return false;
	*ret_honors = str_eq_c(text, "Honor");
	if (!*ret_honors && !str_eq_c(text, "Ignore"))
		build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE,
			     "policy " STR_FMT " in topologySpreadConstraints", STR_ARG(text));
	return true;
}

void build_spreads(struct build *build)
{
	static const struct kobj_texts NONE;
	const struct kobj_pod_spec *pod = &build->pod->spec;
	struct sched_spec *spec = build->spec;
	size_t count = build_limit(build, pod->spreads.count, "topology spread constraints");
	spec->spreads = build_alloc(build, count, sizeof *spec->spreads);
	for (size_t i = 0; spec->spreads != NULL && i < count; i++) {
		const struct kobj_spread *spread = &pod->spreads.items[i];
		if (str_eq_c(spread->when_unsatisfiable, "ScheduleAnyway"))
			continue;
		if (!str_eq_c(spread->when_unsatisfiable, "DoNotSchedule")) {
			build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE,
				     "whenUnsatisfiable " STR_FMT,
				     STR_ARG(spread->when_unsatisfiable));
			continue;
		}
		bool honors = true, honors_taints = false;
		build_range(build, "maxSkew", spread->max_skew, 1, INT32_MAX);
		build_range(build, "minDomains", spread->min_domains, 0, INT32_MAX);
		need_key(build, spread->topology_key);
		(void)read_policy(build, spread->node_affinity_policy, &honors);
		(void)read_policy(build, spread->node_taints_policy, &honors_taints);
		spec->spreads[spec->spread_count++] = (struct sched_spread){
			.max_skew = spread->max_skew,
			.min_domains = max_i64(spread->min_domains, 1),
			.topology_key = spread->topology_key,
			.selector = build_selector(build, spread->selector,
						   &spread->match_label_keys, &NONE),
			.ignores_affinity = !honors,
			.honors_taints = honors_taints,
		};
	}
}

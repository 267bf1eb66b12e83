// SPDX-License-Identifier: Apache-2.0
// Pod affinity, anti-affinity and topology spread of one pod against all pods on nodes, in the
// meaning of kube-scheduler 1.36 (plugins InterPodAffinity and PodTopologySpread). Only pods that
// have such terms, or clusters where running pods have anti-affinity, pay for it.
#include "sched/claim_book.h"
#include "sched/parts.h"
#include "sched/stock.h"

#include <stdlib.h>

struct domains { // value of a topology label -> number of pods, or of terms that forbid it
	struct map *counts;
};

struct affinity {
	const struct sched *sched;
	const struct pod *pod;
	const struct sched_spec *spec;
	struct map *forbidden; // topology key -> map of values, by anti-affinity of running pods
	struct domains *near, *apart, *spreads; // as in the spec
	int64_t *spread_min;
	bool has_near;            // some pod matches all affinity terms
	bool is_own_near;         // the pod itself does
	struct volumes *volumes;  // NULL: it has none
	struct claim_fit *claims; // of devices; NULL: it has none
};

// Maps hold no NULL, so that counts are kept with one more.
static void *number(int64_t value) { return (void *)(uintptr_t)(value + 1); }
static int64_t value_of(const void *kept) { return (int64_t)(uintptr_t)kept - 1; }

static int64_t count_of(const struct map *counts, struct str value)
{
	const void *found = map_find(counts, value);
	return found == NULL ? 0 : value_of(found);
}

static void count_add(struct map *counts, struct str value, int64_t more)
{
	(void)map_set(counts, value, number(count_of(counts, value) + more));
}

static bool names_namespace(const struct sched *sched, const struct sched_term *term,
			    struct str namespace_)
{
	static const struct sched_labels NONE;
	for (size_t i = 0; i < term->namespace_count; i++) {
		if (str_eq(term->namespaces[i], namespace_))
			return true;
	}
	const struct sched_labels *labels = map_find(sched->namespaces, namespace_);
	return sched_selector_matches(&term->namespace_selector, labels == NULL ? &NONE : labels);
}

static bool term_matches(const struct sched *sched, const struct sched_term *term,
			 const struct pod *pod)
{
	return names_namespace(sched, term, pod->key.namespace_) &&
	       sched_selector_matches(&term->selector, &pod->labels);
}

bool affinity_are_apart(const struct sched *sched, const struct pod *a, const struct pod *b,
			const struct node *node)
{
	const struct sched_spec *spec = a->shape->spec;
	for (size_t i = 0; i < spec->apart_count; i++) {
		if (sched_labels_get(&node->labels, spec->apart[i].topology_key).data != NULL &&
		    term_matches(sched, &spec->apart[i], b))
			return true;
	}
	return false;
}

static bool matches_all_near(const struct affinity *a, const struct pod *pod)
{
	for (size_t i = 0; i < a->spec->near_count; i++) {
		if (!term_matches(a->sched, &a->spec->near[i], pod))
			return false;
	}
	return a->spec->near_count > 0;
}

static void count_near(struct affinity *a, const struct pod *pod)
{
	if (!matches_all_near(a, pod))
		return;
	for (size_t i = 0; i < a->spec->near_count; i++) {
		struct str key = a->spec->near[i].topology_key;
		struct str value = sched_labels_get(&pod->node->labels, key);
		if (value.data == NULL)
			continue;
		count_add(a->near[i].counts, value, 1);
		a->has_near = true;
	}
}

static void count_apart(struct affinity *a, const struct pod *pod)
{
	for (size_t i = 0; i < a->spec->apart_count; i++) {
		const struct sched_term *term = &a->spec->apart[i];
		if (!term_matches(a->sched, term, pod))
			continue;
		struct str value = sched_labels_get(&pod->node->labels, term->topology_key);
		if (value.data != NULL)
			count_add(a->apart[i].counts, value, 1);
	}
}

static void forbid(struct affinity *a, struct str key, struct str value)
{
	struct map *values = map_find(a->forbidden, key);
	if (values == NULL) {
		values = map_new(a->sched->seed);
		(void)map_set(a->forbidden, key, values);
	}
	count_add(values, value, 1);
}

bool affinity_is_special(const struct sched *sched, const struct pod *pod)
{
	const struct link *head = &sched->apart;
	for (struct link *at = head->next; at != head; at = at->next) {
		const struct sched_spec *spec = LINK_OF(at, struct pod, in_apart)->shape->spec;
		for (size_t i = 0; i < spec->apart_count; i++) {
			if (term_matches(sched, &spec->apart[i], pod))
				return true;
		}
	}
	return false;
}

static void collect_forbidden(struct affinity *a)
{
	const struct link *head = &a->sched->apart;
	for (struct link *at = head->next; at != head; at = at->next) {
		const struct pod *other = LINK_OF(at, struct pod, in_apart);
		const struct sched_spec *spec = other->shape->spec;
		for (size_t i = 0; i < spec->apart_count; i++) {
			struct str key = spec->apart[i].topology_key;
			struct str value = sched_labels_get(&other->node->labels, key);
			if (value.data != NULL && term_matches(a->sched, &spec->apart[i], a->pod))
				forbid(a, key, value);
		}
	}
}

static bool has_all_keys(const struct sched_spec *spec, const struct node *node)
{
	for (size_t i = 0; i < spec->spread_count; i++) {
		if (sched_labels_get(&node->labels, spec->spreads[i].topology_key).data == NULL)
			return false;
	}
	return true;
}

static int64_t count_spread_pods(const struct affinity *a, const struct sched_spread *spread,
				 const struct node *node)
{
	int64_t count = 0;
	bool is_all = spread->selector.count == 0 && !spread->selector.is_nothing;
	if (is_all) // as kube-scheduler: an empty selector counts nobody
		return 0;
	for (struct link *at = node->pods.next; at != &node->pods; at = at->next) {
		const struct pod *pod = LINK_OF(at, struct pod, on_node);
		count += !pod->is_terminating &&
			 str_eq(pod->key.namespace_, a->pod->key.namespace_) &&
			 sched_selector_matches(&spread->selector, &pod->labels);
	}
	return count;
}

static void count_spreads(struct affinity *a, const struct node *node)
{
	if (!node->is_known || !has_all_keys(a->spec, node))
		return;
	for (size_t i = 0; i < a->spec->spread_count; i++) {
		const struct sched_spread *spread = &a->spec->spreads[i];
		if (!spread->ignores_affinity && !filter_selectors(a->spec, node))
			continue;
		if (spread->honors_taints && !filter_taints(a->spec, node))
			continue;
		count_add(a->spreads[i].counts,
			  sched_labels_get(&node->labels, spread->topology_key),
			  count_spread_pods(a, spread, node));
	}
}

static void find_spread_min(struct affinity *a)
{
	for (size_t i = 0; i < a->spec->spread_count; i++) {
		const struct map *counts = a->spreads[i].counts;
		int64_t least = INT32_MAX;
		struct str value;
		void *count;
		for (size_t k = 0; map_next(counts, &k, &value, &count);)
			least = min_i64(least, value_of(count));
		int64_t domains = (int64_t)map_count(counts);
		a->spread_min[i] = domains < a->spec->spreads[i].min_domains ? 0 : least;
	}
}

static void count_all(struct affinity *a)
{
	for (uint32_t slot = 0; slot < a->sched->slot_count; slot++) {
		const struct node *node = a->sched->nodes[slot];
		if (node == NULL)
			continue;
		if (a->spec->spread_count > 0)
			count_spreads(a, node);
		if (a->spec->near_count + a->spec->apart_count == 0)
			continue;
		for (struct link *at = node->pods.next; at != &node->pods; at = at->next) {
			count_near(a, LINK_OF(at, struct pod, on_node));
			count_apart(a, LINK_OF(at, struct pod, on_node));
		}
	}
	find_spread_min(a);
}

static struct domains *new_domains(const struct sched *sched, size_t count)
{
	struct domains *domains = core_alloc(count, sizeof *domains);
	for (size_t i = 0; i < count; i++)
		domains[i].counts = map_new(sched->seed);
	return domains;
}

static void free_domains(struct domains *domains, size_t count)
{
	for (size_t i = 0; i < count; i++)
		map_free(domains[i].counts);
	free(domains);
}

struct affinity *affinity_new(struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	bool has_terms = spec->near_count + spec->apart_count + spec->spread_count > 0;
	if (!has_terms && !spec_has_volumes(spec) && link_is_empty(&sched->apart))
		return NULL;
	struct affinity *a = core_alloc(1, sizeof *a);
	a->volumes = volumes_new(sched, pod);
	a->claims = claim_fit_new(sched, pod);
	a->sched = sched;
	a->pod = pod;
	a->spec = spec;
	a->forbidden = map_new(sched->seed);
	a->near = new_domains(sched, spec->near_count);
	a->apart = new_domains(sched, spec->apart_count);
	a->spreads = new_domains(sched, spec->spread_count);
	a->spread_min = core_alloc(spec->spread_count, sizeof *a->spread_min);
	a->is_own_near = matches_all_near(a, pod);
	collect_forbidden(a);
	if (has_terms)
		count_all(a);
	return a;
}

void affinity_free(struct affinity *a)
{
	if (a == NULL)
		return;
	struct str key;
	void *values;
	for (size_t i = 0; map_next(a->forbidden, &i, &key, &values);)
		map_free(values);
	map_free(a->forbidden);
	volumes_free(a->volumes);
	claim_fit_free(a->claims);
	free_domains(a->near, a->spec->near_count);
	free_domains(a->apart, a->spec->apart_count);
	free_domains(a->spreads, a->spec->spread_count);
	free(a->spread_min);
	free(a);
}

static bool near_is_met(const struct affinity *a, const struct node *node)
{
	bool has_pods = true;
	for (size_t i = 0; i < a->spec->near_count; i++) {
		struct str value = sched_labels_get(&node->labels, a->spec->near[i].topology_key);
		if (value.data == NULL)
			return false;
		has_pods = has_pods && count_of(a->near[i].counts, value) > 0;
	}
	// The first of a group that wants to be near itself must be let in.
	return has_pods || (!a->has_near && a->is_own_near);
}

static bool apart_is_met(const struct affinity *a, const struct node *node)
{
	for (size_t i = 0; i < a->spec->apart_count; i++) {
		struct str value = sched_labels_get(&node->labels, a->spec->apart[i].topology_key);
		if (value.data != NULL && count_of(a->apart[i].counts, value) > 0)
			return false;
	}
	return true;
}

static bool is_forbidden(const struct affinity *a, const struct node *node)
{
	struct str key;
	void *values;
	for (size_t i = 0; map_next(a->forbidden, &i, &key, &values);) {
		struct str value = sched_labels_get(&node->labels, key);
		if (value.data != NULL && count_of(values, value) > 0)
			return true;
	}
	return false;
}

static uint64_t check_spreads(const struct affinity *a, const struct node *node)
{
	for (size_t i = 0; i < a->spec->spread_count; i++) {
		const struct sched_spread *spread = &a->spec->spreads[i];
		struct str value = sched_labels_get(&node->labels, spread->topology_key);
		if (value.data == NULL)
			return code_bit(SCHED_CODE_TOPOLOGY_LABEL);
		int64_t own = sched_selector_matches(&spread->selector, &a->pod->labels);
		int64_t here = count_of(a->spreads[i].counts, value);
		if (here + own - a->spread_min[i] > spread->max_skew)
			return code_bit(SCHED_CODE_TOPOLOGY_SPREAD);
	}
	return 0;
}

uint32_t affinity_detail(const struct affinity *a, sched_code code)
{
	bool is_of_devices = code == SCHED_CODE_UNSUPPORTED_CLAIM ||
			     code == SCHED_CODE_DEVICE_CLAIM_MISSING;
	if (is_of_devices)
		return a->claims == NULL ? 0 : (uint32_t)claim_fit_claim(a->claims, code);
	return a->volumes == NULL ? 0 : (uint32_t)volumes_claim(a->volumes, code);
}

bool affinity_is_dear(const struct affinity *a)
{
	const struct sched_spec *spec = a == NULL ? NULL : a->spec;
	return a != NULL && (spec->near_count + spec->apart_count + spec->spread_count > 0 ||
			     !link_is_empty(&a->sched->apart));
}

const struct claim_fit *affinity_claims(const struct affinity *a)
{
	return a == NULL ? NULL : a->claims;
}

uint64_t affinity_check(const struct affinity *a, const struct node *node)
{
	uint64_t fails = check_spreads(a, node);
	if (a->volumes != NULL)
		fails |= volumes_check(a->volumes, node);
	if (a->claims != NULL)
		fails |= claim_fit_check(a->claims, node);
	if (!near_is_met(a, node))
		fails |= code_bit(SCHED_CODE_POD_AFFINITY);
	if (!apart_is_met(a, node))
		fails |= code_bit(SCHED_CODE_POD_ANTI_AFFINITY);
	if (is_forbidden(a, node))
		fails |= code_bit(SCHED_CODE_EXISTING_ANTI_AFFINITY);
	return fails;
}

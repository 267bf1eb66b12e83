// SPDX-License-Identifier: Apache-2.0
// The volumes of one pod against all nodes, in the meaning of kube-scheduler 1.36 (plugins
// VolumeBinding, VolumeZone, NodeVolumeLimits and VolumeRestrictions). What the claims alone
// decide is found once, in volumes_new; a node then costs a look at its labels and its pods.
#include "sched/stock.h"

#include "sched/parts.h"

#include <stdlib.h>

struct look { // at one claim of the pod
	const struct sched_claim_ref *ref;
	struct stored *claim, *class_;
	const struct stored *volume; // bound
	struct stored **candidates;  // volumes that may be bound to it, best first
	size_t candidate_count;
	struct str selected_node; // data NULL: any
	uint64_t fails;           // on every node
};

struct volumes {
	struct sched *sched;
	const struct stock *stock;
	const struct sched_spec *spec;
	struct look *looks;
	size_t look_count;
	struct look **by_size; // those to be bound or made, smallest first
	size_t by_size_count;
	uint64_t fails; // on every node
};

struct match {                                    // of one node
	struct stored *volumes[SCHED_CLAIMS_MAX]; // as by_size; NULL: to be made
	uint64_t fails;
};

static bool is_bound_to(const struct stored *volume, const struct stored *claim)
{
	const struct sched_volume_in *in = &volume->in.volume;
	if (volume->assumed_by != NULL)
		return volume->assumed == claim;
	return in->has_claim && str_eq(in->claim_key, claim->in.key) &&
	       (in->claim_uid.len == 0 || str_eq(in->claim_uid, claim->in.claim.uid));
}

// What of the claim and the volume alone decides.
static bool suits(const struct stored *volume, const struct stored *claim)
{
	const struct sched_volume_in *v = &volume->in.volume;
	const struct sched_claim_in *c = &claim->in.claim;
	bool is_taken = v->has_claim || volume->assumed_by != NULL;
	if (!str_eq(v->class_name, c->class_name) || v->size_bytes < c->size_bytes ||
	    v->is_block != c->is_block || v->is_deleting || v->is_cloud ||
	    !str_eq(v->attributes_class, c->attributes_class))
		return false;
	if (is_taken)
		return is_bound_to(volume, claim);
	return v->is_available && sched_selector_matches(&c->selector, &v->labels) &&
	       (c->modes & ~v->modes) == 0;
}

static bool is_better(const struct stored *a, const struct stored *b, const struct stored *claim)
{
	bool is_first = is_bound_to(a, claim), is_second = is_bound_to(b, claim);
	if (is_first != is_second)
		return is_first;
	return !is_first && a->in.volume.size_bytes < b->in.volume.size_bytes;
}

static void find_candidates(const struct stock *stock, struct look *look)
{
	const struct map *volumes = stock->stored[SCHED_VOLUME];
	struct str key;
	void *value;
	look->candidates = core_alloc(map_count(volumes), sizeof *look->candidates);
	for (size_t i = 0; map_next(volumes, &i, &key, &value);) {
		if (!suits(value, look->claim))
			continue;
		size_t k = look->candidate_count++;
		for (; k > 0 && is_better(value, look->candidates[k - 1], look->claim); k--)
			look->candidates[k] = look->candidates[k - 1];
		look->candidates[k] = value;
	}
}

static uint64_t look_at_unbound(struct volumes *volumes, struct look *look)
{
	const struct sched_claim_in *claim = &look->claim->in.claim;
	look->class_ = stock_find(volumes->stock, SCHED_CLASS, claim->class_name);
	bool is_delayed = claim->volume_name.len == 0 && look->class_ != NULL &&
			  look->class_->in.class_.is_delayed;
	if (!is_delayed)
		return code_bit(SCHED_CODE_CLAIM_UNBOUND);
	look->selected_node = claim->selected_node;
	if (look->claim->assumed_node.data != NULL)
		look->selected_node = look->claim->assumed_node;
	if (look->selected_node.data == NULL)
		find_candidates(volumes->stock, look);
	size_t k = volumes->by_size_count++;
	for (; k > 0 && volumes->by_size[k - 1]->claim->in.claim.size_bytes > claim->size_bytes;
	     k--)
		volumes->by_size[k] = volumes->by_size[k - 1];
	volumes->by_size[k] = look;
	return 0;
}

static uint64_t look_at_claim(struct volumes *volumes, struct look *look, struct str key)
{
	look->claim = stock_find(volumes->stock, SCHED_CLAIM, key);
	if (look->claim == NULL)
		return code_bit(SCHED_CODE_CLAIM_MISSING);
	const struct sched_claim_in *claim = &look->claim->in.claim;
	const struct sched_claim_ref *ref = look->ref;
	bool is_foreign = ref->is_ephemeral && !str_eq(claim->owner_uid, ref->owner_uid);
	if (claim->is_lost || claim->is_deleting || is_foreign)
		return code_bit(SCHED_CODE_CLAIM_UNUSABLE);
	uint64_t fails = 0;
	bool is_single = !ref->is_ephemeral && (claim->modes & SCHED_MODE_RWOP) != 0;
	if (is_single && stock_users(volumes->stock, key) > 0)
		fails |= code_bit(SCHED_CODE_VOLUME_IN_USE);
	if (!claim->is_complete || claim->volume_name.len == 0)
		return fails | look_at_unbound(volumes, look);
	look->volume = stock_find(volumes->stock, SCHED_VOLUME, claim->volume_name);
	if (look->volume == NULL || look->volume->in.volume.is_cloud)
		fails |= code_bit(SCHED_CODE_CLAIM_UNUSABLE);
	return fails;
}

struct volumes *volumes_new(struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	if (!spec_has_volumes(spec))
		return NULL;
	ASSERT(spec->claim_count <= SCHED_CLAIMS_MAX);
	AUTO(buf_done) struct buf key = { .limit = 1024 };
	struct volumes *volumes = core_alloc(1, sizeof *volumes);
	volumes->sched = sched;
	volumes->stock = sched->stock;
	volumes->spec = spec;
	volumes->look_count = spec->claim_count;
	volumes->looks = core_alloc(spec->claim_count, sizeof *volumes->looks);
	volumes->by_size = core_alloc(spec->claim_count, sizeof *volumes->by_size);
	for (size_t i = 0; i < spec->claim_count; i++) {
		volumes->looks[i].ref = &spec->claims[i];
		struct str text = stock_claim_key(&spec->claims[i], &key);
		volumes->looks[i].fails = look_at_claim(volumes, &volumes->looks[i], text);
		volumes->fails |= volumes->looks[i].fails;
	}
	return volumes;
}

void volumes_free(struct volumes *volumes)
{
	if (volumes == NULL)
		return;
	for (size_t i = 0; i < volumes->look_count; i++)
		free(volumes->looks[i].candidates);
	free(volumes->looks);
	free(volumes->by_size);
	free(volumes);
}

size_t volumes_claim(const struct volumes *volumes, sched_code code)
{
	size_t i = 0;
	while (i < volumes->look_count && (volumes->looks[i].fails & code_bit(code)) == 0)
		i++;
	return i;
}

// A volume's terms see the labels of a node only, not its name.
static bool reaches(const struct stored *volume, const struct node *node)
{
	const struct sched_volume_in *in = &volume->in.volume;
	for (size_t i = 0; i < in->term_count; i++) {
		if (filter_term(&in->terms[i], &node->labels, STR("")))
			return true;
	}
	return !in->has_terms;
}

static const struct {
	struct str key, now; // now: the name that replaced it
} ZONE_LABELS[] = {
	{ { "failure-domain.beta.kubernetes.io/zone", 38 }, { "topology.kubernetes.io/zone", 27 } },
	{ { "failure-domain.beta.kubernetes.io/region", 40 },
	  { "topology.kubernetes.io/region", 29 } },
	{ { "topology.kubernetes.io/zone", 27 }, { "topology.kubernetes.io/zone", 27 } },
	{ { "topology.kubernetes.io/region", 29 }, { "topology.kubernetes.io/region", 29 } },
};

// "a__b": zones a and b. A text with an empty zone says nothing.
static bool names_zone(struct str zones, struct str zone)
{
	bool names = false;
	for (size_t from = 0;;) {
		size_t end = from;
		while (end + 1 < zones.len &&
		       (zones.data[end] != '_' || zones.data[end + 1] != '_'))
			end++;
		bool is_last = end + 1 >= zones.len;
		struct str part = str_trim(str_slice(zones, from, is_last ? zones.len : end));
		if (part.len == 0)
			return true;
		names = names || str_eq(part, zone);
		if (is_last)
			return names;
		from = end + 2;
	}
}

static bool is_in_zone(const struct stored *volume, const struct node *node)
{
	bool has_zone = false;
	for (size_t i = 0; i < ARRAY_COUNT(ZONE_LABELS) && !has_zone; i++)
		has_zone = sched_labels_get(&node->labels, ZONE_LABELS[i].key).data != NULL;
	for (size_t i = 0; has_zone && i < ARRAY_COUNT(ZONE_LABELS); i++) {
		struct str zones = sched_labels_get(&volume->in.volume.labels, ZONE_LABELS[i].key);
		struct str zone = sched_labels_get(&node->labels, ZONE_LABELS[i].key);
		if (zones.data == NULL)
			continue;
		if (zone.data == NULL)
			zone = sched_labels_get(&node->labels, ZONE_LABELS[i].now);
		if (!names_zone(zones, zone))
			return false;
	}
	return true;
}

static uint64_t check_bound(const struct volumes *volumes, const struct node *node)
{
	uint64_t fails = 0;
	for (size_t i = 0; i < volumes->look_count; i++) {
		const struct look *look = &volumes->looks[i];
		if (look->volume == NULL)
			continue;
		if (!reaches(look->volume, node))
			fails |= code_bit(SCHED_CODE_VOLUME_NODE);
		if (!look->ref->is_ephemeral && !is_in_zone(look->volume, node))
			fails |= code_bit(SCHED_CODE_VOLUME_ZONE);
	}
	return fails;
}

static bool is_chosen(const struct match *match, size_t count, const struct stored *volume)
{
	for (size_t i = 0; i < count; i++) {
		if (match->volumes[i] == volume)
			return true;
	}
	return false;
}

static struct stored *pick(const struct volumes *volumes, size_t i, const struct match *match,
			   const struct node *node)
{
	const struct look *look = volumes->by_size[i];
	for (size_t k = 0; k < look->candidate_count; k++) {
		struct stored *volume = look->candidates[k];
		if (is_chosen(match, i, volume))
			continue;
		if (reaches(volume, node))
			return volume;
		if (is_bound_to(volume, look->claim))
			return NULL; // no other will do
	}
	return NULL;
}

static bool has_space(const struct volumes *volumes, const struct look *look,
		      const struct node *node)
{
	const struct stock *stock = volumes->stock;
	const struct stored *driver =
		stock_find(stock, SCHED_CSI_DRIVER, look->class_->in.class_.provisioner);
	int64_t size_bytes = look->claim->in.claim.size_bytes;
	struct str key;
	void *value;
	if (size_bytes == 0 || driver == NULL || !driver->in.csi_driver.tracks_capacity)
		return true;
	for (size_t i = 0; map_next(stock->stored[SCHED_CAPACITY], &i, &key, &value);) {
		const struct sched_capacity_in *capacity = &((struct stored *)value)->in.capacity;
		if (str_eq(capacity->class_name, look->class_->in.key) &&
		    capacity->size_bytes >= size_bytes &&
		    sched_selector_matches(&capacity->nodes, &node->labels))
			return true;
	}
	return false;
}

static uint64_t check_new(const struct volumes *volumes, const struct look *look,
			  const struct node *node)
{
	const struct sched_class_in *class_ = &look->class_->in.class_;
	bool is_allowed = class_->topology_count == 0;
	for (size_t i = 0; i < class_->topology_count && !is_allowed; i++)
		is_allowed = class_->topologies[i].count > 0 &&
			     sched_selector_matches(&class_->topologies[i], &node->labels);
	if (class_->provisioner.len == 0 ||
	    str_eq_c(class_->provisioner, "kubernetes.io/no-provisioner") || !is_allowed)
		return code_bit(SCHED_CODE_VOLUME_NONE);
	return has_space(volumes, look, node) ? 0 : code_bit(SCHED_CODE_VOLUME_SPACE);
}

static void match_unbound(const struct volumes *volumes, const struct node *node,
			  struct match *ret_match)
{
	ret_match->fails = 0;
	for (size_t i = 0; i < volumes->by_size_count; i++) {
		const struct look *look = volumes->by_size[i];
		ret_match->volumes[i] = NULL;
		if (look->selected_node.data != NULL && !str_eq(look->selected_node, node->name))
			ret_match->fails |= code_bit(SCHED_CODE_VOLUME_NONE);
		else if (look->selected_node.data == NULL)
			ret_match->volumes[i] = pick(volumes, i, ret_match, node);
		if (ret_match->volumes[i] == NULL)
			ret_match->fails |= check_new(volumes, look, node);
	}
}

static bool disks_clash(const struct sched_disk *a, const struct sched_disk *b)
{
	if (a->is_rbd != b->is_rbd || !str_eq(a->id, b->id) || (a->is_read_only && b->is_read_only))
		return false;
	bool is_shared = !a->is_rbd;
	for (size_t i = 0; i < a->monitor_count && !is_shared; i++) {
		for (size_t k = 0; k < b->monitor_count && !is_shared; k++)
			is_shared = str_eq(a->monitors[i], b->monitors[k]);
	}
	return is_shared;
}

static bool are_disks_free(const struct volumes *volumes, const struct node *node)
{
	const struct sched_spec *spec = volumes->spec;
	const struct link *head = &node->pods;
	for (const struct link *at = head->next; at != head && spec->disk_count > 0;
	     at = at->next) {
		const struct sched_spec *other =
			LINK_OF((uintptr_t)at, struct pod, on_node)->shape->spec;
		for (size_t i = 0; i < spec->disk_count; i++) {
			for (size_t k = 0; k < other->disk_count; k++) {
				if (disks_clash(&spec->disks[i], &other->disks[k]))
					return false;
			}
		}
	}
	return true;
}

uint64_t volumes_check(const struct volumes *volumes, const struct node *node)
{
	struct match match;
	uint64_t fails = volumes->fails | check_bound(volumes, node);
	match_unbound(volumes, node, &match);
	fails |= match.fails;
	if (!are_disks_free(volumes, node))
		fails |= code_bit(SCHED_CODE_VOLUME_IN_USE);
	if (!attach_fits(volumes->sched, volumes->spec, node))
		fails |= code_bit(SCHED_CODE_VOLUME_LIMIT);
	return fails;
}

static void assume_node(struct stored *claim, struct str node)
{
	char *copy = core_alloc(1, node.len);
	memcpy(copy, node.data, node.len);
	claim->assumed_node = (struct str){ copy, node.len };
}

// A claim that another pod's decision has joined already is waited for by both.
static void join(struct sched *sched, struct pod *pod, struct stored *claim, struct stored *volume)
{
	struct sched_claim_bind *bind = &sched->stock->binds[sched->stock->bind_count++];
	*bind = (struct sched_claim_bind){ .claim_key = claim->in.key,
					   .claim_uid = claim->in.claim.uid,
					   .version = claim->in.claim.version };
	if (volume != NULL) {
		bind->volume = volume->in.key;
		bind->version = volume->in.volume.version;
	}
	if (claim->assumed_by != NULL)
		return;
	claim->assumed_by = pod;
	claim->assumed = volume;
	if (volume == NULL) {
		assume_node(claim, pod->node->name);
		return;
	}
	volume->assumed_by = pod;
	volume->assumed = claim;
}

size_t volumes_assume(struct sched *sched, struct pod *pod)
{
	struct volumes *volumes = volumes_new(sched, pod);
	struct match match;
	sched->stock->bind_count = 0;
	if (volumes == NULL)
		return 0;
	match_unbound(volumes, pod->node, &match);
	for (size_t i = 0; i < volumes->by_size_count; i++)
		join(sched, pod, volumes->by_size[i]->claim, match.volumes[i]);
	volumes_free(volumes);
	return sched->stock->bind_count;
}

// SPDX-License-Identifier: Apache-2.0
// Which devices of a node a pod's claims would get: all requests at once, by trying devices in the
// order of the slice, in the meaning of kube-scheduler's plugin DynamicResources.
#include "sched/claim_book.h"
#include "sched/claim_cel.h"
#include "sched/parts.h"

#include <stdlib.h>

enum { STEPS_MAX = 20000, RESERVED_MAX = 256 };
static const struct str DRIVER = { "gpu.gpuaas.io", 13 };

struct claim_fit {
	const struct sched *sched;
	const struct sched_spec *spec;
	struct claim_kept *claims[SCHED_CLAIM_REQUESTS_MAX];
	uint64_t fails[SCHED_CLAIM_REQUESTS_MAX]; // on every node
	uint64_t all_fails;
	size_t count;
};

struct slot { // one device of a request
	struct claim_kept *claim;
	uint32_t request_i;
	uint64_t candidates; // by their place in the slice
	size_t device_i;     // chosen
};

struct search {
	const struct sched_slice_in *slice;
	struct slot slots[SCHED_CLAIM_GIVES_MAX];
	size_t count, steps;
};

static uint64_t look_at(const struct sched *sched, const struct claim_kept *claim)
{
	if (claim == NULL)
		return code_bit(SCHED_CODE_DEVICE_CLAIM_MISSING);
	const struct sched_device_claim_in *in = &claim->object->claim;
	if (in->trouble.len > 0)
		return code_bit(SCHED_CODE_UNSUPPORTED_CLAIM);
	if (in->is_deleting && !in->is_allocated)
		return code_bit(SCHED_CODE_DEVICE_CLAIM_MISSING);
	for (size_t i = 0; i < in->request_count && !in->is_allocated; i++) {
		const struct claim_kept *class_ = claim_book_find(
			sched->claim_book, SCHED_DEVICE_CLASS, in->requests[i].class_name);
		if (class_ == NULL)
			return code_bit(SCHED_CODE_DEVICE_CLAIM_MISSING);
		if (class_->object->class_.trouble.len > 0)
			return code_bit(SCHED_CODE_UNSUPPORTED_CLAIM);
	}
	return 0;
}

struct claim_fit *claim_fit_new(struct sched *sched, const struct pod *pod)
{
	const struct sched_spec *spec = pod->shape->spec;
	if (spec->device_claim_count == 0)
		return NULL;
	ASSERT(spec->device_claim_count <= SCHED_CLAIM_REQUESTS_MAX);
	struct claim_fit *fit = core_alloc(1, sizeof *fit);
	fit->sched = sched;
	fit->spec = spec;
	fit->count = spec->device_claim_count;
	for (size_t i = 0; i < fit->count; i++) {
		fit->claims[i] = claim_book_find(sched->claim_book, SCHED_DEVICE_CLAIM,
						 spec->device_claims[i]);
		fit->fails[i] = look_at(sched, fit->claims[i]);
		fit->all_fails |= fit->fails[i];
	}
	return fit;
}

void claim_fit_free(struct claim_fit *fit) { free(fit); }

size_t claim_fit_claim(const struct claim_fit *fit, sched_code code)
{
	size_t i = 0;
	while (i < fit->count && (fit->fails[i] & code_bit(code)) == 0)
		i++;
	return i;
}

static claim_cel all_hold(const struct str *selectors, size_t count,
			  const struct sched_pool_device *device)
{
	for (size_t i = 0; i < count; i++) {
		claim_cel one = claim_cel_eval(selectors[i], DRIVER, device);
		if (one != CLAIM_CEL_YES)
			return one;
	}
	return CLAIM_CEL_YES;
}

static bool tolerates(const struct sched_claim_request *request,
		      const struct sched_device_taint *taint)
{
	const struct sched_spec spec = { .tolerations = request->tolerations,
					 .toleration_count = request->toleration_count };
	bool matters = str_eq_c(taint->effect, "NoSchedule") ||
		       str_eq_c(taint->effect, "NoExecute");
	return !matters || sched_tolerates(&spec, taint->key, taint->value, taint->effect);
}

// The GPU that the device is a part of; empty: it is none.
static struct str parent_of(const struct sched_pool_device *device)
{
	for (size_t i = 0; i < device->attribute_count; i++) {
		const struct sched_attribute *attribute = &device->attributes[i];
		if (str_eq_c(attribute->name, "parentUUID") && str_eq(attribute->domain, DRIVER))
			return attribute->text;
	}
	return STR("");
}

// The agent's word, where there is one: what is ill or held otherwise is given to nobody. A MIG
// device is not named there; its GPU must not be given whole.
static bool is_free(const struct sched *sched, const struct node *node,
		    const struct sched_pool_device *offered)
{
	struct str parent = parent_of(offered);
	struct str name = parent.len > 0 ? parent : offered->name;
	if (claim_book_is_held(sched->claim_book, node->name, offered->name) ||
	    claim_book_is_held(sched->claim_book, node->name, name))
		return false;
	for (size_t i = 0; i < node->device_count; i++) {
		const struct device *device = &node->devices[i];
		if (device->is_present && str_eq_nocase(str_of(device->uuid), name))
			return device->holder == NULL && !device->is_shared;
	}
	return node->present_count == 0 || parent.len > 0;
}

// The devices of the request; free ones alone in ret_free. False: an expression failed.
static bool find_devices(const struct sched *sched, const struct node *node,
			 const struct sched_slice_in *slice,
			 const struct sched_claim_request *request, uint64_t ret_sets[2])
{
	const struct sched_device_class_in *class_ =
		&claim_book_find(sched->claim_book, SCHED_DEVICE_CLASS, request->class_name)
			 ->object->class_;
	ret_sets[0] = ret_sets[1] = 0;
	for (size_t i = 0; i < slice->device_count; i++) {
		const struct sched_pool_device *device = &slice->devices[i];
		claim_cel one = all_hold(class_->selectors, class_->selector_count, device);
		if (one == CLAIM_CEL_YES)
			one = all_hold(request->selectors, request->selector_count, device);
		if (one == CLAIM_CEL_NO)
			continue;
		if (one != CLAIM_CEL_YES)
			return false;
		bool free = is_free(sched, node, device);
		for (size_t k = 0; k < device->taint_count; k++)
			free = free && tolerates(request, &device->taints[k]);
		ret_sets[0] |= UINT64_C(1) << i;
		ret_sets[1] |= (uint64_t)free << i;
	}
	return true;
}

static bool add_slots(const struct claim_fit *fit, const struct node *node, struct search *search,
		      struct claim_kept *claim)
{
	const struct sched_device_claim_in *in = &claim->object->claim;
	for (uint32_t i = 0; i < in->request_count; i++) {
		uint64_t sets[2];
		if (!find_devices(fit->sched, node, search->slice, &in->requests[i], sets))
			return false;
		size_t all = (size_t)__builtin_popcountll(sets[0]);
		bool takes_all = in->requests[i].count == 0;
		size_t count = takes_all ? all : (size_t)in->requests[i].count;
		if (count == 0 || (takes_all && sets[0] != sets[1]) ||
		    search->count + count > SCHED_CLAIM_GIVES_MAX)
			return false;
		for (size_t k = 0; k < count; k++)
			search->slots[search->count++] = (struct slot){ .claim = claim,
									.request_i = i,
									.candidates = sets[1] };
	}
	return true;
}

static const struct sched_attribute *attribute_of(const struct sched_pool_device *device,
						  const struct sched_claim_match *match)
{
	for (size_t i = 0; i < device->attribute_count; i++) {
		if (str_eq(device->attributes[i].name, match->name) &&
		    str_eq(device->attributes[i].domain, match->domain))
			return &device->attributes[i];
	}
	return NULL;
}

static bool covers(const struct sched_claim_match *match, const struct slot *slot)
{
	struct str name = slot->claim->object->claim.requests[slot->request_i].name;
	for (size_t i = 0; i < match->request_count; i++) {
		if (str_eq(match->requests[i], name))
			return true;
	}
	return match->request_count == 0;
}

static bool is_equal(const struct sched_attribute *a, const struct sched_attribute *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == SCHED_ATTRIBUTE_TEXT)
		return str_eq(a->text, b->text);
	if (a->kind == SCHED_ATTRIBUTE_VERSION)
		return sched_version_cmp(&a->version, &b->version) == 0;
	return a->number == b->number;
}

// Whether the device of the last slot goes with those chosen before.
static bool matches(const struct search *search, size_t last)
{
	const struct slot *slot = &search->slots[last];
	const struct sched_device_claim_in *in = &slot->claim->object->claim;
	for (size_t i = 0; i < in->match_count; i++) {
		const struct sched_claim_match *match = &in->matches[i];
		if (!covers(match, slot))
			continue;
		const struct sched_attribute *own =
			attribute_of(&search->slice->devices[slot->device_i], match);
		if (own == NULL)
			return false;
		for (size_t k = 0; k < last; k++) {
			const struct slot *other = &search->slots[k];
			if (other->claim == slot->claim && covers(match, other) &&
			    !is_equal(own, attribute_of(&search->slice->devices[other->device_i],
							match)))
				return false;
		}
	}
	return true;
}

static bool choose(struct search *search, size_t at, uint64_t taken)
{
	if (at == search->count)
		return true;
	struct slot *slot = &search->slots[at];
	const struct slot *before = at == 0 ? NULL : slot - 1;
	bool is_alike = before != NULL && before->claim == slot->claim &&
			before->request_i == slot->request_i;
	// Devices of one request are chosen in order, so that no set is tried twice.
	size_t i = is_alike ? before->device_i + 1 : 0;
	for (; i < search->slice->device_count; i++) {
		if (((slot->candidates & ~taken) >> i & 1) == 0)
			continue;
		if (++search->steps > STEPS_MAX)
			return false;
		slot->device_i = i;
		if (matches(search, at) && choose(search, at + 1, taken | UINT64_C(1) << i))
			return true;
	}
	return false;
}

// Claims that have devices already bind the pod to their node.
static bool is_here(const struct claim_kept *claim, const struct node *node)
{
	const struct sched_device_claim_in *in = &claim->object->claim;
	if (claim->assumed_by != NULL)
		return str_eq(claim->assumed_node, node->name);
	for (size_t i = 0; i < in->given_count; i++) {
		if (!str_eq(in->given[i].pool, node->name))
			return false;
	}
	return in->reserved_count < RESERVED_MAX;
}

static bool is_placed(const struct claim_kept *claim)
{
	return claim->object->claim.is_allocated || claim->assumed_by != NULL;
}

static bool start_search(const struct claim_fit *fit, const struct node *node,
			 struct search *search)
{
	const struct claim_kept *pool = map_find(fit->sched->claim_book->pools, node->name);
	*search = (struct search){ .slice = pool == NULL ? NULL : &pool->object->slice };
	for (size_t i = 0; i < fit->count; i++) {
		struct claim_kept *claim = fit->claims[i];
		if (is_placed(claim)) {
			if (!is_here(claim, node))
				return false;
		} else if (pool == NULL || !add_slots(fit, node, search, claim)) {
			return false;
		}
	}
	return true;
}

static bool find_all(const struct claim_fit *fit, const struct node *node, struct search *search)
{
	return start_search(fit, node, search) && choose(search, 0, 0);
}

uint64_t claim_fit_check(const struct claim_fit *fit, const struct node *node)
{
	struct search search;
	if (fit->all_fails != 0)
		return fit->all_fails;
	return find_all(fit, node, &search) ? 0 : code_bit(SCHED_CODE_DEVICE_CLAIM_SHORT);
}

// What another pod takes of the slice: by its claims, and whole GPUs of the device plugin. What its
// claims have already is not free anyway.
static bool add_other(const struct claim_fit *fit, const struct node *node, struct search *search,
		      const struct pod *other)
{
	const struct sched_spec *spec = other->shape->spec;
	uint64_t free = 0;
	for (size_t i = 0; i < spec->device_claim_count; i++) {
		struct claim_kept *claim = claim_book_find(
			fit->sched->claim_book, SCHED_DEVICE_CLAIM, spec->device_claims[i]);
		bool is_known = claim != NULL && look_at(fit->sched, claim) == 0;
		if (is_known && !is_placed(claim) && !add_slots(fit, node, search, claim))
			return false;
	}
	for (size_t i = 0; i < search->slice->device_count; i++)
		free |= (uint64_t)is_free(fit->sched, node, &search->slice->devices[i]) << i;
	for (int64_t i = 0; i < spec->gpu_count; i++) {
		if (search->count == SCHED_CLAIM_GIVES_MAX)
			return false;
		search->slots[search->count++] = (struct slot){ .candidates = free };
	}
	return true;
}

bool claim_fit_beside(const struct claim_fit *fit, const struct node *node,
		      const struct pod *const *others, size_t other_count)
{
	struct search search;
	if (fit->all_fails != 0) // claim_fit_check says so
		return true;
	if (!start_search(fit, node, &search))
		return false;
	bool needs_none = search.count == 0;
	for (size_t i = 0; i < other_count && !needs_none; i++) {
		if (!add_other(fit, node, &search, others[i]))
			return false;
	}
	return needs_none || choose(&search, 0, 0);
}

static void assume_picks(struct sched *sched, const struct pod *pod, const struct search *search,
			 struct claim_kept *claim)
{
	struct claim_pick picks[SCHED_CLAIM_GIVES_MAX] = { { 0 } };
	size_t count = 0;
	for (size_t i = 0; i < search->count; i++) {
		const struct slot *slot = &search->slots[i];
		struct str name = search->slice->devices[slot->device_i].name;
		if (slot->claim != claim)
			continue;
		ASSERT(name.len < CLAIM_DEVICE_BYTES); // longer ones are no names of devices
		picks[count].request_i = slot->request_i;
		memcpy(picks[count++].device, name.data, name.len);
	}
	claim_book_assume(sched, claim, pod, picks, count);
}

static size_t lend(struct claim_book *book, const struct claim_kept *claim, const struct pod *pod,
		   struct sched_claim_allot *ret, size_t give_count)
{
	const struct sched_device_claim_in *in = &claim->object->claim;
	*ret = (struct sched_claim_allot){ .key = claim->object->key,
					   .uid = in->uid,
					   .version = in->version,
					   .is_allocated = claim->assumed_by != pod,
					   .gives = &book->gives[give_count] };
	if (ret->is_allocated)
		return give_count;
	ret->give_count = claim->pick_count;
	for (size_t i = 0; i < claim->pick_count; i++)
		book->gives[give_count++] =
			(struct sched_claim_give){ &in->requests[claim->picks[i].request_i],
						   str_of(claim->picks[i].device) };
	return give_count;
}

size_t claim_fit_assume(struct sched *sched, const struct pod *pod)
{
	struct claim_fit *fit = claim_fit_new(sched, pod);
	struct search search;
	size_t gives = 0, count = fit == NULL ? 0 : fit->count;
	if (fit == NULL)
		return 0;
	bool fits = find_all(fit, pod->node, &search);
	ASSERT(fits); // the filter said so, or it was assumed before
	for (size_t i = 0; i < count; i++) {
		struct claim_kept *claim = fit->claims[i];
		if (!is_placed(claim))
			assume_picks(sched, pod, &search, claim);
		gives = lend(sched->claim_book, claim, pod, &sched->claim_book->allots[i], gives);
	}
	claim_fit_free(fit);
	return count;
}

// ---- what it is in the books of queues

static const struct str PROFILE = { "profile", 7 };

int64_t claim_fit_device_parts(const struct sched_pool_device *device)
{
	for (size_t i = 0; i < device->attribute_count; i++) {
		const struct sched_attribute *attribute = &device->attributes[i];
		bool is_profile = str_eq(attribute->name, PROFILE) &&
				  str_eq(attribute->domain, DRIVER) && attribute->text.len > 0;
		int64_t slices = is_profile ? attribute->text.data[0] - '0' : 0;
		if (slices >= 1 && slices <= PARTS_PER_MILLI)
			return SHARE_WHOLE_MILLI * slices;
	}
	return GPU_PARTS;
}

static int64_t given_parts(const struct sched *sched, struct str pool, struct str name)
{
	const struct claim_kept *kept = map_find(sched->claim_book->pools, pool);
	const struct sched_slice_in *slice = kept == NULL ? NULL : &kept->object->slice;
	for (size_t i = 0; slice != NULL && i < slice->device_count; i++) {
		if (str_eq(slice->devices[i].name, name))
			return claim_fit_device_parts(&slice->devices[i]);
	}
	return GPU_PARTS;
}

// Of what may be given for the request: the largest device, and all of the node that has most.
static void look_for_parts(const struct sched *sched, const struct sched_claim_request *request,
			   const struct sched_device_class_in *class_, int64_t *ret_largest,
			   int64_t *ret_all)
{
	struct str node;
	void *pool;
	*ret_largest = *ret_all = 0;
	for (size_t i = 0; map_next(sched->claim_book->pools, &i, &node, &pool);) {
		const struct sched_slice_in *slice = &((struct claim_kept *)pool)->object->slice;
		int64_t sum = 0;
		for (size_t k = 0; k < slice->device_count; k++) {
			const struct sched_pool_device *device = &slice->devices[k];
			if (all_hold(class_->selectors, class_->selector_count, device) !=
				    CLAIM_CEL_YES ||
			    all_hold(request->selectors, request->selector_count, device) !=
				    CLAIM_CEL_YES)
				continue;
			*ret_largest = max_i64(*ret_largest, claim_fit_device_parts(device));
			sum += claim_fit_device_parts(device);
		}
		*ret_all = max_i64(*ret_all, sum);
	}
}

static int64_t request_parts(const struct sched *sched, const struct sched_claim_request *request)
{
	const struct claim_book *book = sched->claim_book;
	const struct claim_kept *class_ =
		claim_book_find(book, SCHED_DEVICE_CLASS, request->class_name);
	int64_t largest = 0, all = 0;
	if (class_ == NULL)
		return 0;
	if (request->count == 0 || book->part_count > 0)
		look_for_parts(sched, request, &class_->object->class_, &largest, &all);
	if (request->count == 0)
		return all;
	return request->count * (largest == 0 ? GPU_PARTS : largest);
}

int64_t claim_fit_parts(const struct sched *sched, struct claim_kept *claim)
{
	const struct sched_device_claim_in *in = &claim->object->claim;
	int64_t sum = 0;
	if (in->is_allocated) {
		for (size_t i = 0; i < in->given_count; i++)
			sum += given_parts(sched, in->given[i].pool, in->given[i].device);
		return sum;
	}
	if (claim->assumed_by != NULL) {
		for (size_t i = 0; i < claim->pick_count; i++)
			sum += given_parts(sched, claim->assumed_node,
					   str_of(claim->picks[i].device));
		return sum;
	}
	if (claim->asked_gen == sched->claim_book->pools_gen)
		return claim->asked_parts;
	for (size_t i = 0; i < in->request_count && in->trouble.len == 0; i++)
		sum += request_parts(sched, &in->requests[i]);
	claim->asked_parts = sum;
	claim->asked_gen = sched->claim_book->pools_gen;
	return sum;
}

// SPDX-License-Identifier: Apache-2.0
// The arrival order of the published experiments: see openb.h.
#include "sim/gorand.h"
#include "sim/openb.h"

enum { LOAD_PERMILLE = 1300, APPENDED_MIN = 100000 };

struct draw {
	const struct openb_pods *pods;
	uint32_t *order;
	size_t count, cap;
	int64_t milli, target_milli;
	struct gorand *rand;
};

static void shuffle(struct draw *draw)
{
	for (size_t i = 0; i < draw->pods->count; i++)
		draw->order[i] = (uint32_t)i;
	for (size_t i = draw->pods->count - 1; i > 0; i--) {
		uint32_t k = gorand_shuffle_below(draw->rand, (uint32_t)i + 1);
		uint32_t kept = draw->order[i];
		draw->order[i] = draw->order[k];
		draw->order[k] = kept;
	}
	draw->count = draw->pods->count;
}

// The protocol compares with what one GPU of the next pod takes, however many it wants.
static bool append(struct draw *draw)
{
	for (;;) {
		uint32_t i = gorand_below(draw->rand, (uint32_t)draw->pods->count);
		const struct openb_pod *pod = &draw->pods->items[i];
		if (draw->milli + pod->gpu_milli > draw->target_milli)
			return true;
		if (draw->count == draw->cap)
			return false;
		draw->milli += openb_gpu_milli(pod);
		draw->order[draw->count++] = i;
	}
}

static void drop(struct draw *draw)
{
	while (draw->milli > draw->target_milli) {
		uint32_t i = gorand_below(draw->rand, (uint32_t)draw->count);
		draw->milli -= openb_gpu_milli(&draw->pods->items[draw->order[i]]);
		draw->count--;
		memmove(&draw->order[i], &draw->order[i + 1],
			(draw->count - i) * sizeof *draw->order);
	}
}

// Another list of the same kind: as many pods, drawn with replacement.
static void resample(struct draw *draw)
{
	draw->milli = 0;
	for (size_t i = 0; i < draw->count; i++) {
		draw->order[i] = gorand_below(draw->rand, (uint32_t)draw->pods->count);
		draw->milli += openb_gpu_milli(&draw->pods->items[draw->order[i]]);
	}
}

err_status openb_order_draw(struct arena *arena, const struct openb_nodes *nodes,
			    const struct openb_pods *pods, struct openb_draw how,
			    struct openb_order *ret, struct err *err)
{
	struct gorand rand;
	struct draw draw = { .pods = pods, .cap = pods->count * 8 + APPENDED_MIN, .rand = &rand };
	draw.order = ARENA_ARRAY(arena, uint32_t, draw.cap);
	ret->ranks = ARENA_ARRAY(arena, uint32_t, nodes->count);
	if (draw.order == NULL || ret->ranks == NULL)
		return err_set(err, ERR_LIMIT, "no memory for an order of arrival");
	for (size_t i = 0; i < nodes->count; i++)
		draw.target_milli += (int64_t)nodes->items[i].gpu_count * LOAD_PERMILLE;
	for (size_t i = 0; i < pods->count; i++)
		draw.milli += openb_gpu_milli(&pods->items[i]);
	gorand_init(&rand, how.seed);
	(void)gorand_int63(&rand); // the protocol draws one and throws it away
	shuffle(&draw);
	if (how.is_resampled)
		resample(&draw);
	if (draw.milli >= draw.target_milli)
		drop(&draw);
	else if (!append(&draw))
		return err_set(err, ERR_INVALID,
			       "the pods ask for too few GPUs to fill the nodes; give more pods "
			       "or --order");
	gorand_perm(&rand, ret->ranks, (uint32_t)nodes->count);
	ret->pods = draw.order;
	ret->count = draw.count;
	return ERR_OK;
}

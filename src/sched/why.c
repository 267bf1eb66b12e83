// SPDX-License-Identifier: Apache-2.0
#include "sched/why.h"

#include "sched/core.h"
#include "sched/weigh.h"

#include <stdlib.h>

static int64_t size_of(const struct sched_why_part *part)
{
	return part->own > part->other ? part->own - part->other : part->other - part->own;
}

// Among the largest differences, of which there is room for a few.
static void add_part(struct sched_why *why, struct sched_why_part part)
{
	size_t i = why->part_count;
	if (part.own == part.other)
		return;
	while (i > 0 && size_of(&why->parts[i - 1]) < size_of(&part))
		i--;
	if (i == SCHED_WHY_PARTS_MAX)
		return;
	why->part_count = min_size(why->part_count + 1, SCHED_WHY_PARTS_MAX);
	for (size_t k = why->part_count - 1; k > i; k--)
		why->parts[k] = why->parts[k - 1];
	why->parts[i] = part;
}

// The cost is linear in its weights: each alone gives its part. The board still has the node as it
// was before the pod came, because nobody has looked at it since.
static void put_parts(struct sched *sched, const struct pod *pod, const struct why *brief,
		      struct sched_why *why)
{
	const struct board *board = weigh_board(sched->weigh);
	const struct board_row *row = weigh_row(sched, pod->shape->spec);
	if (row == NULL || board->score.policy.is_level)
		return;
	struct score *one = core_alloc(1, sizeof *one);
	const int32_t *weights = board->score.policy.weights[score_kind_of(&row->ask)];
	*one = board->score;
	int32_t *alone = one->policy.weights[score_kind_of(&row->ask)];
	for (int i = 0; i < SCORE_FEATURES; i++)
		alone[i] = 0;
	for (int i = 0; i < SCORE_FEATURES; i++) {
		if (weights[i] == 0)
			continue;
		alone[i] = weights[i];
		struct sched_why_part part = { .name = SCORE_FEATURE_NAMES[i] };
		part.own = score_cost(one, &board->nodes[brief->slot], &row->ask, NULL);
		part.other = score_cost(one, &board->nodes[brief->next_slot], &row->ask, NULL);
		alone[i] = 0;
		if (part.own != SCORE_NEVER && part.other != SCORE_NEVER)
			add_part(why, part);
	}
	free(one);
}

bool sched_why_get(struct sched *sched, struct str uid, struct sched_why *ret)
{
	struct pod *pod = map_find(sched->pod_by_uid, uid);
	if (pod == NULL || pod->node == NULL)
		return false;
	const struct why *brief = &pod->why;
	bool is_kept = str_eq(pod->wait->nominated, pod->node->name);
	*ret = (struct sched_why){ .term = is_kept ? "kept" : brief->term };
	if (is_kept)
		return true;
	if (brief->term == NULL)
		return false;
	if (!brief->has_next)
		return true;
	const struct node *next = sched->nodes[brief->next_slot];
	ret->next = next == NULL ? STR("") : next->name;
	ret->own = brief->own;
	ret->other = brief->other;
	// The nodes must be as they were: of a gang that is so for who was placed last.
	if (brief->is_cost && sched->why.pod == pod)
		put_parts(sched, pod, brief, ret);
	return true;
}

void sched_why_put(const struct sched_why *why, struct buf *out)
{
	buf_printf(out, "{\"term\":\"%s\"", why->term);
	if (why->next.len > 0) {
		buf_put_c(out, ",\"next\":");
		buf_put_json(out, why->next);
		buf_printf(out, ",\"own\":%lld,\"other\":%lld", (long long)why->own,
			   (long long)why->other);
	}
	for (size_t i = 0; i < why->part_count; i++)
		buf_printf(out, "%s{\"name\":\"%s\",\"own\":%lld,\"other\":%lld}",
			   i == 0 ? ",\"parts\":[" : ",", why->parts[i].name,
			   (long long)why->parts[i].own, (long long)why->parts[i].other);
	buf_put_c(out, why->part_count > 0 ? "]}" : "}");
}

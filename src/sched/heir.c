// SPDX-License-Identifier: Apache-2.0
// The place in the queue of pods that were evicted, for those that replace them.
#include "sched/victims.h"

#include <stdlib.h>

enum { HEIRS_MAX = 4096, HEIR_MS = 3600 * 1000 };

struct owner_key {
	uint64_t parts[2];
};

static struct owner_key owner_key_of(struct str namespace_, uint64_t owner)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < namespace_.len; i++)
		hash = (hash ^ (unsigned char)namespace_.data[i]) * UINT64_C(0x100000001b3);
	return (struct owner_key){ { hash, owner } };
}

static struct str key_text(const struct owner_key *key)
{
	return (struct str){ (const char *)key->parts, sizeof key->parts };
}

static void drop_old_heirs(struct sched *sched)
{
	struct preempt *preempt = sched->preempt;
	struct str key;
	void *value;
	for (size_t i = 0; map_next(preempt->heirs, &i, &key, &value);) {
		if (((struct heir *)value)->since_ms + HEIR_MS > sched->now_ms)
			continue;
		free(value);
		(void)map_remove(preempt->heirs, key);
	}
}

void preempt_bequeath(struct sched *sched, const struct pod *pod)
{
	struct preempt *preempt = sched->preempt;
	struct owner_key key = owner_key_of(pod->key.namespace_, pod->stay.owner);
	if (pod->stay.owner == 0)
		return;
	struct heir *heir = map_find(preempt->heirs, key_text(&key));
	if (heir == NULL) {
		if (map_count(preempt->heirs) >= HEIRS_MAX)
			drop_old_heirs(sched);
		if (map_count(preempt->heirs) >= HEIRS_MAX)
			return;
		heir = core_alloc(1, sizeof *heir);
		heir->created_s = pod->key.created_s;
		(void)map_set(preempt->heirs, key_text(&key), heir);
	}
	heir->created_s = min_i64(heir->created_s, pod->key.created_s);
	heir->since_ms = sched->now_ms;
	heir->count++;
}

bool heir_take(struct sched *sched, struct str namespace_, uint64_t owner, int64_t *ret_created_s)
{
	struct preempt *preempt = sched->preempt;
	struct owner_key key = owner_key_of(namespace_, owner);
	struct heir *heir = owner == 0 ? NULL : map_find(preempt->heirs, key_text(&key));
	if (heir == NULL)
		return false;
	*ret_created_s = heir->created_s;
	if (--heir->count == 0) {
		(void)map_remove(preempt->heirs, key_text(&key));
		free(heir);
	}
	return true;
}

int64_t preempt_inherit(struct sched *sched, const struct sched_pod_in *in)
{
	int64_t created_s = in->created_s;
	if (in->node.len == 0 && !in->is_terminating)
		(void)heir_take(sched, in->namespace_, in->stay.owner, &created_s);
	return min_i64(created_s, in->created_s);
}

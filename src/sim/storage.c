// SPDX-License-Identifier: Apache-2.0
// Claims, volumes and classes of the scenario.
#include "sim/sim.h"

void storage_init(struct sim *sim)
{
	for (int kind = 0; kind < SCHED_STORAGES; kind++)
		sim->storage[kind] = map_new(0);
}

void storage_done(struct sim *sim)
{
	for (int kind = 0; kind < SCHED_STORAGES; kind++)
		map_free(sim->storage[kind]);
}

err_status storage_apply(struct sim *sim, const struct sim_object *object, struct err *err)
{
	const struct feed_storage *feed = &FEED_STORAGES[object->storage];
	struct arena *arena = sim->scenario->arena;
	void *value = arena_alloc(arena, feed->table->size_bytes);
	struct sched_storage_in *in = ARENA_NEW(arena, struct sched_storage_in);
	if (value == NULL || in == NULL)
		return err_set(err, ERR_LIMIT, "the scenario needs too much memory");
	err_status status = kobj_from_json(arena, feed->table, object->json, NULL, value, err);
	if (status != ERR_OK)
		return status;
	if (!feed->read(arena, value, in))
		return err_set(err, ERR_LIMIT, "the scenario needs too much memory");
	if (object->action == SIM_DELETE) {
		sched_storage_remove(sim->core, in->kind, in->key);
		(void)map_remove(sim->storage[in->kind], in->key);
		return ERR_OK;
	}
	sched_storage_set(sim->core, in);
	(void)map_set(sim->storage[in->kind], in->key, in);
	return ERR_OK;
}

static void bind_volume(struct sim *sim, struct sched_storage_in *claim, struct str name)
{
	struct sched_storage_in *volume = map_find(sim->storage[SCHED_VOLUME], name);
	ASSERT(volume != NULL);
	claim->claim.volume_name = volume->key;
	claim->claim.is_complete = true;
	volume->volume.has_claim = true;
	volume->volume.is_available = false;
	volume->volume.claim_key = claim->key;
	volume->volume.claim_uid = claim->claim.uid;
	sched_storage_set(sim->core, volume);
}

void storage_bind(struct sim *sim, const struct sched_decision *bind)
{
	struct sched_storage_in *claims[SCHED_CLAIMS_MAX];
	struct str volumes[SCHED_CLAIMS_MAX]; // what the core lends lasts until it is told more
	for (size_t i = 0; i < bind->claim_bind_count; i++) {
		claims[i] = map_find(sim->storage[SCHED_CLAIM], bind->claim_binds[i].claim_key);
		ASSERT(claims[i] != NULL);
		volumes[i] = arena_dup(sim->scenario->arena, bind->claim_binds[i].volume);
	}
	struct str node = arena_dup(sim->scenario->arena, bind->node);
	for (size_t i = 0; i < bind->claim_bind_count; i++) {
		if (volumes[i].len > 0)
			bind_volume(sim, claims[i], volumes[i]);
		else
			claims[i]->claim.selected_node = node;
		sched_storage_set(sim->core, claims[i]);
	}
}

// SPDX-License-Identifier: Apache-2.0
// Claims, volumes and classes of the scenario.
#include "sim/sim.h"

#include "feed/feed_claim.h"

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

// What a decision gives to a claim is its pod's as long as that runs: nobody writes it here.
err_status storage_apply_claim(struct sim *sim, const struct sim_object *object, struct err *err)
{
	struct arena *arena = sim->scenario->arena;
	struct str key = feed_claim_key(arena, object->json);
	bool is_named = json_text(object->json, "metadata.namespace").len > 0 ||
			object->claim != SCHED_DEVICE_CLAIM;
	if (!is_named)
		key = str_of(arena_printf(arena, "default/" STR_FMT, STR_ARG(key)));
	struct sched_claim_object *in = object->action == SIM_DELETE
						? NULL
						: feed_claim_object(object->claim, object->json);
	if (in != NULL)
		in->key = arena_dup(in->arena, key);
	if (key.data == NULL || (in != NULL && in->key.data == NULL))
		return err_set(err, ERR_LIMIT, "the scenario needs too much memory");
	if (in == NULL)
		sched_claim_object_remove(sim->core, object->claim, key);
	else
		sched_claim_object_set(sim->core, in);
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

// SPDX-License-Identifier: Apache-2.0
// From a set of ids to its holder, and from the holder's plan to a GPU.
#include "daemons/agent/late_state.h"

#include <inttypes.h>

static err_status too_early(struct err *err, const char *what)
{
	return err_set(err, ERR_UNAVAILABLE, "%s", what);
}

// By the kubelet's file, which has the UID: of several entries the one whose pod lives.
static const struct share_seen *in_checkpoint(const struct late *late, const struct share_key *key,
					      const struct pods_item **ret_item)
{
	size_t at = 0;
	const struct share_seen *seen;
	while ((seen = share_seen_next(&late->by_checkpoint, key, &at)) != NULL) {
		const struct pods_item *item = pods_find(late->config.pods, seen->holder.uid);
		if (item == NULL || item->facts.is_terminal)
			continue;
		*ret_item = item;
		return seen;
	}
	return NULL;
}

static bool has_name(const struct pods_item *item, const struct share_holder *holder)
{
	return strcmp(item->facts.name, holder->pod) == 0 &&
	       strcmp(item->facts.namespace_, holder->namespace_) == 0;
}

static void take_holder(const struct pods_item *item, const char *container,
			struct share_holder *ret)
{
	memcpy(ret->uid, item->facts.uid, sizeof ret->uid);
	memcpy(ret->namespace_, item->facts.namespace_, sizeof ret->namespace_);
	memcpy(ret->pod, item->facts.name, sizeof ret->pod);
	bool fits = usage_text(ret->container, sizeof ret->container, str_of(container));
	ASSERT(fits);
}

// A name alone may be that of a pod gone by, while this one is not known yet: only who holds
// nothing of the kind can be meant.
static err_status by_name_alone(const struct late *late, const struct share_seen *listed,
				share_kind kind, struct share_holder *ret_holder,
				const struct pods_item **ret_item, struct err *err)
{
	const struct pods_item *item = pods_find_name(
		late->config.pods, str_of(listed->holder.namespace_), str_of(listed->holder.pod));
	if (late->has_checkpoint || item == NULL || item->facts.is_terminal)
		return too_early(err, "its pod is not known yet");
	take_holder(item, listed->holder.container, ret_holder);
	if (share_table_of(late->table, ret_holder, kind) != NULL)
		return too_early(err, "its pod is not known yet, only another of that name");
	*ret_item = item;
	return ERR_OK;
}

static err_status find_holder(const struct late *late, const struct share_key *key,
			      struct share_holder *ret_holder, const struct pods_item **ret_item,
			      struct err *err)
{
	size_t at = 0;
	const struct share_seen *listed = share_seen_next(&late->by_list, key, &at);
	const struct pods_item *item = NULL;
	if (!pods_is_synced(late->config.pods))
		return too_early(err, "the pods of this node are not known yet");
	const struct share_seen *filed = in_checkpoint(late, key, &item);
	if (filed == NULL && listed == NULL)
		return too_early(err, "the kubelet names nobody who holds its devices");
	if (filed == NULL)
		return by_name_alone(late, listed, key->kind, ret_holder, ret_item, err);
	if (listed != NULL && !has_name(item, &listed->holder))
		return too_early(err, "the kubelet's two sources name different pods");
	// Init containers are in the file alone.
	take_holder(item, listed != NULL ? listed->holder.container : filed->holder.container,
		    ret_holder);
	*ret_item = item;
	return ERR_OK;
}

static err_status check_amount(const struct share_key *key, const struct share *share,
			       struct err *err)
{
	int64_t planned = key->kind == SHARE_BY_MILLI ? share->milli
						      : share->memory_mib / SHARE_UNIT_MIB;
	if (planned == (int64_t)key->count && share->milli <= SHARE_WHOLE_MILLI)
		return ERR_OK;
	return err_set(err, ERR_INVALID,
		       "the plan gives %" PRId64 " of %s, the kubelet gave out %" PRIu32, planned,
		       share_resource(key->kind), key->count);
}

static err_status check_room(struct late *late, const struct gpu_info *gpu,
			     const struct share *share, struct err *err)
{
	struct share left = share_whole((int64_t)gpu_memory_mib(gpu));
	struct share used = share_table_used(late->table, gpu->uuid, late_pod_lives, late);
	share_sub(&left, &used);
	if (share_fits(share, &left))
		return ERR_OK;
	// Who held it may have ended a moment ago, and we are the last to hear of it.
	return err_set(err, ERR_UNAVAILABLE,
		       "GPU %s has %" PRId64 " milli and %" PRId64
		       " MiB left, the plan gives %" PRId64 " and %" PRId64,
		       gpu->uuid, left.milli, left.memory_mib, share->milli, share->memory_mib);
}

err_status late_resolve(struct late *late, struct late_waiter *waiter, struct share_grant *grant,
			struct err *err)
{
	const struct pods_item *item = NULL;
	const struct gpu_info *gpu = NULL;
	const char *uuid = NULL;
	struct share_holder holder = { .uid = "" };
	struct share share;
	if (late->config.pods == NULL)
		return err_set(err, ERR_UNSUPPORTED, "shares need the API server");
	err_status status = find_holder(late, &grant->key, &holder, &item, err);
	if (status != ERR_OK)
		return status;
	waiter->holder = holder;
	if (item->plan == NULL ||
	    !plan_share(item->plan, holder.container, grant->key.kind, &uuid, &share))
		return err_set(
			err, ERR_DENIED,
			"no plan of the gpuaas scheduler gives it a share of a GPU (%s); pods "
			"with shares need schedulerName: gpuaas",
			share_resource(grant->key.kind));
	status = check_amount(&grant->key, &share, err);
	if (status == ERR_OK)
		status = late->config.check_gpu(late->config.arg, uuid, &gpu, err);
	if (status == ERR_OK)
		status = check_room(late, gpu, &share, err);
	if (status != ERR_OK)
		return status;
	share_table_bind(grant, &holder, uuid, &share);
	return ERR_OK;
}

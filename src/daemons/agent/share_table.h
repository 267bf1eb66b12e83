// SPDX-License-Identifier: Apache-2.0
// Allocations of shares: the sets of ids that the kubelet gave out, the CDI names that were
// answered, and, once its container was about to start, whose it is and of which GPU. An
// allocation is bound once and stays so; what it holds of a GPU is counted until its holder is
// gone by the word of kubelet and API server both. Pure: time and the pods' lives are given; kept
// on disk as lines by its owner, for no source tells the names again.
#pragma once

#include "daemons/agent/pod_facts.h"
#include "daemons/agent/share_ids.h"
#include "gpu/gpu.h"
#include "journal/usage_event.h"

enum { SHARE_NAMES_MAX = 4, SHARE_NAME_BYTES = 33, SHARE_GRANTS_MAX = 4096 };

struct share_holder {
	char uid[POD_SHORT_BYTES], namespace_[POD_SHORT_BYTES], container[POD_SHORT_BYTES];
	char pod[POD_NAME_BYTES];
};

struct share_grant {
	struct share_key key;
	// Containers of one pod may get the same ids one after the other, each with a name.
	char names[SHARE_NAMES_MAX][SHARE_NAME_BYTES];
	size_t name_count;
	bool is_bound;      // what follows is known
	bool is_superseded; // its ids were given out again
	bool is_listed;     // by the kubelet's last answer
	int64_t lost_s;     // since when nobody knows its holder; 0: somebody does
	struct share_holder holder;
	char uuid[GPU_UUID_BYTES];
	struct share share;
};

struct share_table;
typedef bool share_is_live_fn(void *arg, const char *uid); // the pod is there and has not ended

struct share_table *share_table_new(void); // NULL: no memory
void share_table_free(struct share_table *table);
// The kubelet gave the ids out: whoever had them before is gone. NULL: no room.
struct share_grant *share_table_allocate(struct share_table *table, const struct share_key *key,
					 const char *name);
struct share_grant *share_table_find(struct share_table *table, const struct share_key *key);
// Another allocation of the kind that this container holds; NULL: none.
const struct share_grant *share_table_of(const struct share_table *table,
					 const struct share_holder *holder, share_kind kind);
void share_table_bind(struct share_grant *grant, const struct share_holder *holder,
		      const char *uuid, const struct share *share);
void share_table_unbind(struct share_grant *grant);
// What is taken of the GPU by those whose holders live.
struct share share_table_used(const struct share_table *table, const char *uuid,
			      share_is_live_fn *is_live, void *arg);
bool share_grant_lives(const struct share_grant *grant, share_is_live_fn *is_live, void *arg);
// Begins a look at the kubelet's answer; then each of its sets is told.
void share_table_list_begin(struct share_table *table);
void share_table_list(struct share_table *table, const struct share_key *key);
// Forgets what has been lost for long; each is told before.
void share_table_prune(struct share_table *table, int64_t now_s, share_is_live_fn *is_live,
		       void (*on_drop)(void *arg, const struct share_grant *grant), void *arg);
size_t share_table_count(const struct share_table *table);
const struct share_grant *share_table_at(const struct share_table *table, size_t i);
bool share_table_has_name(const struct share_table *table, struct str name);
// Lines; what is no such line is left out when they are read.
void share_table_save(const struct share_table *table, struct buf *out);
void share_table_load(struct share_table *table, struct str text);

// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/late.h"

#include "daemons/agent/cdi.h"
#include "daemons/agent/late_state.h"
#include "sys/fs.h"
#include "sys/log.h"
#include "sys/random.h"

#include <stdio.h>
#include <stdlib.h>

#define MS UINT64_C(1000000)
// The kubelet gives up after 30 s; its next try comes some seconds after our no.
static const uint64_t WAIT_MAX_NS = 10000 * MS;
static const uint64_t LIST_TIMEOUT_NS = 3000 * MS;
static const uint64_t AGAIN_NS = 200 * MS;     // something is not there yet
static const uint64_t AGAIN_SOON_NS = 10 * MS; // the kubelet limits calls to 100 in a second
static const uint64_t CHANGED_NS = 1 * MS;
enum { ARENA_BYTES = 8 * 1024 * 1024, FILE_MAX_BYTES = 4 * 1024 * 1024 };

bool late_pod_lives(void *arg, const char *uid)
{
	const struct late *late = arg;
	const struct pods_item *item = NULL;
	if (late->config.pods == NULL)
		return false;
	// While the list of pods is not complete, whoever was there is there.
	if (!pods_is_synced(late->config.pods))
		return true;
	item = pods_find(late->config.pods, uid);
	return item != NULL && !item->facts.is_terminal;
}

static err_status save(struct late *late, struct err *err)
{
	AUTO(buf_done) struct buf text = { .limit = FILE_MAX_BYTES };
	share_table_save(late->table, &text);
	if (!buf_ok(&text))
		return err_set(err, ERR_LIMIT, "no room for the table of shares");
	err_status status = fs_write_atomic(late->state_path, buf_str(&text), 0600, err);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "table of shares");
}

static void save_or_log(struct late *late)
{
	struct err err = { 0 };
	if (save(late, &err) != ERR_OK)
		log_err(LOG_ERROR, "shares", &err);
}

static void make_name(char out[SHARE_NAME_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[(SHARE_NAME_BYTES - 1) / 2];
	random_bytes(bytes, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[SHARE_NAME_BYTES - 1] = '\0';
}

static err_status allocate_one(struct late *late, share_kind kind, const struct dp_ids *ids,
			       struct buf *out, struct err *err)
{
	struct share_key key = { .kind = kind };
	char name[SHARE_NAME_BYTES], full[sizeof CDI_SHARE_KIND + SHARE_NAME_BYTES];
	for (size_t i = 0; i < ids->count; i++) {
		if (!late->config.is_offered(late->config.arg, kind, ids->items[i]))
			return err_set(err, ERR_INVALID,
				       "no device \"" STR_FMT "\" of %s is offered",
				       STR_ARG(str_slice(ids->items[i], 0, SHARE_ID_BYTES)),
				       share_resource(kind));
		share_key_add(&key, ids->items[i]);
	}
	make_name(name);
	if (share_table_allocate(late->table, &key, name) == NULL)
		return err_set(err, ERR_LIMIT, "more than %d allocations of shares",
			       SHARE_GRANTS_MAX);
	(void)snprintf(full, sizeof full, CDI_SHARE_KIND "=%s", name);
	const struct str cdi = str_of(full);
	static const struct dp_pair nothing = { { "NVIDIA_VISIBLE_DEVICES", 22 }, { "void", 4 } };
	const struct dp_allocated answer = {
		.envs = &nothing, .env_count = 1, .cdi_names = &cdi, .cdi_count = 1
	};
	dp_put_allocated(out, &answer);
	return buf_ok(out) ? ERR_OK : err_set(err, ERR_LIMIT, "no memory for the answer");
}

err_status late_allocate(struct late *late, share_kind kind, const struct dp_allocate_list *request,
			 struct buf *out, struct err *err)
{
	err_status status = ERR_OK;
	for (size_t i = 0; i < request->count && status == ERR_OK; i++)
		status = allocate_one(late, kind, &request->items[i], out, err);
	// A name that was answered must be known whatever happens to this process.
	if (status == ERR_OK)
		status = save(late, err);
	if (status == ERR_OK)
		late->stats.allocations++;
	return status;
}

// ---- questions under way

static void remove_waiter(struct late *late, struct late_waiter *waiter)
{
	for (size_t i = 0; i < LATE_WAITERS_MAX; i++) {
		if (late->waiters[i] == waiter)
			late->waiters[i] = NULL;
	}
	free(waiter);
}

// The kubelet has given up, or died: nothing is written for it any more.
static void on_waiter_closed(void *arg)
{
	struct late_waiter *waiter = arg;
	remove_waiter(waiter->late, waiter);
}

static void tell_refusal(struct late *late, const struct late_waiter *waiter, const char *why)
{
	const struct share_holder *holder = &waiter->holder;
	const struct event_about about = { .api_version = "v1",
					   .kind = "Pod",
					   .namespace_ = holder->namespace_,
					   .name = holder->pod,
					   .uid = holder->uid };
	char note[600];
	late->stats.refusals++;
	log_kv(LOG_WARN, "container with a share is not started", "namespace", holder->namespace_,
	       "pod", holder->pod, "container", holder->container, "why", why, NULL);
	if (late->config.events == NULL || holder->uid[0] == '\0')
		return;
	(void)snprintf(note, sizeof note, "container %.63s is not started: %.500s",
		       holder->container, why);
	event_put(late->config.events, &about, "Warning", "GPUShareNotGiven", "BindShare", note);
}

static void finish(struct late *late, struct late_waiter *waiter, err_status status,
		   const struct err *err)
{
	if (status == ERR_OK) {
		grpc_send(waiter->stream, STR(""));
		grpc_finish(waiter->stream, GRPC_OK, "");
	} else {
		tell_refusal(late, waiter, err->text);
		grpc_finish(waiter->stream, GRPC_FAILED_PRECONDITION, err->text);
	}
	remove_waiter(late, waiter);
}

static err_status bind(struct late *late, struct late_waiter *waiter, struct err *err)
{
	struct share_grant *grant = share_table_find(late->table, &waiter->key);
	if (grant == NULL)
		return err_set(err, ERR_NOT_FOUND,
			       "the allocation of %u %s is not known: its pod must be made anew",
			       waiter->key.count, share_resource(waiter->key.kind));
	if (!grant->is_bound) {
		err_status status = late_resolve(late, waiter, grant, err);
		if (status == ERR_OK)
			status = save(late, err);
		if (status != ERR_OK) {
			share_table_unbind(grant);
			return status;
		}
		late->stats.binds++;
	}
	waiter->holder = grant->holder;
	err_status status = late->config.write_spec(late->config.arg, grant, err);
	late_show(late);
	return status;
}

static void try_waiters(struct late *late)
{
	uint64_t now_ns = loop_now_ns(late->loop);
	bool is_any_left = false;
	for (size_t i = 0; i < LATE_WAITERS_MAX; i++) {
		struct late_waiter *waiter = late->waiters[i];
		struct err err = { 0 };
		if (waiter == NULL)
			continue;
		err_status status = ERR_UNAVAILABLE;
		if (waiter->list_no <= late->list_done_no)
			status = bind(late, waiter, &err);
		else
			(void)err_set(&err, status,
				      "the kubelet does not say who holds its devices");
		bool waits = status == ERR_UNAVAILABLE && now_ns - waiter->since_ns < WAIT_MAX_NS;
		if (!waits)
			finish(late, waiter, status, &err);
		is_any_left = is_any_left || waits;
	}
	if (is_any_left)
		loop_timer_set(late->timer, AGAIN_NS);
}

// ---- the kubelet's sources

static void read_checkpoint(struct late *late)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct err err = { 0 };
	late->has_checkpoint =
		fs_read(late->checkpoint_path, LATE_CHECKPOINT_MAX_BYTES, &text, &err) == ERR_OK &&
		share_seen_checkpoint(&late->by_checkpoint, buf_str(&text), &err) == ERR_OK;
}

static void start_list(struct late *late);

static void on_listed(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct late *late = arg;
	struct err err = { 0 };
	late->call = NULL;
	read_checkpoint(late);
	if (code != GRPC_OK || share_seen_answer(&late->by_list, message, &err) != ERR_OK) {
		if (late->stats.list_failures++ % 64 == 0)
			log_kv(LOG_WARN, "PodResources does not answer", "why",
			       code != GRPC_OK ? error : err.text, NULL);
		loop_timer_set(late->timer, AGAIN_SOON_NS);
		return;
	}
	late->stats.lists++;
	late->list_done_no = late->list_no;
	share_table_list_begin(late->table);
	for (size_t i = 0; i < late->by_list.count; i++)
		share_table_list(late->table, &late->by_list.items[i].key);
	try_waiters(late);
	if (late->is_again)
		start_list(late);
}

// One call serves all who wait; who came after it began needs the next.
static void start_list(struct late *late)
{
	late->is_again = late->call != NULL;
	if (late->call != NULL)
		return;
	late->list_no++;
	late->call = grpc_call_start(late->loop, late->socket, PODRES_LIST, STR(""),
				     LIST_TIMEOUT_NS, on_listed, late);
	if (late->call == NULL)
		loop_timer_set(late->timer, AGAIN_NS);
}

static void on_timer(void *arg)
{
	struct late *late = arg;
	try_waiters(late); // ends who waited too long, whatever the kubelet does
	for (size_t i = 0; i < LATE_WAITERS_MAX; i++) {
		if (late->waiters[i] == NULL)
			continue;
		start_list(late);
		loop_timer_set(late->timer, AGAIN_NS);
		return;
	}
}

static bool add_waiter(struct late *late, struct late_waiter *waiter)
{
	for (size_t i = 0; i < LATE_WAITERS_MAX; i++) {
		if (late->waiters[i] != NULL)
			continue;
		late->waiters[i] = waiter;
		return true;
	}
	return false;
}

void late_pre_start(struct late *late, share_kind kind, struct grpc_stream *stream,
		    struct str message)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	struct late_waiter *waiter = calloc(1, sizeof *waiter);
	struct dp_ids ids = { 0 };
	struct err err = { 0 };
	if (arena == NULL || waiter == NULL ||
	    dp_read_pre_start(arena, message, &ids, &err) != ERR_OK || !add_waiter(late, waiter)) {
		free(waiter);
		grpc_finish(stream, GRPC_INVALID_ARGUMENT,
			    err.text[0] != '\0' ? err.text : "too many containers start at once");
		return;
	}
	*waiter = (struct late_waiter){ .late = late,
					.stream = stream,
					.key = { .kind = kind },
					.since_ns = loop_now_ns(late->loop),
					.list_no = late->list_no + 1 };
	for (size_t i = 0; i < ids.count; i++)
		share_key_add(&waiter->key, ids.items[i]);
	const struct share_grant *grant = share_table_find(late->table, &waiter->key);
	if (grant == NULL || grant->is_bound) { // a restarted container asks nobody
		waiter->list_no = 0;
		err_status status = bind(late, waiter, &err);
		finish(late, waiter, status, &err);
		return;
	}
	grpc_stream_on_closed(stream, on_waiter_closed, waiter);
	start_list(late);
}

void late_look(struct late *late)
{
	for (size_t i = 0; i < LATE_WAITERS_MAX; i++) {
		if (late->waiters[i] != NULL)
			loop_timer_set(late->timer, CHANGED_NS);
	}
}

// ---- who holds what

// What one pod has of one GPU is one allocation, whatever its containers have of it.
static struct share sum_of(struct late *late, size_t first)
{
	const struct share_grant *grant = share_table_at(late->table, first);
	struct share sum = grant->share;
	for (size_t i = 0; i < share_table_count(late->table); i++) {
		const struct share_grant *other = share_table_at(late->table, i);
		bool is_same = strcmp(other->uuid, grant->uuid) == 0 &&
			       strcmp(other->holder.uid, grant->holder.uid) == 0 &&
			       share_grant_lives(other, late_pod_lives, late);
		if (!is_same || i == first)
			continue;
		if (i < first)
			return (struct share){ 0 }; // told with the first
		share_add(&sum, &other->share);
	}
	// Containers start one after the other; what they will have is the pod's from the first on.
	const struct pods_item *item = NULL;
	if (late->config.pods != NULL)
		item = pods_find(late->config.pods, grant->holder.uid);
	return item == NULL || item->plan == NULL ? sum : plan_share_sum(item->plan, grant->uuid);
}

void late_show(struct late *late)
{
	struct usage *usage = late->config.usage;
	int64_t now_s = world_wall_s(loop_world(late->loop));
	for (size_t i = 0; i < share_table_count(late->table); i++) {
		const struct share_grant *grant = share_table_at(late->table, i);
		if (!share_grant_lives(grant, late_pod_lives, late))
			continue;
		struct share sum = sum_of(late, i);
		if (sum.milli == 0 && sum.memory_mib == 0)
			continue;
		const struct gpu_info *gpu = NULL;
		(void)late->config.check_gpu(late->config.arg, grant->uuid, &gpu, NULL);
		int64_t memory_mib = gpu == NULL ? 0 : (int64_t)gpu_memory_mib(gpu);
		int64_t milli = share_dominant_milli(&sum, memory_mib);
		const struct usage_holder holder = {
			.pod_uid = str_of(grant->holder.uid),
			.namespace_ = str_of(grant->holder.namespace_),
			.pod = str_of(grant->holder.pod),
			.container = str_of(grant->holder.container),
			.gpu = str_of(grant->uuid),
			.shares = SHARE_WHOLE_MILLI,
			.share_count = (uint32_t)max_i64(1, min_i64(milli, SHARE_WHOLE_MILLI)),
			.is_first_choice = true,
		};
		usage_show(usage, &holder, now_s);
	}
}

static void on_drop(void *arg, const struct share_grant *grant)
{
	struct late *late = arg;
	late->config.remove_spec(late->config.arg, grant);
	late->is_dirty = true;
}

void late_refresh(struct late *late)
{
	struct err err = { 0 };
	int64_t now_s = world_wall_s(loop_world(late->loop));
	if (share_table_count(late->table) > 0)
		start_list(late);
	// After a start the kubelet's word is waited for.
	if (late->list_done_no > 0)
		share_table_prune(late->table, now_s, late_pod_lives, on_drop, late);
	if (late->is_dirty)
		save_or_log(late);
	late->is_dirty = false;
	for (size_t i = 0; i < share_table_count(late->table); i++) {
		const struct share_grant *grant = share_table_at(late->table, i);
		if (grant->is_bound &&
		    late->config.write_spec(late->config.arg, grant, &err) != ERR_OK)
			log_err(LOG_ERROR, "specification of a share is not written", &err);
	}
}

static bool copy(char *out, size_t out_bytes, const char *text)
{
	return usage_text(out, out_bytes, str_of(text));
}

err_status late_new(struct loop *loop, const struct late_config *config, struct late **ret,
		    struct err *err)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct late *late = calloc(1, sizeof *late);
	if (late == NULL)
		return err_set(err, ERR_LIMIT, "no memory for shares");
	late->loop = loop;
	late->config = *config;
	late->timer = loop_timer_new(loop, on_timer, late);
	late->table = share_table_new();
	err_status status = ERR_OK;
	if (late->table == NULL)
		status = err_set(err, ERR_LIMIT, "no memory for shares");
	else if (!copy(late->socket, sizeof late->socket, config->pod_resources_socket) ||
		 !copy(late->checkpoint_path, sizeof late->checkpoint_path,
		       config->checkpoint_path) ||
		 !copy(late->state_path, sizeof late->state_path, config->state_path))
		status = err_set(err, ERR_INVALID, "a path for shares is too long");
	else
		status = fs_read(late->state_path, FILE_MAX_BYTES, &text, err);
	if (status == ERR_OK)
		share_table_load(late->table, buf_str(&text));
	if (status != ERR_OK && status != ERR_NOT_FOUND) {
		late_free(late);
		return status;
	}
	*ret = late;
	return ERR_OK;
}

void late_free(struct late *late)
{
	if (late == NULL)
		return;
	if (late->call != NULL)
		grpc_call_cancel(late->call);
	for (size_t i = 0; i < LATE_WAITERS_MAX; i++)
		free(late->waiters[i]); // their streams have been closed with the plugins
	loop_timer_free(late->timer);
	share_table_free(late->table);
	share_seen_done(&late->by_list);
	share_seen_done(&late->by_checkpoint);
	free(late);
}

const struct share_table *late_table(const struct late *late) { return late->table; }

void late_stats(const struct late *late, struct late_stats *ret)
{
	*ret = late->stats;
	for (size_t i = 0; i < LATE_WAITERS_MAX; i++)
		ret->waiting += late->waiters[i] != NULL ? 1 : 0;
	for (size_t i = 0; i < share_table_count(late->table); i++) {
		const struct share_grant *grant = share_table_at(late->table, i);
		ret->bound += share_grant_lives(grant, late_pod_lives, (void *)(uintptr_t)late);
	}
}

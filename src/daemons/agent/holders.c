// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/holders.h"

#include "daemons/agent/checkpoint.h"
#include "daemons/agent/dp_proto.h"
#include "daemons/agent/dra_proto.h"
#include "daemons/agent/offer.h"
#include "net/grpc.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define MS UINT64_C(1000000)
static const uint64_t LOOK_EACH_NS = 10000 * MS;
static const uint64_t LIST_TIMEOUT_NS = 3000 * MS;
// After an allocation: the file within moments, the list when the pod is admitted.
static const uint64_t expect_ns[] = { 10 * MS, 50 * MS, 200 * MS, 500 * MS, 1000 * MS, 2000 * MS };

enum { ROWS_MAX = 8192 };

struct row {
	char gpu[GPU_UUID_BYTES];
	uint32_t share; // OFFER_WHOLE
	char pod_uid[POD_SHORT_BYTES], container[POD_SHORT_BYTES];
};

struct holders {
	struct loop *loop;
	struct holders_config config;
	char socket[256], path[512];
	struct grpc_call *call;
	struct loop_timer *timer, *expect_timer;
	size_t expect_i;
	bool is_again;    // a look was wanted while one was under way
	struct stat seen; // of the checkpoint
	bool has_file, is_file_good;
	struct row *rows; // of the checkpoint, ROWS_MAX of them
	size_t row_count;
	struct holders_stats stats;
};

static void on_checkpoint_row(void *arg, const struct checkpoint_row *from)
{
	struct holders *holders = arg;
	struct str uuid = { 0 };
	if (holders->row_count == ROWS_MAX)
		return;
	struct row *row = &holders->rows[holders->row_count];
	if (!offer_is_ours(from->resource, holders->config.resource) ||
	    !offer_id_parse(from->id, &uuid, &row->share) ||
	    !usage_text(row->gpu, sizeof row->gpu, uuid) ||
	    !usage_text(row->pod_uid, sizeof row->pod_uid, from->pod_uid) ||
	    !usage_text(row->container, sizeof row->container, from->container))
		return;
	holders->row_count++;
}

static void read_file(struct holders *holders)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct stat now;
	struct err err;
	holders->has_file = stat(holders->path, &now) == 0;
	if (!holders->has_file) {
		holders->row_count = 0;
		return;
	}
	bool is_same = holders->is_file_good && now.st_ino == holders->seen.st_ino &&
		       now.st_ctim.tv_sec == holders->seen.st_ctim.tv_sec &&
		       now.st_ctim.tv_nsec == holders->seen.st_ctim.tv_nsec;
	if (is_same)
		return;
	holders->seen = now;
	holders->row_count = 0;
	holders->is_file_good =
		fs_read(holders->path, CHECKPOINT_MAX_BYTES, &text, &err) == ERR_OK &&
		checkpoint_read(buf_str(&text), on_checkpoint_row, holders, &err) == ERR_OK;
	holders->stats.checkpoints++;
	if (holders->is_file_good)
		return;
	holders->stats.checkpoint_failures++;
	log_err(LOG_WARN, "the kubelet's checkpoint is not read", &err);
}

static int64_t now_s(const struct holders *holders)
{
	return world_wall_s(loop_world(holders->loop));
}

static void show(struct holders *holders, struct usage_holder *holder, uint32_t share)
{
	if (holders->config.resolve(holders->config.arg, share, holder))
		usage_show(holders->config.usage, holder, now_s(holders));
}

static void show_file(struct holders *holders)
{
	ASSERT(holders->row_count <= ROWS_MAX);
	for (size_t i = 0; i < holders->row_count; i++) {
		const struct row *row = &holders->rows[i];
		struct usage_holder holder = { .pod_uid = str_of(row->pod_uid),
					       .container = str_of(row->container),
					       .gpu = str_of(row->gpu) };
		show(holders, &holder, row->share);
	}
}

void holders_read_checkpoint(struct holders *holders)
{
	uint64_t before = holders->stats.checkpoints;
	read_file(holders);
	if (holders->stats.checkpoints == before || !holders->is_file_good)
		return;
	show_file(holders);
	holders->config.on_look(holders->config.arg);
}

// The UID that the file names for the device, else the one of the pod's name.
static struct str uid_of(struct holders *holders, const struct podres_row *from, struct str uuid,
			 uint32_t share)
{
	const struct pods_item *item = NULL;
	if (holders->config.pods != NULL)
		item = pods_find_name(holders->config.pods, from->namespace_, from->pod);
	for (size_t i = 0; i < holders->row_count; i++) {
		const struct row *row = &holders->rows[i];
		if (row->share != share || !str_eq_c(uuid, row->gpu))
			continue;
		if (item != NULL && strcmp(item->facts.uid, row->pod_uid) != 0) {
			holders->stats.disagreements++;
			break; // the file is a moment older or newer: the list counts
		}
		return str_of(row->pod_uid);
	}
	return item == NULL ? STR("") : str_of(item->facts.uid);
}

// Who holds a device by a claim. Of pods that share a claim one is told at a time: the first, then
// whoever is left.
static void on_claimed(struct holders *holders, const struct podres_row *from)
{
	char uuid[GPU_UUID_BYTES];
	const struct pods_item *item = NULL;
	if (holders->config.pods != NULL)
		item = pods_find_name(holders->config.pods, from->namespace_, from->pod);
	if (item == NULL || !dra_device_uuid(from->id, uuid))
		return; // the pod will be known in a moment
	struct usage_holder holder = { .pod_uid = str_of(item->facts.uid),
				       .namespace_ = from->namespace_,
				       .pod = from->pod,
				       .container = from->container,
				       .gpu = str_of(uuid),
				       .is_of_claim = true,
				       .is_first_choice = true };
	if (holders->config.resolve(holders->config.arg, OFFER_WHOLE, &holder) &&
	    !usage_is_others(holders->config.usage, &holder))
		usage_show(holders->config.usage, &holder, now_s(holders));
}

static void on_row(void *arg, const struct podres_row *from)
{
	struct holders *holders = arg;
	struct str uuid = { 0 };
	uint32_t share = OFFER_WHOLE;
	if (str_eq_c(from->resource, DRA_DRIVER)) {
		on_claimed(holders, from);
		return;
	}
	if (!offer_is_ours(from->resource, holders->config.resource) ||
	    !offer_id_parse(from->id, &uuid, &share))
		return;
	struct usage_holder holder = { .pod_uid = uid_of(holders, from, uuid, share),
				       .namespace_ = from->namespace_,
				       .pod = from->pod,
				       .container = from->container,
				       .gpu = uuid,
				       .is_first_choice = true };
	// Without a UID nothing can be joined; the pod will be known in a moment.
	if (holder.pod_uid.len == 0 && holders->config.pods != NULL)
		return;
	show(holders, &holder, share);
}

static void on_listed(void *arg, enum grpc_code code, const char *error, struct str message)
{
	struct holders *holders = arg;
	struct err err;
	holders->call = NULL;
	read_file(holders);
	bool is_listed = code == GRPC_OK;
	if (is_listed && podres_read_list(message, NULL, NULL, &err) != ERR_OK) {
		log_err(LOG_WARN, "PodResources", &err);
		is_listed = false;
	}
	bool is_file_good = !holders->has_file || holders->is_file_good;
	// What is not shown any more ends only by an answer of both sources.
	bool is_whole = is_listed && is_file_good && holders->config.is_ready(holders->config.arg);
	if (is_whole)
		usage_show_begin(holders->config.usage);
	show_file(holders);
	if (is_listed && podres_read_list(message, on_row, holders, &err) == ERR_OK) {
		holders->stats.lists++;
		holders->stats.is_listed = true;
	} else {
		holders->stats.is_listed = false;
		if (holders->stats.list_failures++ % 64 == 0)
			log_kv(LOG_WARN, "PodResources does not answer", "why", error, NULL);
	}
	holders->config.show_more(holders->config.arg);
	if (is_whole)
		usage_show_end(holders->config.usage, now_s(holders));
	holders->config.on_look(holders->config.arg);
	if (holders->is_again) {
		holders->is_again = false;
		holders_look(holders);
	}
}

void holders_look(struct holders *holders)
{
	loop_timer_set(holders->timer, LOOK_EACH_NS);
	if (holders->call != NULL) {
		holders->is_again = true;
		return;
	}
	holders->call = grpc_call_start(holders->loop, holders->socket, PODRES_LIST, STR(""),
					LIST_TIMEOUT_NS, on_listed, holders);
}

static void on_timer(void *arg) { holders_look(arg); }

static void on_expect(void *arg)
{
	struct holders *holders = arg;
	holders_read_checkpoint(holders);
	holders_look(holders);
	if (++holders->expect_i < ARRAY_COUNT(expect_ns))
		loop_timer_set(holders->expect_timer, expect_ns[holders->expect_i]);
}

void holders_expect(struct holders *holders)
{
	holders->expect_i = 0;
	loop_timer_set(holders->expect_timer, expect_ns[0]);
}

err_status holders_new(struct loop *loop, const struct holders_config *config, struct holders **ret,
		       struct err *err)
{
	struct holders *holders = calloc(1, sizeof *holders);
	if (holders == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the holders of devices");
	holders->rows = calloc(ROWS_MAX, sizeof holders->rows[0]); // touched as far as it is used
	if (holders->rows == NULL) {
		free(holders);
		return err_set(err, ERR_LIMIT, "no memory for the holders of devices");
	}
	holders->loop = loop;
	holders->config = *config;
	if (!usage_text(holders->socket, sizeof holders->socket,
			str_of(config->pod_resources_socket)) ||
	    !usage_text(holders->path, sizeof holders->path, str_of(config->checkpoint_path))) {
		free(holders->rows);
		free(holders);
		return err_set(err, ERR_INVALID, "path of the kubelet is too long");
	}
	holders->timer = loop_timer_new(loop, on_timer, holders);
	holders->expect_timer = loop_timer_new(loop, on_expect, holders);
	loop_timer_set(holders->timer, 0);
	*ret = holders;
	return ERR_OK;
}

void holders_free(struct holders *holders)
{
	if (holders == NULL)
		return;
	if (holders->call != NULL)
		grpc_call_cancel(holders->call);
	loop_timer_free(holders->timer);
	loop_timer_free(holders->expect_timer);
	free(holders->rows);
	free(holders);
}

bool holders_has_row(const struct holders *holders, const char *gpu, const char *pod_uid)
{
	for (size_t i = 0; i < holders->row_count; i++) {
		const struct row *row = &holders->rows[i];
		if (strcmp(row->gpu, gpu) == 0 && strcmp(row->pod_uid, pod_uid) == 0)
			return true;
	}
	return false;
}

void holders_stats(const struct holders *holders, struct holders_stats *ret)
{
	*ret = holders->stats;
}

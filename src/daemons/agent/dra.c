// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dra.h"

#include "daemons/agent/cdi.h"
#include "k8s/path.h"
#include "net/grpc.h"
#include "sys/fs.h"
#include "sys/log.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ARENA_BYTES = 1024 * 1024, SOCKET_BYTES = 108, JOBS_MAX = 64 };

// One NodePrepareResources under way: its claims one after the other.
struct job {
	struct dra *dra;
	struct grpc_stream *stream;
	struct arena *arena;
	struct dra_refs refs;
	bool is_dropped[DRA_REFS_MAX]; // unprepared meanwhile
	size_t i;
	struct k8s_call *call;
	struct buf out;
	struct job *next;
};

struct dra {
	struct loop *loop;
	struct dra_config config;
	struct dra_table *table;
	char registry[SOCKET_BYTES], service[SOCKET_BYTES];
	struct grpc_server *registry_server, *service_server;
	struct grpc_stream *health;
	struct job *jobs;
	size_t job_count;
	struct dra_stats stats;
};

static void step(struct job *job);

static void names_of(struct dra *dra, const struct dra_claim *claim,
		     char texts[GPU_MAX][GPU_UUID_BYTES], const char *ret_names[GPU_MAX])
{
	for (size_t i = 0; i < claim->count; i++) {
		const char *uuid = claim->devices[i].uuid;
		if (!dra->config.cdi_name(dra->config.arg, uuid, texts[i]))
			(void)snprintf(texts[i], GPU_UUID_BYTES, "%s", uuid);
		ret_names[i] = texts[i];
	}
}

static err_status write_cdi(struct dra *dra, const struct dra_claim *claim, struct err *err)
{
	char texts[GPU_MAX][GPU_UUID_BYTES];
	const char *names[GPU_MAX];
	names_of(dra, claim, texts, names);
	return dra_cdi_write(dra->config.cdi_dir, claim, names, err);
}

static void answer(struct job *job, const struct dra_claim *claim)
{
	struct dra_given given[GPU_MAX];
	char devices[GPU_MAX][GPU_UUID_BYTES], names[GPU_MAX][DRA_CDI_BYTES];
	ASSERT(claim->count <= GPU_MAX);
	for (size_t i = 0; i < claim->count; i++) {
		const struct dra_device *device = &claim->devices[i];
		given[i] = (struct dra_given){
			.request = device->request,
			.pool = job->dra->config.node,
			.device = dra_device_name(device->uuid, devices[i]),
			.cdi_name = dra_cdi_name(claim->uid, device->uuid, names[i]),
		};
	}
	dra_put_prepared(&job->out, str_of(claim->uid), given, claim->count, NULL);
}

static void refuse(struct job *job, const struct err *why)
{
	const struct dra_ref *ref = &job->refs.items[job->i];
	char name[DRA_NAME_BYTES * 2];
	(void)snprintf(name, sizeof name, STR_FMT "/" STR_FMT, STR_ARG(ref->namespace_),
		       STR_ARG(ref->name));
	job->dra->stats.failures++;
	log_kv(LOG_WARN, "claim is not prepared", "claim", name, "why", why->text, NULL);
	dra_put_prepared(&job->out, ref->uid, NULL, 0,
			 why->text[0] == '\0' ? "it failed" : why->text);
}

static bool has_same_devices(const struct dra_claim *a, const struct dra_claim *b)
{
	for (size_t i = 0; i < a->count; i++) {
		size_t k = 0;
		while (k < b->count && strcmp(a->devices[i].uuid, b->devices[k].uuid) != 0)
			k++;
		if (k == b->count)
			return false;
	}
	return a->count == b->count;
}

// What of the agent before is not what is allocated now: nobody unprepared it.
static void note_change(struct dra *dra, const struct dra_claim *old, const struct dra_claim *claim)
{
	if (old->name[0] != '\0' && !has_same_devices(old, claim)) {
		log_kv(LOG_WARN, "claim has other devices than before", "namespace",
		       claim->namespace_, "claim", claim->name, NULL);
		dra->config.on_release(dra->config.arg, old);
	}
}

static err_status prepare(struct job *job, struct str body, struct err *err)
{
	struct dra *dra = job->dra;
	struct dra_claim claim, old = { .count = 0 };
	const struct dra_ref *ref = &job->refs.items[job->i];
	if (job->is_dropped[job->i])
		return err_set(err, ERR_CONFLICT, "the claim was unprepared meanwhile");
	err_status status = dra_claim_read(body, ref, dra->config.node, &claim, err);
	const struct dra_claim *known = dra_table_find(dra->table, ref->uid);
	if (known != NULL)
		old = *known;
	// Who has it already keeps it, whatever has become of the GPU.
	if (status == ERR_OK && !has_same_devices(&old, &claim))
		status = dra->config.check(dra->config.arg, &claim, err);
	if (status != ERR_OK)
		return status;
	// A conflict must not touch the file of the claim that has the GPU; theirs differ by UID.
	status = write_cdi(dra, &claim, err);
	if (status != ERR_OK)
		return status;
	claim.prepared_ns = loop_now_ns(dra->loop);
	status = dra_table_add(dra->table, &claim, err);
	if (status != ERR_OK) {
		if (known == NULL) // else the next look mends it
			dra_cdi_remove(dra->config.cdi_dir, claim.uid);
		return status;
	}
	note_change(dra, &old, &claim);
	dra->stats.prepared += known == NULL ? 1 : 0;
	log_kv(LOG_INFO, "claim is prepared", "namespace", claim.namespace_, "claim", claim.name,
	       "pod", claim.pod, NULL);
	dra->config.on_prepared(dra->config.arg, dra_table_find(dra->table, ref->uid));
	return ERR_OK;
}

// The answer for a claim that the table has; its CDI file may have been lost with a reboot.
static void answer_again(struct job *job, const struct dra_claim *claim)
{
	struct err err;
	if (write_cdi(job->dra, claim, &err) == ERR_OK)
		answer(job, claim);
	else
		refuse(job, &err);
}

// Without the API server's word what is on disk counts, if it says all.
static bool is_complete(const struct dra_claim *known)
{
	return known != NULL && known->name[0] != '\0';
}

static void on_claim(void *arg, const struct k8s_result *result)
{
	struct job *job = arg;
	struct err err = { 0 };
	job->call = NULL;
	struct str uid = job->refs.items[job->i].uid;
	const struct dra_claim *known = dra_table_find(job->dra->table, uid);
	bool is_by_us = known != NULL && known->prepared_ns != 0; // by another call in between
	if (is_by_us || (result->status != ERR_OK && is_complete(known)))
		answer_again(job, known);
	else if (result->status != ERR_OK)
		refuse(job, result->err);
	else if (prepare(job, result->body, &err) != ERR_OK)
		refuse(job, &err);
	else
		answer(job, dra_table_find(job->dra->table, uid));
	job->i++;
	step(job);
}

static void job_free(struct job *job)
{
	struct dra *dra = job->dra;
	struct job **at = &dra->jobs;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	ASSERT(dra->job_count > 0);
	dra->job_count--;
	k8s_call_cancel(job->call);
	arena_free(job->arena);
	buf_done(&job->out);
	free(job);
}

static void on_job_closed(void *arg) { job_free(arg); }

static bool ask(struct job *job)
{
	const struct dra_ref *ref = &job->refs.items[job->i];
	const struct k8s_object_path path = { .group_version = "resource.k8s.io/v1",
					      .resource = "resourceclaims",
					      .namespace_ = arena_cstr(job->arena, ref->namespace_),
					      .name = arena_cstr(job->arena, ref->name) };
	const struct k8s_request request = { .method = "GET",
					     .path = k8s_path(job->arena, &path),
					     .on_done = on_claim,
					     .arg = job };
	if (path.namespace_ != NULL && path.name != NULL && request.path.data != NULL)
		job->call = k8s_call_start(job->dra->config.client, &request);
	return job->call != NULL;
}

static void step(struct job *job)
{
	struct err err;
	while (job->i < job->refs.count) {
		const struct dra_claim *claim =
			dra_table_find(job->dra->table, job->refs.items[job->i].uid);
		if (claim != NULL && claim->prepared_ns != 0) {
			answer_again(job, claim);
		} else if (ask(job)) {
			return;
		} else if (is_complete(claim)) {
			answer_again(job, claim);
		} else {
			(void)err_set(&err, ERR_LIMIT, "no memory to ask for the claim");
			refuse(job, &err);
		}
		job->i++;
	}
	grpc_send(job->stream, buf_str(&job->out));
	grpc_finish(job->stream, GRPC_OK, "");
	job_free(job);
}

// The message lives no longer than its callback.
static err_status read_job(struct job *job, struct str message, struct err *err)
{
	struct str copy = arena_dup(job->arena, message);
	if (message.len > 0 && copy.data == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the claims");
	return dra_read_refs(job->arena, copy, &job->refs, err);
}

static void on_prepare(void *arg, struct grpc_stream *stream, struct str message)
{
	struct dra *dra = arg;
	struct err err = { 0 };
	struct job *job = dra->job_count < JOBS_MAX ? calloc(1, sizeof *job) : NULL;
	if (job != NULL)
		job->arena = arena_new(ARENA_BYTES);
	if (job == NULL || job->arena == NULL) {
		free(job);
		grpc_finish(stream, GRPC_RESOURCE_EXHAUSTED, "too many calls at once");
		return;
	}
	*job = (struct job){ .dra = dra,
			     .stream = stream,
			     .arena = job->arena,
			     .out = { .limit = GRPC_MESSAGE_MAX_BYTES },
			     .next = dra->jobs };
	dra->jobs = job;
	dra->job_count++;
	if (read_job(job, message, &err) != ERR_OK) {
		job_free(job);
		grpc_finish(stream, GRPC_INVALID_ARGUMENT, err.text);
		return;
	}
	grpc_stream_on_closed(stream, on_job_closed, job);
	step(job);
}

// What is being prepared now must not come after its end.
static void drop_jobs(struct dra *dra, struct str uid)
{
	for (struct job *job = dra->jobs; job != NULL; job = job->next) {
		for (size_t i = job->i; i < job->refs.count; i++) {
			if (str_eq(job->refs.items[i].uid, uid))
				job->is_dropped[i] = true;
		}
	}
}

static err_status unprepare(struct dra *dra, struct str uid, struct err *err)
{
	drop_jobs(dra, uid);
	const struct dra_claim *known = dra_table_find(dra->table, uid);
	if (known == NULL)
		return ERR_OK;
	struct dra_claim claim = *known;
	err_status status = dra_table_remove(dra->table, uid, err);
	if (status != ERR_OK)
		return status;
	// A file that a kill leaves here is removed at the next start.
	dra_cdi_remove(dra->config.cdi_dir, claim.uid);
	dra->stats.unprepared++;
	log_kv(LOG_INFO, "claim is unprepared", "namespace", claim.namespace_, "claim", claim.name,
	       "pod", claim.pod, NULL);
	dra->config.on_release(dra->config.arg, &claim);
	return ERR_OK;
}

static void on_unprepare(void *arg, struct grpc_stream *stream, struct str message)
{
	struct dra *dra = arg;
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	AUTO(buf_done) struct buf out = { .limit = GRPC_MESSAGE_MAX_BYTES };
	struct dra_refs refs = { 0 };
	struct err err = { 0 };
	if (arena == NULL || dra_read_refs(arena, message, &refs, &err) != ERR_OK) {
		grpc_finish(stream, GRPC_INVALID_ARGUMENT, err.text);
		return;
	}
	for (size_t i = 0; i < refs.count; i++) {
		bool ok = unprepare(dra, refs.items[i].uid, &err) == ERR_OK;
		if (!ok)
			log_err(LOG_ERROR, "claim is not unprepared", &err);
		dra->stats.failures += ok ? 0 : 1;
		dra_put_unprepared(&out, refs.items[i].uid, ok ? NULL : err.text);
	}
	grpc_send(stream, buf_str(&out));
	grpc_finish(stream, GRPC_OK, "");
}

static void on_health_closed(void *arg)
{
	struct dra *dra = arg;
	dra->health = NULL;
}

static void on_watch(void *arg, struct grpc_stream *stream, struct str message)
{
	struct dra *dra = arg;
	(void)message;
	// The older one belongs to a connection gone by.
	if (dra->health != NULL)
		grpc_finish(dra->health, GRPC_CANCELLED, "another stream was opened");
	dra->health = stream;
	grpc_stream_on_closed(stream, on_health_closed, dra);
	dra_tell_health(dra);
}

void dra_tell_health(struct dra *dra)
{
	AUTO(buf_done) struct buf out = { .limit = GRPC_MESSAGE_MAX_BYTES };
	if (dra->health == NULL)
		return;
	dra->config.put_health(dra->config.arg, &out);
	grpc_send(dra->health, buf_str(&out));
}

static void on_info(void *arg, struct grpc_stream *stream, struct str message)
{
	const struct dra *dra = arg;
	AUTO(buf_done) struct buf out = { 0 };
	(void)message;
	dra_put_info(&out, dra->service);
	grpc_send(stream, buf_str(&out));
	grpc_finish(stream, GRPC_OK, "");
}

static void on_notify(void *arg, struct grpc_stream *stream, struct str message)
{
	struct dra *dra = arg;
	bool is_registered = false;
	struct str error = STR("");
	struct err err;
	if (dra_read_status(message, &is_registered, &error, &err) != ERR_OK) {
		grpc_finish(stream, GRPC_INVALID_ARGUMENT, err.text);
		return;
	}
	dra->stats.is_registered = is_registered;
	if (is_registered) {
		log_kv(LOG_INFO, "registered with the kubelet", "driver", DRA_DRIVER, NULL);
	} else {
		(void)err_set(&err, ERR_UNAVAILABLE, STR_FMT, STR_ARG(error));
		log_err(LOG_ERROR, "the kubelet does not take the registration", &err);
	}
	grpc_send(stream, STR(""));
	grpc_finish(stream, GRPC_OK, "");
}

static const struct grpc_method registry_methods[] = {
	{ DRA_GET_INFO, on_info },
	{ DRA_NOTIFY, on_notify },
};
static const struct grpc_method service_methods[] = {
	{ DRA_PREPARE, on_prepare },
	{ DRA_UNPREPARE, on_unprepare },
	{ DRA_WATCH, on_watch },
};

static void close_servers(struct dra *dra)
{
	// The registration first: the kubelet then asks nothing more.
	grpc_server_free(dra->registry_server);
	dra->registry_server = NULL;
	grpc_server_free(dra->service_server); // its calls end by their closing callbacks
	dra->service_server = NULL;
	dra->health = NULL;
	dra->stats.is_registered = false;
}

static err_status open_servers(struct dra *dra, struct err *err)
{
	char folder[PATH_MAX];
	(void)snprintf(folder, sizeof folder, "%.3000s/" DRA_DRIVER, dra->config.plugins_dir);
	err_status status = fs_mkdirs(folder, 0750, err);
	if (status == ERR_OK)
		status = grpc_server_new(dra->loop, dra->service, service_methods,
					 ARRAY_COUNT(service_methods), dra, &dra->service_server,
					 err);
	// The kubelet comes as soon as it sees this one.
	if (status == ERR_OK)
		status = grpc_server_new(dra->loop, dra->registry, registry_methods,
					 ARRAY_COUNT(registry_methods), dra, &dra->registry_server,
					 err);
	return status;
}

static bool set_path(char out[SOCKET_BYTES], const char *dir, const char *name)
{
	int n = snprintf(out, SOCKET_BYTES, "%s/%s", dir, name);
	return n > 0 && n < SOCKET_BYTES;
}

static bool is_prepared(void *arg, struct str uid)
{
	const struct dra *dra = arg;
	return dra_table_find(dra->table, uid) != NULL;
}

// From the CDI files, when the file of claims is lost: their GPUs stay held until unprepared.
static bool recover(void *arg, struct str uid)
{
	struct dra *dra = arg;
	struct dra_claim claim;
	struct err err;
	if (dra_cdi_read(dra->config.cdi_dir, uid, &claim, &err) != ERR_OK ||
	    dra_table_add(dra->table, &claim, &err) != ERR_OK)
		log_err(LOG_ERROR, "a prepared claim is lost", &err);
	else
		log_kv(LOG_WARN, "a prepared claim is known by its CDI file alone", "uid",
		       claim.uid, NULL);
	return true;
}

err_status dra_new(struct loop *loop, const struct dra_config *config, struct dra **ret,
		   struct err *err)
{
	struct dra *dra = calloc(1, sizeof *dra);
	bool is_whole = false;
	if (dra == NULL)
		return err_set(err, ERR_LIMIT, "no memory for the driver of claims");
	dra->loop = loop;
	dra->config = *config;
	err_status status = dra_table_new(config->state_path, &dra->table, &is_whole, err);
	if (status == ERR_OK)
		cdi_sweep(config->cdi_dir, STR(DRA_CDI_PREFIX), is_whole ? is_prepared : recover,
			  dra);
	if (status == ERR_OK &&
	    (!set_path(dra->registry, config->registry_dir, DRA_DRIVER "-reg.sock") ||
	     !set_path(dra->service, config->plugins_dir, DRA_DRIVER "/dra.sock")))
		status = err_set(err, ERR_INVALID, "path of the kubelet's folders is too long");
	if (status == ERR_OK)
		status = open_servers(dra, err);
	if (status != ERR_OK) {
		dra_free(dra);
		return err_wrap(err, "driver of claims");
	}
	*ret = dra;
	return ERR_OK;
}

void dra_free(struct dra *dra)
{
	if (dra == NULL)
		return;
	close_servers(dra);
	while (dra->jobs != NULL)
		job_free(dra->jobs);
	dra_table_free(dra->table);
	free(dra);
}

const struct dra_table *dra_table_of(const struct dra *dra) { return dra->table; }

static void look_at_sockets(struct dra *dra)
{
	struct err err;
	bool has_both = dra->registry_server != NULL && dra->service_server != NULL &&
			access(dra->registry, F_OK) == 0 && access(dra->service, F_OK) == 0;
	if (has_both)
		return;
	close_servers(dra);
	if (open_servers(dra, &err) != ERR_OK) {
		log_err(LOG_ERROR, "sockets of the driver of claims", &err);
		close_servers(dra);
	}
}

void dra_look(struct dra *dra)
{
	struct err err;
	look_at_sockets(dra);
	for (size_t i = 0; i < dra_table_count(dra->table); i++) {
		if (write_cdi(dra, dra_table_at(dra->table, i), &err) != ERR_OK)
			log_err(LOG_WARN, "CDI specification of a claim", &err);
	}
	dra_tell_health(dra);
}

void dra_stats(const struct dra *dra, struct dra_stats *ret)
{
	*ret = dra->stats;
	ret->claims = dra_table_count(dra->table);
	ret->has_health_stream = dra->health != NULL;
}

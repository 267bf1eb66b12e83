// SPDX-License-Identifier: Apache-2.0
#include "journal/event.h"

#include "base/json.h"
#include "base/timefmt.h"

#include <inttypes.h>

static const char *const type_names[] = {
	[EVENT_BOUND] = "bound",   [EVENT_RELEASED] = "released",	[EVENT_ENERGY] = "energy",
	[EVENT_SAMPLE] = "sample", [EVENT_UNEXPLAINED] = "unexplained",
};

const char *event_type_name(event_type type)
{
	ASSERT((size_t)type < ARRAY_COUNT(type_names));
	return type_names[type];
}

bool event_text(char *out, size_t out_bytes, struct str text)
{
	ASSERT(out_bytes > 0);
	out[0] = '\0';
	if (text.len >= out_bytes || (text.len > 0 && memchr(text.data, '\0', text.len) != NULL))
		return false;
	if (text.len > 0)
		memcpy(out, text.data, text.len);
	out[text.len] = '\0';
	return true;
}

static void put_text(struct buf *out, const char *key, const char *value)
{
	if (*value == '\0')
		return;
	buf_printf(out, ",\"%s\":", key);
	buf_put_json(out, str_of(value));
}

void event_encode(struct buf *out, const struct usage_event *event)
{
	char t[TIME_TEXT_BYTES];
	buf_put_c(out, "{\"source\":");
	buf_put_json(out, str_of(event->source));
	buf_put_c(out, ",\"boot\":");
	buf_put_json(out, str_of(event->boot));
	buf_printf(out, ",\"seq\":%" PRIu64 ",\"t\":\"%s\",\"type\":\"%s\"", event->seq,
		   time_format(event->t_s, t), event_type_name(event->type));
	put_text(out, "gpu", event->gpu);
	put_text(out, "profile", event->profile);
	if (event->share_den > 0)
		buf_printf(out, ",\"share\":{\"num\":%" PRIu32 ",\"den\":%" PRIu32 "}",
			   event->share_num, event->share_den);
	put_text(out, "tenant", event->tenant);
	put_text(out, "namespace", event->namespace_);
	put_text(out, "pod", event->pod);
	put_text(out, "pod_uid", event->pod_uid);
	put_text(out, "container", event->container);
	put_text(out, "request", event->request);
	put_text(out, "epoch", event->epoch);
	if (event->type == EVENT_ENERGY)
		buf_printf(out, ",\"energy_mj\":\"%" PRIu64 "\"", event->energy_mj);
	if (event->type == EVENT_SAMPLE || event->type == EVENT_UNEXPLAINED)
		buf_printf(out, ",\"util_milli\":%" PRIu32 ",\"memory_mib\":%" PRIu64,
			   event->util_milli, event->memory_mib);
	if (event->pid != 0)
		buf_printf(out, ",\"pid\":%" PRIu32, event->pid);
	if (event->estimated)
		buf_put_c(out, ",\"estimated\":true");
	buf_put_c(out, "}");
}

static err_status decode_type(const json_t *object, event_type *ret, struct err *err)
{
	struct str name = { 0 };
	if (json_need_text(object, "type", &name, err) != ERR_OK)
		return err_wrap(err, "event");
	for (size_t i = 0; i < ARRAY_COUNT(type_names); i++) {
		if (str_eq_c(name, type_names[i])) {
			*ret = (event_type)i;
			return ERR_OK;
		}
	}
	return err_set(err, ERR_INVALID, "event: no type is named \"" STR_FMT "\"", STR_ARG(name));
}

static err_status decode_texts(const json_t *object, struct usage_event *event, struct err *err)
{
	const struct {
		const char *key;
		char *out;
		size_t out_bytes;
	} texts[] = {
		{ "source", event->source, sizeof event->source },
		{ "boot", event->boot, sizeof event->boot },
		{ "gpu", event->gpu, sizeof event->gpu },
		{ "profile", event->profile, sizeof event->profile },
		{ "tenant", event->tenant, sizeof event->tenant },
		{ "namespace", event->namespace_, sizeof event->namespace_ },
		{ "pod", event->pod, sizeof event->pod },
		{ "pod_uid", event->pod_uid, sizeof event->pod_uid },
		{ "container", event->container, sizeof event->container },
		{ "request", event->request, sizeof event->request },
		{ "epoch", event->epoch, sizeof event->epoch },
	};
	for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
		if (!event_text(texts[i].out, texts[i].out_bytes, json_text(object, texts[i].key)))
			return err_set(err, ERR_INVALID, "event: %s is longer than %zu bytes",
				       texts[i].key, texts[i].out_bytes - 1);
	}
	if (event->source[0] == '\0' || event->boot[0] == '\0')
		return err_set(err, ERR_INVALID, "event: source and boot must be there");
	return ERR_OK;
}

static err_status decode_number(const json_t *object, const char *key, int64_t max, int64_t *ret,
				struct err *err)
{
	int64_t value = json_int(object, key, 0);
	if (value < 0 || value > max)
		return err_set(err, ERR_INVALID, "event: %s must be from 0 to %" PRId64, key, max);
	*ret = value;
	return ERR_OK;
}

static err_status decode_numbers(const json_t *object, struct usage_event *event, struct err *err)
{
	int64_t seq = 0, num = 0, den = 0, util = 0, memory = 0, pid = 0;
	if (decode_number(object, "seq", INT64_MAX, &seq, err) != ERR_OK ||
	    decode_number(object, "share.num", UINT32_MAX, &num, err) != ERR_OK ||
	    decode_number(object, "share.den", UINT32_MAX, &den, err) != ERR_OK ||
	    decode_number(object, "util_milli", UINT32_MAX, &util, err) != ERR_OK ||
	    decode_number(object, "memory_mib", INT64_MAX, &memory, err) != ERR_OK ||
	    decode_number(object, "pid", UINT32_MAX, &pid, err) != ERR_OK)
		return err == NULL ? ERR_INVALID : err->status;
	event->seq = (uint64_t)seq;
	event->share_num = (uint32_t)num;
	event->share_den = (uint32_t)den;
	event->util_milli = (uint32_t)util;
	event->memory_mib = (uint64_t)memory;
	event->pid = (uint32_t)pid;
	event->estimated = json_bool(object, "estimated", false);
	struct str energy = json_text(object, "energy_mj");
	if (energy.len > 0 && !str_to_u64(energy, &event->energy_mj))
		return err_set(err, ERR_INVALID, "event: energy_mj must be decimal text");
	if (event->type == EVENT_ENERGY && energy.len == 0)
		return err_set(err, ERR_INVALID, "event: an energy row needs energy_mj as text");
	return ERR_OK;
}

err_status event_decode(struct str line, struct usage_event *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *object = NULL;
	struct usage_event event = { 0 };
	struct err local;
	err = err == NULL ? &local : err;
	if (line.len > EVENT_TEXT_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "event is longer than %d bytes",
			       EVENT_TEXT_MAX_BYTES);
	if (json_parse(line, &object, err) != ERR_OK)
		return err_wrap(err, "event");
	if (!json_is_object(object))
		return err_set(err, ERR_INVALID, "event is no JSON object");
	if (decode_type(object, &event.type, err) != ERR_OK ||
	    decode_texts(object, &event, err) != ERR_OK ||
	    decode_numbers(object, &event, err) != ERR_OK)
		return err->status;
	struct str t = { 0 };
	if (json_need_text(object, "t", &t, err) != ERR_OK)
		return err_wrap(err, "event");
	if (!time_parse(t, &event.t_s, NULL))
		return err_set(err, ERR_INVALID, "event: t must be RFC 3339, not \"" STR_FMT "\"",
			       STR_ARG(t));
	*ret = event;
	return ERR_OK;
}

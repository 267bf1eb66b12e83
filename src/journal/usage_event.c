// SPDX-License-Identifier: Apache-2.0
#include "journal/usage_event.h"

enum { DECODE_ARENA_BYTES = 64 * 1024 };

#define BIT(field) (UINT32_C(1) << (field))

bool usage_text(char *out, size_t out_bytes, struct str text)
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

// The pairs of a text in the two forms; used in both directions.
#define TEXTS(X)                                                                                   \
	X(EVENT_F_SOURCE, source, source)                                                          \
	X(EVENT_F_BOOT, boot, boot)                                                                \
	X(EVENT_F_GPU, gpu, gpu)                                                                   \
	X(EVENT_F_PROFILE, profile, profile)                                                       \
	X(EVENT_F_TENANT, tenant, tenant)                                                          \
	X(EVENT_F_NAMESPACE, namespace, namespace_)                                                \
	X(EVENT_F_POD, pod, pod)                                                                   \
	X(EVENT_F_POD_UID, pod_uid, pod_uid)                                                       \
	X(EVENT_F_CONTAINER, container, container)                                                 \
	X(EVENT_F_REQUEST, request, request)                                                       \
	X(EVENT_F_EPOCH, epoch, epoch)

void usage_event_encode(struct buf *out, const struct usage_event *event)
{
	struct event text = {
		.present = BIT(EVENT_F_SOURCE) | BIT(EVENT_F_BOOT) | BIT(EVENT_F_SEQ) |
			   BIT(EVENT_F_T) | BIT(EVENT_F_TYPE),
		.seq = (int64_t)event->seq,
		.t_s = event->t_s,
		.type = event->type,
		.share_num = event->share_num,
		.share_den = event->share_den,
		.energy_mj = event->energy_mj,
		.util_milli = event->util_milli,
		.memory_mib = (int64_t)event->memory_mib,
		.pid = event->pid,
	};
	ASSERT(event->seq <= INT64_MAX && event->memory_mib <= INT64_MAX);
#define PUT(bit, to, from)                                                                         \
	text.to = str_of(event->from);                                                             \
	if (text.to.len > 0)                                                                       \
		text.present |= BIT(bit);
	TEXTS(PUT)
#undef PUT
	if (event->share_den > 0)
		text.present |= BIT(EVENT_F_SHARE);
	if (event->type == EVENT_ENERGY)
		text.present |= BIT(EVENT_F_ENERGY_MJ);
	if (event->type == EVENT_SAMPLE || event->type == EVENT_UNEXPLAINED)
		text.present |= BIT(EVENT_F_UTIL_MILLI) | BIT(EVENT_F_MEMORY_MIB);
	if (event->pid != 0)
		text.present |= BIT(EVENT_F_PID);
	event_format(out, &text);
}

static err_status copy(struct usage_event *to, const struct event *from, struct err *err)
{
#define COPY(bit, text, member)                                                                    \
	if (!usage_text(to->member, sizeof to->member, from->text))                                \
		return err_set(err, ERR_INVALID, "event: " #text " is longer than %zu bytes",      \
			       sizeof to->member - 1);
	TEXTS(COPY)
#undef COPY
	if (from->pid > UINT32_MAX || from->util_milli > UINT32_MAX)
		return err_set(err, ERR_INVALID, "event: pid or util_milli is out of range");
	to->seq = (uint64_t)from->seq;
	to->t_s = from->t_s;
	to->type = from->type;
	to->share_num = (uint32_t)from->share_num; // the parser bounds both
	to->share_den = (uint32_t)from->share_den;
	to->energy_mj = from->energy_mj;
	to->util_milli = (uint32_t)from->util_milli;
	to->memory_mib = (uint64_t)from->memory_mib;
	to->pid = (uint32_t)from->pid;
	return ERR_OK;
}

err_status usage_event_decode(struct str line, struct usage_event *ret, struct err *err)
{
	AUTO(arena_freep) struct arena *arena = arena_new(DECODE_ARENA_BYTES);
	struct event event = { 0 };
	struct usage_event copied = { 0 };
	if (arena == NULL)
		return err_set(err, ERR_LIMIT, "no memory to read an event");
	err_status status = event_parse(arena, line, &event, err);
	if (status != ERR_OK)
		return status;
	status = copy(&copied, &event, err);
	if (status == ERR_OK)
		*ret = copied;
	return status;
}

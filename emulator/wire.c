// SPDX-License-Identifier: Apache-2.0
#include "emulator/wire.h"

#include <string.h>

static bool is_terminated(const char *text, size_t size_bytes)
{
	return memchr(text, 0, size_bytes) != NULL;
}

bool wire_check_request(const void *data, size_t size_bytes, struct wire_request *ret)
{
	struct wire_request request;

	if (size_bytes != sizeof(request))
		return false;
	memcpy(&request, data, sizeof(request));
	if (request.magic != WIRE_MAGIC)
		return false;
	if (request.op < WIRE_HELLO || request.op > WIRE_OP_LAST)
		return false;
	if (!is_terminated(request.call, sizeof(request.call)) ||
	    !is_terminated(request.key, sizeof(request.key)))
		return false;
	*ret = request;
	return true;
}

bool wire_check_work(const void *data, size_t size_bytes, struct wire_work *ret)
{
	struct wire_work work;

	if (size_bytes != sizeof(work))
		return false;
	memcpy(&work, data, sizeof(work));
	if (work.magic != WIRE_WORK_MAGIC)
		return false;
	if (work.util_milli > 1000 || work.memory_util_milli > 1000)
		return false;
	*ret = work;
	return true;
}

bool wire_check_reply(const struct wire_reply *reply, size_t size_bytes, size_t body_want)
{
	if (size_bytes < WIRE_REPLY_HEAD_BYTES || size_bytes > sizeof(*reply))
		return false;
	if (reply->magic != WIRE_MAGIC)
		return false;
	if (reply->body_bytes != size_bytes - WIRE_REPLY_HEAD_BYTES)
		return false;
	if (reply->status != 0)
		return true;
	if (body_want != SIZE_MAX)
		return reply->body_bytes == body_want;
	return reply->count <= WIRE_PROCESS_MAX &&
	       reply->body_bytes == reply->count * sizeof(struct wire_process);
}

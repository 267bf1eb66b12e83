// SPDX-License-Identifier: Apache-2.0
#include "k8s/status.h"

#include "base/json.h"
#include "base/json_scan.h"
#include "base/pb.h"
#include "k8s/kobj.h"

#include <stdio.h>

// Numbers of the fields of meta/v1 Status and StatusDetails.
enum { STATUS_MESSAGE = 3, STATUS_REASON = 4, STATUS_DETAILS = 5, STATUS_CODE = 6 };
enum { DETAILS_RETRY_AFTER = 5 };

static void put_text(char *out, size_t out_bytes, struct str text)
{
	size_t n = min_size(text.len, out_bytes - 1);
	for (size_t i = 0; i < n; i++) // control bytes have no place in an error text
		out[i] = (unsigned char)text.data[i] < 0x20 ? ' ' : text.data[i];
	out[n] = '\0';
	// A cut must not leave half a character.
	while (n > 0 && !str_is_utf8((struct str){ out, n }))
		out[--n] = '\0';
}

static bool take_json(struct k8s_status *status, struct str body)
{
	AUTO(json_decrefp) json_t *value = NULL;
	if (json_parse(body, &value, NULL) != ERR_OK ||
	    strcmp(json_cstr(value, "kind"), "Status") != 0)
		return false;
	int64_t code = json_int(value, "code", 0);
	if (code > 0 && code < 1000)
		status->code = (int)code;
	put_text(status->reason, sizeof status->reason, json_text(value, "reason"));
	put_text(status->message, sizeof status->message, json_text(value, "message"));
	status->retry_after_s = max_i64(json_int(value, "details.retryAfterSeconds", 0), 0);
	return true;
}

static void take_details(struct k8s_status *status, struct str details)
{
	struct pb_reader reader = pb_reader_of(details);
	struct pb_field field;
	while (pb_next(&reader, &field))
		if (field.number == DETAILS_RETRY_AFTER && field.wire == PB_VARINT)
			status->retry_after_s = max_i64((int64_t)field.value, 0);
}

static bool take_protobuf(struct k8s_status *status, struct str body)
{
	struct str message;
	struct pb_field field;
	if (!kobj_unwrap(body, &message))
		return false;
	struct pb_reader reader = pb_reader_of(message);
	while (pb_next(&reader, &field)) {
		if (field.wire == PB_VARINT && field.number == STATUS_CODE && field.value < 1000)
			status->code = (int)field.value;
		if (field.wire != PB_BYTES)
			continue;
		if (field.number == STATUS_MESSAGE)
			put_text(status->message, sizeof status->message, field.bytes);
		else if (field.number == STATUS_REASON)
			put_text(status->reason, sizeof status->reason, field.bytes);
		else if (field.number == STATUS_DETAILS)
			take_details(status, field.bytes);
	}
	return !reader.failed;
}

struct k8s_status k8s_status_parse(int code, struct str body)
{
	struct k8s_status status = { .code = code };
	struct str text = str_trim(body);
	bool is_json = text.len > 0 && text.data[0] == '{';
	bool is_known = is_json ? take_json(&status, text) : take_protobuf(&status, body);
	if (!is_known) {
		status = (struct k8s_status){ .code = code };
		put_text(status.message, sizeof status.message,
			 str_is_utf8(text) ? text : STR("not a text"));
	}
	return status;
}

static err_status status_of_code(int code)
{
	switch (code) {
	case 401: return ERR_UNAUTHENTICATED;
	case 403: return ERR_DENIED;
	case 404: return ERR_NOT_FOUND;
	case 405:
	case 406:
	case 415:
	case 501: return ERR_UNSUPPORTED;
	case 408:
	case 504: return ERR_TIMEOUT;
	case 409:
	case 410:
	case 412: return ERR_CONFLICT;
	case 413: return ERR_LIMIT;
	case 429: return ERR_UNAVAILABLE;
	default: break;
	}
	if (code >= 500)
		return ERR_UNAVAILABLE;
	return code >= 400 ? ERR_INVALID : ERR_PROTOCOL;
}

err_status k8s_status_fail(const struct k8s_status *status, struct err *err)
{
	const char *message = status->message[0] == '\0' ? "no message" : status->message;
	return err_set(err, status_of_code(status->code), "%s (%d%s%s)", message, status->code,
		       status->reason[0] == '\0' ? "" : " ", status->reason);
}

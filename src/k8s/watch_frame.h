// SPDX-License-Identifier: Apache-2.0
// Bytes of watches and lists, in JSON and in protobuf, cut into messages and objects. Pure. A
// watch in JSON is one event a line; in protobuf each event has its length before it (four bytes,
// big-endian) and is a meta/v1 WatchEvent whose object lies in the API server's envelope. Lists
// have their metadata in field 1 and items in field 2. Objects are handed out raw, without the
// envelope, borrowed from the input.
#pragma once

#include "base/buf.h"
#include "base/json_scan.h"
#include "base/pb.h"
#include "k8s/status.h"

enum { WATCH_FRAME_MAX_BYTES = 8 * 1024 * 1024 };

struct watch_framer {
	struct buf part; // begin of a frame whose rest has not come
	bool is_protobuf;
	bool has_part; // part was handed out and is dropped at the next call
	bool failed;   // a frame is larger than WATCH_FRAME_MAX_BYTES
};

void watch_framer_init(struct watch_framer *framer, bool is_protobuf);
void watch_framer_done(struct watch_framer *framer);
// Takes the next whole frame off data; false when more bytes are needed (they are kept) or the
// framer has failed. The frame lives until the next call or until data's memory goes.
bool watch_framer_next(struct watch_framer *framer, struct str *data, struct str *ret_frame);

enum watch_message_kind {
	WATCH_MESSAGE_ADDED,
	WATCH_MESSAGE_MODIFIED,
	WATCH_MESSAGE_DELETED,
	WATCH_MESSAGE_BOOKMARK,
	WATCH_MESSAGE_ERROR,
};

struct watch_message {
	enum watch_message_kind kind;
	struct str object;
	struct str resource_version; // of the object; not of ERROR
	bool ends_initial;           // the bookmark behind the initial events
	struct k8s_status status;    // of ERROR
};
MUST_USE bool watch_message_parse(struct str frame, bool is_protobuf,
				  struct watch_message *ret_message);

struct watch_list {
	struct str resource_version;
	struct str next; // token for the next page, empty on the last
	bool is_protobuf;
	struct json_iter json;
	struct pb_reader pb;
};
// body may be in the envelope. watch_list_next hands out one object after the other and false at
// the end; watch_list_failed tells whether the end was a true one.
MUST_USE bool watch_list_open(struct str body, bool is_protobuf, struct watch_list *ret_list);
bool watch_list_next(struct watch_list *list, struct str *ret_object);
bool watch_list_failed(const struct watch_list *list);

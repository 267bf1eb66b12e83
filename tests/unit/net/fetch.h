// SPDX-License-Identifier: Apache-2.0
// Calls of a HTTP client for tests: the outcome of one call in the caller's memory, what to do
// inside its callbacks, and turning the loop until it is over.
#pragma once

#include "net/http_client.h"

typedef enum fetch_deed {
	FETCH_NOTHING,
	FETCH_CANCEL_IN_DATA,
	FETCH_FREE_CLIENT_IN_DATA,
	FETCH_FREE_CLIENT_IN_DONE,
	FETCH_START_IN_DONE, // the same call once more, into next
} fetch_deed;

struct fetch {
	struct loop *loop;
	struct http_client *client; // NULL when freed by a deed
	struct http_call *call;
	fetch_deed deed;
	bool collect; // no on_data
	struct fetch *next;
	struct http_call_request request;

	int done_count;
	err_status status;
	int code;
	char error[400];
	char header[100]; // value of X-Answer
	char body[200];   // its beginning
	size_t body_bytes;
	int pieces; // calls of on_data
};

// Starts GET path; request may be changed before by the caller (method, body, time-outs).
void fetch_start(struct fetch *fetch, struct http_client *client, const char *path);
// Until it is done, at most limit_ms; true if it is.
bool fetch_wait(struct fetch *fetch, int limit_ms);
// Both.
bool fetch_get(struct fetch *fetch, struct http_client *client, const char *path);
void fetch_turn(struct loop *loop, int ms); // runs the loop that long

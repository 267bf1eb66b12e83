// SPDX-License-Identifier: Apache-2.0
// Who a node's agent is: its service-account token by TokenReview, for our audience, and the node
// from the claims that the API server bound the token to. Good answers are kept for a minute by
// the hash of the token; the number kept is bounded. Loop thread only.
#pragma once

#include "k8s/client.h"

struct reviews;

struct review_result {
	err_status status; // ERR_OK; ERR_UNAUTHENTICATED; ERR_UNAVAILABLE: repeat later
	struct str node;   // borrowed during the callback
};
// Exactly once; may be called from inside reviews_ask when the answer is kept.
typedef void review_done_fn(void *arg, const struct review_result *result);

// username: "system:serviceaccount:gpuaas-system:gpuaas-agent"; audience: "gpuaas".
struct reviews *reviews_new(struct loop *loop, struct k8s_client *k8s, const char *username,
			    const char *audience);
void reviews_free(struct reviews *reviews); // NULL allowed; no callback comes afterwards
void reviews_ask(struct reviews *reviews, struct str token, review_done_fn *on_done, void *arg);

// The node of a TokenReview answer, or ERR_UNAUTHENTICATED with the reason. Pure, for tests.
MUST_USE err_status review_read(const json_t *answer, const char *username, const char *audience,
				struct str *ret_node, struct err *err);

// SPDX-License-Identifier: Apache-2.0
// What the driver of claims talks to beside the rest: ResourceSlices and ResourceClaims of the fake
// API server, and a kubelet that asks to prepare and unprepare. Calls block by running the loop.
#pragma once

#include "base/json.h"
#include "daemons/agent/dra_proto.h"
#include "fake_api.h"
#include "net/grpc.h"

enum { FAKE_CLAIMS_MAX = 64, FAKE_WATCH_MAX = 4, FAKE_UUIDS_MAX = 8 };

struct fake_claim {
	char name[64], uid[64], pod[64], pod_uid[64];
	char uuids[FAKE_UUIDS_MAX][GPU_UUID_BYTES];
	size_t count;
};

struct fake_dra {
	struct fake_api *api;
	char root[100];
	json_t *slice; // as it was written last, NULL: none
	unsigned writes, claim_reads, version;
	bool hides_claims; // 404 for all
	struct http_exchange *watches[FAKE_WATCH_MAX];
	struct fake_claim claims[FAKE_CLAIMS_MAX];
	size_t claim_count;
	struct grpc_call *health;
	struct buf health_text; // the last message
};

struct fake_dra_answer {
	enum grpc_code code; // of the call
	char error[400];     // of the claim, or of the call
	char device[GPU_UUID_BYTES], cdi[DRA_CDI_BYTES], request[DRA_REQUEST_BYTES];
	size_t count; // of devices
};

void fake_dra_init(struct fake_dra *dra, struct fake_api *api, const char *root);
void fake_dra_done(struct fake_dra *dra);
struct fake_claim *fake_dra_claim(struct fake_dra *dra, const char *name, const char *uuid);
void fake_dra_prepare(struct fake_dra *dra, const struct fake_claim *claim,
		      struct fake_dra_answer *ret);
void fake_dra_unprepare(struct fake_dra *dra, const struct fake_claim *claim,
			struct fake_dra_answer *ret);
// Registers the plugin as a kubelet does; false: it says something else than expected.
bool fake_dra_register(struct fake_dra *dra);
void fake_dra_watch_health(struct fake_dra *dra);
void fake_dra_drop_slice(struct fake_dra *dra); // as a kubelet does when it starts

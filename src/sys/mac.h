// SPDX-License-Identifier: Apache-2.0
// Message authentication of the scheduler's plan: HMAC-SHA256 (RFC 2104) over pod UID, node and
// the text of the devices annotation. The scheduler writes it with the Binding, the agent checks
// it, so that no tenant can forge or move a grant. The key is shared by both and never logged.
// From the same key come the tokens by which the server asks the scheduler to explain, and the
// scheduler the agents for their load views.
#pragma once

#include "base/str.h"

enum { MAC_BYTES = 32, MAC_TEXT_BYTES = 2 * MAC_BYTES + 1, MAC_KEY_BYTES_MIN = 16 };

struct mac_plan {
	struct str pod_uid, node; // without line breaks
	struct str devices;       // the annotation's text, byte for byte
};

void mac_hmac_sha256(struct str key, struct str message, uint8_t ret_mac[MAC_BYTES]);
// Lower-case hex, terminated. False when uid or node are empty or hold a line break, or when the
// key is shorter than MAC_KEY_BYTES_MIN.
MUST_USE bool mac_plan_sign(struct str key, const struct mac_plan *plan,
			    char ret_text[MAC_TEXT_BYTES]);
// Takes the same time whatever differs.
MUST_USE bool mac_plan_check(struct str key, const struct mac_plan *plan, struct str text);
// The token for /explain of the scheduler, as mac_plan_sign; false when the key is too short.
MUST_USE bool mac_explain_token(struct str key, char ret_text[MAC_TEXT_BYTES]);
// The value of an Authorization header; takes the same time whatever differs.
MUST_USE bool mac_explain_check(struct str key, struct str authorization);
// The same for the load view of an agent.
MUST_USE bool mac_load_token(struct str key, char ret_text[MAC_TEXT_BYTES]);
MUST_USE bool mac_load_check(struct str key, struct str authorization);

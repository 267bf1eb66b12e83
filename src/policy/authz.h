// SPDX-License-Identifier: Apache-2.0
// Who may do what: one table of role x resource x verb, deny by default, decided on the object's
// tenant. Pure; nothing is allocated, nothing can fail but by saying no.
#pragma once

#include "base/str.h"

typedef enum authz_role {
	AUTHZ_PLATFORM_ADMIN, // every tenant; no tenant of its own
	AUTHZ_TENANT_ADMIN,   // its tenant: members, tokens, requests
	AUTHZ_MEMBER,         // its tenant: requests
	AUTHZ_AGENT,          // a node's agent; subject is the node's name
	AUTHZ_ROLE_COUNT,
} authz_role;

typedef enum authz_resource {
	AUTHZ_WHOAMI,
	AUTHZ_TENANT,
	AUTHZ_MEMBERSHIP,
	AUTHZ_TOKEN,
	AUTHZ_REQUEST,
	AUTHZ_NODE,
	AUTHZ_QUOTA,
	AUTHZ_USAGE,
	AUTHZ_EVENT,
	AUTHZ_PRICE,
	AUTHZ_ASSET,
	AUTHZ_POOL,
	AUTHZ_BILL,
	AUTHZ_AUDIT,
	AUTHZ_RESOURCE_COUNT,
} authz_resource;

typedef enum authz_verb {
	AUTHZ_GET,
	AUTHZ_LIST,
	AUTHZ_CREATE,
	AUTHZ_UPDATE,
	AUTHZ_DELETE,
	AUTHZ_VERB_COUNT,
} authz_verb;

struct authz_principal {
	authz_role role;
	struct str tenant;  // empty for platform-admin and agent
	struct str subject; // name of the person, program or node
};

typedef enum authz_answer {
	AUTHZ_ALLOWED,
	AUTHZ_FORBIDDEN, // the object may be known to the caller, the verb is not theirs: 403
	AUTHZ_HIDDEN,    // the object is another tenant's: answered as if it did not exist, 404
} authz_answer;

// tenant: owner of the object; empty for what belongs to the whole platform and for lists that
// the handler narrows to the caller's tenant.
authz_answer authz_decide(const struct authz_principal *principal, authz_resource resource,
			  authz_verb verb, struct str tenant);

const char *authz_role_name(authz_role role); // "platform-admin", ...
MUST_USE bool authz_role_parse(struct str text, authz_role *ret_role);
const char *authz_resource_name(authz_resource resource);
const char *authz_verb_name(authz_verb verb);

// SPDX-License-Identifier: Apache-2.0
#include "policy/authz.h"

// How far a grant reaches.
typedef enum reach {
	NONE,   // the default of every cell that is not named
	OWN,    // objects of the caller's tenant, and lists narrowed to it
	COMMON, // what belongs to the whole platform, for everybody who is logged in
	ANY,    // every object
} reach;

enum {
	G = 1u << AUTHZ_GET,
	L = 1u << AUTHZ_LIST,
	C = 1u << AUTHZ_CREATE,
	U = 1u << AUTHZ_UPDATE,
	D = 1u << AUTHZ_DELETE
};

struct grant {
	authz_role role;
	authz_resource resource;
	reach reach;
	unsigned verbs;
};

static const struct grant grants[] = {
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_WHOAMI, COMMON, G },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_TENANT, ANY, G | L | C | U | D },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_MEMBERSHIP, ANY, G | L | C | U | D },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_TOKEN, ANY, G | L | C | D },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_REQUEST, ANY, G | L | C | D },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_NODE, ANY, G | L | U },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_QUOTA, ANY, G },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_EVENT, ANY, G | L | C },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_PRICE, ANY, G | L | C },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_ASSET, ANY, G | L | C },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_POOL, ANY, G | L | C },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_BILL, ANY, G | L },
	{ AUTHZ_PLATFORM_ADMIN, AUTHZ_AUDIT, ANY, G | L | C },

	{ AUTHZ_TENANT_ADMIN, AUTHZ_WHOAMI, COMMON, G },
	{ AUTHZ_TENANT_ADMIN, AUTHZ_TENANT, OWN, G | L },
	{ AUTHZ_TENANT_ADMIN, AUTHZ_MEMBERSHIP, OWN, G | L | C | U | D },
	{ AUTHZ_TENANT_ADMIN, AUTHZ_TOKEN, OWN, G | L | C | D },
	{ AUTHZ_TENANT_ADMIN, AUTHZ_REQUEST, OWN, G | L | C | D },
	{ AUTHZ_TENANT_ADMIN, AUTHZ_NODE, COMMON, G | L },
	{ AUTHZ_TENANT_ADMIN, AUTHZ_QUOTA, OWN, G },
	{ AUTHZ_TENANT_ADMIN, AUTHZ_EVENT, OWN, G | L },
	{ AUTHZ_TENANT_ADMIN, AUTHZ_BILL, OWN, G | L },

	{ AUTHZ_MEMBER, AUTHZ_WHOAMI, COMMON, G },
	{ AUTHZ_MEMBER, AUTHZ_TENANT, OWN, G | L },
	{ AUTHZ_MEMBER, AUTHZ_MEMBERSHIP, OWN, G | L },
	{ AUTHZ_MEMBER, AUTHZ_REQUEST, OWN, G | L | C | D },
	{ AUTHZ_MEMBER, AUTHZ_NODE, COMMON, G | L },
	{ AUTHZ_MEMBER, AUTHZ_QUOTA, OWN, G },
	{ AUTHZ_MEMBER, AUTHZ_BILL, OWN, G | L },

	{ AUTHZ_AGENT, AUTHZ_WHOAMI, COMMON, G },
	{ AUTHZ_AGENT, AUTHZ_USAGE, COMMON, C },
};

static reach reach_of(authz_role role, authz_resource resource, authz_verb verb)
{
	for (size_t i = 0; i < ARRAY_COUNT(grants); i++) {
		if (grants[i].role == role && grants[i].resource == resource)
			return (grants[i].verbs & (1u << verb)) != 0 ? grants[i].reach : NONE;
	}
	return NONE;
}

authz_answer authz_decide(const struct authz_principal *principal, authz_resource resource,
			  authz_verb verb, struct str tenant)
{
	ASSERT(principal->role < AUTHZ_ROLE_COUNT);
	ASSERT(resource < AUTHZ_RESOURCE_COUNT && verb < AUTHZ_VERB_COUNT);
	reach far = reach_of(principal->role, resource, verb);
	if (far == ANY)
		return AUTHZ_ALLOWED;
	// Whether a foreign object exists is told to nobody, whatever the verb.
	if (tenant.len > 0 && !str_eq(tenant, principal->tenant))
		return AUTHZ_HIDDEN;
	if (far == OWN)
		return principal->tenant.len > 0 ? AUTHZ_ALLOWED : AUTHZ_FORBIDDEN;
	return far == COMMON ? AUTHZ_ALLOWED : AUTHZ_FORBIDDEN;
}

static const char *const role_names[AUTHZ_ROLE_COUNT] = { "platform-admin", "tenant-admin",
							  "member", "agent" };
static const char *const resource_names[AUTHZ_RESOURCE_COUNT] = {
	"whoami", "tenant", "membership", "token", "request", "node", "quota",
	"usage",  "event",  "price",      "asset", "pool",    "bill", "audit",
};
static const char *const verb_names[AUTHZ_VERB_COUNT] = { "get", "list", "create", "update",
							  "delete" };

const char *authz_role_name(authz_role role)
{
	ASSERT(role < AUTHZ_ROLE_COUNT);
	return role_names[role];
}

bool authz_role_parse(struct str text, authz_role *ret_role)
{
	for (size_t i = 0; i < AUTHZ_ROLE_COUNT; i++) {
		if (str_eq_c(text, role_names[i])) {
			*ret_role = (authz_role)i;
			return true;
		}
	}
	return false;
}

const char *authz_resource_name(authz_resource resource)
{
	ASSERT(resource < AUTHZ_RESOURCE_COUNT);
	return resource_names[resource];
}

const char *authz_verb_name(authz_verb verb)
{
	ASSERT(verb < AUTHZ_VERB_COUNT);
	return verb_names[verb];
}

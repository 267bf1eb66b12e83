// SPDX-License-Identifier: Apache-2.0
// Every role x resource x verb, on an object of the own tenant, of a foreign tenant and of the
// platform. The expectation is written a second way: one string of rights a role and resource.
#include "check.h"
#include "policy/authz.h"

// Letters: g l c u d. First character: '*' any tenant, '=' own tenant only, '+' common to all.
static const char *const expected[AUTHZ_ROLE_COUNT][AUTHZ_RESOURCE_COUNT] = {
	[AUTHZ_PLATFORM_ADMIN] = { "+g", "*glcud", "*glcud", "*glcd", "*glcd", "*glu", "*g", "",
				   "*glc", "*glc", "*glc", "*glc", "*gl", "*glc" },
	[AUTHZ_TENANT_ADMIN] = { "+g", "=gl", "=glcud", "=glcd", "=glcd", "+gl", "=g", "", "=gl",
				 "", "", "", "=gl", "" },
	[AUTHZ_MEMBER] = { "+g", "=gl", "=gl", "", "=glcd", "+gl", "=g", "", "", "", "", "", "=gl",
			   "" },
	[AUTHZ_AGENT] = { "+g", "", "", "", "", "", "", "+c", "", "", "", "", "", "" },
};
static const char letters[AUTHZ_VERB_COUNT] = { 'g', 'l', 'c', 'u', 'd' };

static struct authz_principal principal_of(authz_role role)
{
	bool has_tenant = role == AUTHZ_TENANT_ADMIN || role == AUTHZ_MEMBER;
	return (struct authz_principal){ role, has_tenant ? STR("red") : STR(""), STR("ann") };
}

static authz_answer want_on(const char *rights, char letter, bool is_own, bool is_platform)
{
	bool has_verb = rights[0] != '\0' && strchr(rights + 1, letter) != NULL;
	if (has_verb && rights[0] == '*')
		return AUTHZ_ALLOWED;
	if (!is_own && !is_platform)
		return AUTHZ_HIDDEN;
	return has_verb ? AUTHZ_ALLOWED : AUTHZ_FORBIDDEN;
}

static void check_cell(struct check *c, authz_role role, authz_resource resource, authz_verb verb)
{
	struct authz_principal principal = principal_of(role);
	const char *rights = expected[role][resource];
	char name[100];
	(void)snprintf(name, sizeof name, "%s %s %s", authz_role_name(role),
		       authz_resource_name(resource), authz_verb_name(verb));
	CHECK_INT(c, name, authz_decide(&principal, resource, verb, STR("blue")),
		  want_on(rights, letters[verb], false, false));
	CHECK_INT(c, name, authz_decide(&principal, resource, verb, STR("")),
		  want_on(rights, letters[verb], false, true));
	if (principal.tenant.len > 0)
		CHECK_INT(c, name, authz_decide(&principal, resource, verb, STR("red")),
			  want_on(rights, letters[verb], true, false));
	// A name that begins like the own tenant's is another tenant.
	CHECK_INT(c, name, authz_decide(&principal, resource, verb, STR("red2")),
		  want_on(rights, letters[verb], false, false));
}

static void check_names(struct check *c)
{
	authz_role role = AUTHZ_AGENT;
	for (size_t i = 0; i < AUTHZ_ROLE_COUNT; i++)
		CHECK(c, "round trip",
		      authz_role_parse(str_of(authz_role_name((authz_role)i)), &role) &&
			      role == (authz_role)i);
	CHECK(c, "unknown role", !authz_role_parse(STR("root"), &role));
	CHECK(c, "empty role", !authz_role_parse(STR(""), &role));
}

int main(void)
{
	struct check c = { 0, 0 };
	for (unsigned role = 0; role < AUTHZ_ROLE_COUNT; role++) {
		for (unsigned resource = 0; resource < AUTHZ_RESOURCE_COUNT; resource++) {
			for (unsigned verb = 0; verb < AUTHZ_VERB_COUNT; verb++)
				check_cell(&c, (authz_role)role, (authz_resource)resource,
					   (authz_verb)verb);
		}
	}
	// A tenant role without a tenant has no rights on anything that is owned.
	struct authz_principal stray = { AUTHZ_TENANT_ADMIN, STR(""), STR("ann") };
	CHECK_INT(&c, "no tenant", authz_decide(&stray, AUTHZ_REQUEST, AUTHZ_LIST, STR("")),
		  AUTHZ_FORBIDDEN);
	check_names(&c);
	return check_done(&c);
}

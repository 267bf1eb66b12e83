// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "gpu/xid.h"

static void check_policy(struct check *c)
{
	static const struct {
		const char *name, *disable, *enable;
		uint32_t xid;
		bool ignored;
	} cases[] = {
		{ "application errors are ignored", "", "", 31, true },
		{ "context switch time-out is ignored", "", "", 109, true },
		{ "fallen off the bus counts", "", "", 79, false },
		{ "unknown XIDs count", "", "", 999, false },
		{ "far numbers count", "", "", 4000000000u, false },
		{ "the list adds", "79, 48", "", 79, true },
		{ "and keeps the default", "79", "", 13, true },
		{ "enable wins", "79", "79,13", 79, false },
		{ "enable wins over the default", "", "13", 13, false },
		{ "all", "all", "", 79, true },
		{ "xids within a text", "foo,xids", "", 79, true },
		{ "all but one", "all", "79", 79, false },
		{ "all but one, others", "all", "79", 48, true },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct xid_policy policy;
		struct err err;
		xid_policy_init(&policy);
		CHECK_INT(c, cases[i].name,
			  xid_policy_set(&policy, str_of(cases[i].disable), str_of(cases[i].enable),
					 &err),
			  ERR_OK);
		CHECK(c, cases[i].name,
		      xid_policy_ignores(&policy, cases[i].xid) == cases[i].ignored);
	}
}

static void check_bad_policy(struct check *c)
{
	static const char *const bad[] = { "x", "12,y", "-1", "1024", "1.5" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		struct xid_policy policy;
		struct err err;
		xid_policy_init(&policy);
		struct xid_policy before = policy;
		CHECK_INT(c, bad[i], xid_policy_set(&policy, str_of(bad[i]), STR(""), &err),
			  ERR_INVALID);
		CHECK(c, "unchanged", memcmp(&before, &policy, sizeof policy) == 0);
	}
}

int main(void)
{
	struct check c = { 0 };
	check_policy(&c);
	check_bad_policy(&c);
	CHECK(&c, "known", xid_find(79) != NULL && xid_find(79)->class_ == XID_FAIL);
	CHECK(&c, "unknown", xid_find(7) == NULL);
	CHECK_STR(&c, "text of unknown", str_of(xid_text(7)), "unknown XID");
	CHECK_STR(&c, "class", str_of(xid_class_name(xid_find(31)->class_)), "application");
	return check_done(&c);
}

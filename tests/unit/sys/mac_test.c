// SPDX-License-Identifier: Apache-2.0
#include "sys/mac.h"

#include "check.h"

#include <stdio.h>

// RFC 4231, case 2.
static void test_vector(struct check *c)
{
	uint8_t mac[MAC_BYTES];
	char hex[MAC_TEXT_BYTES];
	mac_hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), mac);
	for (size_t i = 0; i < MAC_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", mac[i]);
	CHECK_STR(c, "rfc 4231 case 2", str_of(hex),
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void test_plan(struct check *c)
{
	struct str key = STR("0123456789abcdef0123456789abcdef");
	struct mac_plan plan = { STR("uid-1"), STR("node1"), STR("[{\"uuid\":\"GPU-1\"}]") };
	char text[MAC_TEXT_BYTES];
	CHECK(c, "signs", mac_plan_sign(key, &plan, text));
	CHECK(c, "checks", mac_plan_check(key, &plan, str_of(text)));
	static const struct {
		const char *name;
		struct mac_plan plan;
	} forged[] = {
		{ "other pod", { STR("uid-2"), STR("node1"), STR("[{\"uuid\":\"GPU-1\"}]") } },
		{ "other node", { STR("uid-1"), STR("node2"), STR("[{\"uuid\":\"GPU-1\"}]") } },
		{ "other device", { STR("uid-1"), STR("node1"), STR("[{\"uuid\":\"GPU-2\"}]") } },
		{ "moved border", { STR("uid-1node1"), STR(""), STR("[{\"uuid\":\"GPU-1\"}]") } },
		{ "line break", { STR("uid-1\nnode1"), STR("x"), STR("[{\"uuid\":\"GPU-1\"}]") } },
	};
	for (size_t i = 0; i < ARRAY_COUNT(forged); i++)
		CHECK(c, forged[i].name, !mac_plan_check(key, &forged[i].plan, str_of(text)));
	CHECK(c, "short text", !mac_plan_check(key, &plan, str_slice(str_of(text), 0, 63)));
	CHECK(c, "other key",
	      !mac_plan_check(STR("1123456789abcdef0123456789abcdef"), &plan, str_of(text)));
	CHECK(c, "short key", !mac_plan_sign(STR("short"), &plan, text));
}

// The token is of this key and this use alone.
static void test_explain(struct check *c)
{
	struct str key = STR("0123456789abcdef0123456789abcdef");
	struct str other = STR("1123456789abcdef0123456789abcdef");
	char token[MAC_TEXT_BYTES], value[100];
	CHECK(c, "token", mac_explain_token(key, token));
	CHECK_STR(c, "hmac-sha256 of explain", str_of(token),
		  "87627295e342a230d2660696099504ccffff5b8d49eaa7f1722bbe3ff03de04b");
	static const struct {
		const char *name, *before, *after;
		bool good;
	} cases[] = { { "as it should be", "Bearer ", "", true },
		      { "no scheme", "", "", false },
		      { "other scheme", "Basic ", "", false },
		      { "more behind", "Bearer ", "0", false },
		      { "two spaces", "Bearer  ", "", false } };
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		(void)snprintf(value, sizeof value, "%s%s%s", cases[i].before, token,
			       cases[i].after);
		CHECK(c, cases[i].name, mac_explain_check(key, str_of(value)) == cases[i].good);
		CHECK(c, "other key", !mac_explain_check(other, str_of(value)));
	}
	(void)snprintf(value, sizeof value, "Bearer %s", token);
	for (size_t i = 7; i < 7 + MAC_TEXT_BYTES - 1; i += 9) {
		char kept = value[i];
		value[i] = kept == '0' ? '1' : '0';
		CHECK(c, "another digit", !mac_explain_check(key, str_of(value)));
		value[i] = kept;
	}
	CHECK(c, "empty", !mac_explain_check(key, STR("")));
	CHECK(c, "absent", !mac_explain_check(key, (struct str){ NULL, 0 }));
	CHECK(c, "short key", !mac_explain_token(STR("short"), token));
	CHECK(c, "of another use", !mac_load_check(key, str_of(value)));
	CHECK(c, "load view", mac_load_token(key, token));
	(void)snprintf(value, sizeof value, "Bearer %s", token);
	CHECK(c, "its own", mac_load_check(key, str_of(value)));
	CHECK(c, "explains nothing", !mac_explain_check(key, str_of(value)));
	CHECK(c, "short key checks nothing", !mac_explain_check(STR("short"), str_of(value)));
}

int main(void)
{
	struct check c = { 0 };
	test_vector(&c);
	test_plan(&c);
	test_explain(&c);
	return check_done(&c);
}

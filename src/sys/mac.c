// SPDX-License-Identifier: Apache-2.0
#include "sys/mac.h"

#include "base/buf.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { PLAN_MAX_BYTES = 256 * 1024 };

void mac_hmac_sha256(struct str key, struct str message, uint8_t ret_mac[MAC_BYTES])
{
	ASSERT(key.len <= INT_MAX);
	unsigned len = 0;
	const unsigned char *got = HMAC(EVP_sha256(), key.data, (int)key.len,
					(const unsigned char *)message.data, message.len, ret_mac,
					&len);
	ASSERT(got != NULL && len == MAC_BYTES);
}

static bool has_break(struct str text) { return str_find_byte(text, '\n', 0) != SIZE_MAX; }

static void sign_text(struct str key, struct str message, char ret_text[MAC_TEXT_BYTES])
{
	static const char DIGITS[] = "0123456789abcdef";
	uint8_t mac[MAC_BYTES];
	mac_hmac_sha256(key, message, mac);
	for (size_t i = 0; i < MAC_BYTES; i++) {
		ret_text[2 * i] = DIGITS[mac[i] >> 4];
		ret_text[2 * i + 1] = DIGITS[mac[i] & 15];
	}
	ret_text[MAC_TEXT_BYTES - 1] = 0;
}

bool mac_plan_sign(struct str key, const struct mac_plan *plan, char ret_text[MAC_TEXT_BYTES])
{
	if (key.len < MAC_KEY_BYTES_MIN || plan->pod_uid.len == 0 || plan->node.len == 0)
		return false;
	if (has_break(plan->pod_uid) || has_break(plan->node))
		return false;
	// The line breaks make the parts unambiguous; the first line keeps this use of the key
	// apart from the others.
	AUTO(buf_done) struct buf message = { .limit = PLAN_MAX_BYTES };
	buf_printf(&message, "gpuaas plan 1\n" STR_FMT "\n" STR_FMT "\n", STR_ARG(plan->pod_uid),
		   STR_ARG(plan->node));
	buf_put(&message, plan->devices);
	if (!buf_ok(&message))
		return false;
	sign_text(key, buf_str(&message), ret_text);
	return true;
}

bool mac_plan_check(struct str key, const struct mac_plan *plan, struct str text)
{
	char want[MAC_TEXT_BYTES];
	if (!mac_plan_sign(key, plan, want) || text.len != MAC_TEXT_BYTES - 1)
		return false;
	return CRYPTO_memcmp(want, text.data, text.len) == 0;
}

static bool use_token(struct str key, struct str use, char ret_text[MAC_TEXT_BYTES])
{
	if (key.len < MAC_KEY_BYTES_MIN)
		return false;
	sign_text(key, use, ret_text);
	return true;
}

static bool use_check(struct str key, struct str use, struct str authorization)
{
	static const struct str SCHEME = { "Bearer ", 7 };
	char want[MAC_TEXT_BYTES];
	if (!use_token(key, use, want) || !str_starts(authorization, SCHEME) ||
	    authorization.len != SCHEME.len + MAC_TEXT_BYTES - 1)
		return false;
	return CRYPTO_memcmp(want, authorization.data + SCHEME.len, MAC_TEXT_BYTES - 1) == 0;
}

bool mac_explain_token(struct str key, char ret_text[MAC_TEXT_BYTES])
{
	return use_token(key, STR("explain"), ret_text);
}

bool mac_explain_check(struct str key, struct str authorization)
{
	return use_check(key, STR("explain"), authorization);
}

bool mac_load_token(struct str key, char ret_text[MAC_TEXT_BYTES])
{
	return use_token(key, STR("load"), ret_text);
}

bool mac_load_check(struct str key, struct str authorization)
{
	return use_check(key, STR("load"), authorization);
}

// SPDX-License-Identifier: Apache-2.0
#include "audit/record.h"

#include "base/json.h"

#include <inttypes.h>
#include <sodium.h>

static const char version_text[] = "gpuaas-audit-1";
static const char hash_mark[] = ",\"hash\":\"";

enum { TAIL_BYTES = sizeof hash_mark - 1 + AUDIT_HASH_HEX + 2 }; // with the closing "}

static void hash_part(crypto_hash_sha256_state *state, const void *data, size_t len)
{
	unsigned char prefix[4] = { (unsigned char)(len >> 24), (unsigned char)(len >> 16),
				    (unsigned char)(len >> 8), (unsigned char)len };
	(void)crypto_hash_sha256_update(state, prefix, sizeof prefix);
	(void)crypto_hash_sha256_update(state, data, len);
}

static struct audit_hash hash_of(const struct audit_hash *prev, struct str body)
{
	struct audit_hash hash;
	crypto_hash_sha256_state state;
	(void)crypto_hash_sha256_init(&state);
	hash_part(&state, version_text, sizeof version_text - 1);
	hash_part(&state, prev->bytes, sizeof prev->bytes);
	hash_part(&state, body.data, body.len);
	(void)crypto_hash_sha256_final(&state, hash.bytes);
	return hash;
}

struct audit_hash audit_genesis(struct str chain)
{
	static const struct audit_hash nothing;
	return hash_of(&nothing, chain);
}

void audit_hash_format(const struct audit_hash *hash, char out[AUDIT_HASH_HEX + 1])
{
	(void)sodium_bin2hex(out, AUDIT_HASH_HEX + 1, hash->bytes, sizeof hash->bytes);
}

bool audit_hash_parse(struct str hex, struct audit_hash *ret_hash)
{
	struct audit_hash hash;
	size_t len = 0;
	for (size_t i = 0; i < hex.len; i++) {
		if (hex.data[i] >= 'A' && hex.data[i] <= 'F') // one spelling only
			return false;
	}
	if (hex.len != AUDIT_HASH_HEX ||
	    sodium_hex2bin(hash.bytes, sizeof hash.bytes, hex.data, hex.len, NULL, &len, NULL) !=
		    0 ||
	    len != sizeof hash.bytes)
		return false;
	*ret_hash = hash;
	return true;
}

bool audit_hash_eq(const struct audit_hash *a, const struct audit_hash *b)
{
	return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static void put_text(struct buf *out, const char *key, struct str value)
{
	if (value.len == 0)
		return;
	buf_printf(out, ",\"%s\":", key);
	buf_put_json(out, str_slice(value, 0, AUDIT_FIELD_MAX_BYTES));
}

void audit_encode(struct buf *out, struct str chain, const char *time_text,
		  const struct audit_record *record, struct audit_place *place)
{
	ASSERT(record->stage != NULL && record->verb != NULL && record->resource != NULL);
	ASSERT(chain.len == AUDIT_CHAIN_CHARS);
	size_t begin = out->len;
	char hex[AUDIT_HASH_HEX + 1];
	buf_printf(out, "{\"v\":1,\"chain\":\"" STR_FMT "\",\"seq\":%" PRId64 ",\"t\":\"%s\"",
		   STR_ARG(chain), place->seq + 1, time_text);
	put_text(out, "stage", str_of(record->stage));
	put_text(out, "request_id", record->request_id);
	put_text(out, "actor", record->actor);
	put_text(out, "role", record->role);
	put_text(out, "token_id", record->token_id);
	put_text(out, "tenant", record->tenant);
	put_text(out, "resource", str_of(record->resource));
	put_text(out, "verb", str_of(record->verb));
	put_text(out, "object", record->object);
	put_text(out, "peer", record->peer);
	if (record->status != 0)
		buf_printf(out, ",\"status\":%d", record->status);
	put_text(out, "code", record->code);
	put_text(out, "detail", record->detail);
	audit_hash_format(&place->head, hex);
	buf_printf(out, ",\"prev\":\"%s\"", hex);
	if (!buf_ok(out))
		return;
	struct audit_hash hash =
		hash_of(&place->head, (struct str){ out->data + begin, out->len - begin });
	audit_hash_format(&hash, hex);
	buf_printf(out, "%s%s\"}\n", hash_mark, hex);
	place->seq++;
	place->head = hash;
}

static err_status read_members(const json_t *object, struct audit_line *line, struct err *err)
{
	struct str chain = json_text(object, "chain");
	if (json_int(object, "v", 0) != 1)
		return err_set(err, ERR_UNSUPPORTED, "the form of the record is not version 1");
	line->seq = json_int(object, "seq", 0);
	if (line->seq < 1)
		return err_set(err, ERR_INVALID, "the record has no number");
	if (chain.len != AUDIT_CHAIN_CHARS)
		return err_set(err, ERR_INVALID, "the record names no chain");
	memcpy(line->chain, chain.data, AUDIT_CHAIN_CHARS);
	line->chain[AUDIT_CHAIN_CHARS] = '\0';
	if (!audit_hash_parse(json_text(object, "prev"), &line->prev))
		return err_set(err, ERR_INVALID, "the record has no hash of the one before");
	return ERR_OK;
}

err_status audit_decode(struct str text, struct audit_line *ret_line, struct err *err)
{
	if (text.len > AUDIT_LINE_MAX_BYTES * 4 || text.len <= TAIL_BYTES)
		return err_set(err, ERR_INVALID, "a line of %zu bytes is no record", text.len);
	struct str body = str_slice(text, 0, text.len - TAIL_BYTES);
	struct str tail = str_slice(text, text.len - TAIL_BYTES, text.len);
	struct str hex = str_slice(tail, sizeof hash_mark - 1, tail.len - 2);
	struct audit_line line = { 0 };
	struct audit_hash told;
	if (!str_starts(tail, str_of(hash_mark)) || !str_ends(tail, STR("\"}")) ||
	    !audit_hash_parse(hex, &told))
		return err_set(err, ERR_INVALID, "the line does not end with a hash");
	AUTO(json_decrefp) json_t *object = NULL;
	if (json_parse(text, &object, err) != ERR_OK)
		return err_wrap(err, "the line is no record");
	err_status status = read_members(object, &line, err);
	if (status != ERR_OK)
		return status;
	line.hash = hash_of(&line.prev, body);
	if (!audit_hash_eq(&line.hash, &told))
		return err_set(err, ERR_INTERNAL, "the content does not match its hash");
	*ret_line = line;
	return ERR_OK;
}

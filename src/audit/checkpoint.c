// SPDX-License-Identifier: Apache-2.0
#include "audit/checkpoint.h"

#include "base/json.h"
#include "sys/fs.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>

enum { KEY_FILE_MAX_BYTES = 256 };

static err_status key_make(const char *path, unsigned char seed[crypto_sign_SEEDBYTES],
			   struct err *err)
{
	char hex[2 * crypto_sign_SEEDBYTES + 2];
	randombytes_buf(seed, crypto_sign_SEEDBYTES);
	(void)sodium_bin2hex(hex, sizeof hex, seed, crypto_sign_SEEDBYTES);
	hex[2 * crypto_sign_SEEDBYTES] = '\n';
	struct str content = { hex, sizeof hex - 1 };
	err_status status = fs_write_atomic(path, content, 0600, err);
	sodium_memzero(hex, sizeof hex);
	return status;
}

static err_status key_read(const char *path, unsigned char seed[crypto_sign_SEEDBYTES],
			   struct err *err)
{
	AUTO(buf_done) struct buf content = { .limit = KEY_FILE_MAX_BYTES };
	err_status status = fs_read(path, KEY_FILE_MAX_BYTES, &content, err);
	if (status != ERR_OK)
		return status;
	struct str hex = str_trim(buf_str(&content));
	size_t len = 0;
	int rc = sodium_hex2bin(seed, crypto_sign_SEEDBYTES, hex.data, hex.len, NULL, &len, NULL);
	bool is_good = rc == 0 && len == crypto_sign_SEEDBYTES &&
		       hex.len == 2 * crypto_sign_SEEDBYTES;
	sodium_memzero(content.data, content.len);
	return is_good ? ERR_OK
		       : err_set(err, ERR_INVALID, "%s must hold 64 hex digits of a key", path);
}

err_status audit_key_load(const char *path, struct audit_key *ret_key, struct err *err)
{
	unsigned char seed[crypto_sign_SEEDBYTES];
	struct err why = { 0 };
	if (sodium_init() < 0)
		return err_set(err, ERR_INTERNAL, "libsodium does not start");
	err_status status = key_read(path, seed, &why);
	if (status == ERR_NOT_FOUND)
		status = key_make(path, seed, &why);
	if (status != ERR_OK) {
		if (err != NULL)
			*err = why;
		return err == NULL ? status : err_wrap(err, "signing key of the audit log");
	}
	struct audit_key key;
	(void)crypto_sign_seed_keypair(key.public_, key.secret, seed);
	sodium_memzero(seed, sizeof seed);
	*ret_key = key;
	audit_key_wipe(&key);
	return ERR_OK;
}

void audit_key_wipe(struct audit_key *key) { sodium_memzero(key->secret, sizeof key->secret); }

static int signed_text(const struct audit_checkpoint *checkpoint, char *out, size_t out_bytes)
{
	char head[AUDIT_HASH_HEX + 1];
	audit_hash_format(&checkpoint->place.head, head);
	return snprintf(out, out_bytes, "gpuaas-audit-checkpoint-1\n%s\n%" PRId64 "\n%s\n%s\n",
			checkpoint->chain, checkpoint->place.seq, head, checkpoint->time);
}

void audit_checkpoint_sign(const struct audit_key *key, struct audit_checkpoint *checkpoint)
{
	char text[256];
	int len = signed_text(checkpoint, text, sizeof text);
	ASSERT(len > 0 && (size_t)len < sizeof text);
	memcpy(checkpoint->public_, key->public_, sizeof checkpoint->public_);
	(void)crypto_sign_detached(checkpoint->signature, NULL, (const unsigned char *)text,
				   (unsigned long long)len, key->secret);
}

void audit_public_format(const unsigned char public_[AUDIT_KEY_BYTES],
			 char out[2 * AUDIT_KEY_BYTES + 1])
{
	(void)sodium_bin2hex(out, 2 * AUDIT_KEY_BYTES + 1, public_, AUDIT_KEY_BYTES);
}

void audit_checkpoint_encode(const struct audit_checkpoint *checkpoint, struct buf *out)
{
	char head[AUDIT_HASH_HEX + 1], public_[2 * AUDIT_KEY_BYTES + 1];
	char signature[2 * AUDIT_SIGNATURE_BYTES + 1];
	audit_hash_format(&checkpoint->place.head, head);
	audit_public_format(checkpoint->public_, public_);
	(void)sodium_bin2hex(signature, sizeof signature, checkpoint->signature,
			     AUDIT_SIGNATURE_BYTES);
	buf_printf(out,
		   "{\"version\":1,\"chain\":\"%s\",\"records\":%" PRId64 ",\"head\":\"%s\","
		   "\"time\":\"%s\",\"public_key\":\"%s\",\"signature\":\"%s\"}",
		   checkpoint->chain, checkpoint->place.seq, head, checkpoint->time, public_,
		   signature);
}

static bool hex_into(struct str hex, unsigned char *out, size_t out_bytes)
{
	size_t len = 0;
	return hex.len == 2 * out_bytes &&
	       sodium_hex2bin(out, out_bytes, hex.data, hex.len, NULL, &len, NULL) == 0 &&
	       len == out_bytes;
}

bool audit_public_parse(struct str hex, unsigned char ret_public[AUDIT_KEY_BYTES])
{
	unsigned char public_[AUDIT_KEY_BYTES];
	if (!hex_into(hex, public_, sizeof public_))
		return false;
	memcpy(ret_public, public_, sizeof public_);
	return true;
}

static bool text_into(struct str text, char *out, size_t out_bytes)
{
	if (text.len == 0 || text.len >= out_bytes)
		return false;
	memcpy(out, text.data, text.len);
	out[text.len] = '\0';
	return true;
}

err_status audit_checkpoint_decode(struct str text, struct audit_checkpoint *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *object = NULL;
	if (json_parse(text, &object, err) != ERR_OK)
		return err_wrap(err, "checkpoint");
	struct audit_checkpoint checkpoint = { .place.seq = json_int(object, "records", -1) };
	bool is_whole =
		json_int(object, "version", 0) == 1 && checkpoint.place.seq >= 0 &&
		text_into(json_text(object, "chain"), checkpoint.chain, sizeof checkpoint.chain) &&
		text_into(json_text(object, "time"), checkpoint.time, sizeof checkpoint.time) &&
		audit_hash_parse(json_text(object, "head"), &checkpoint.place.head) &&
		hex_into(json_text(object, "public_key"), checkpoint.public_, AUDIT_KEY_BYTES) &&
		hex_into(json_text(object, "signature"), checkpoint.signature,
			 AUDIT_SIGNATURE_BYTES);
	if (!is_whole)
		return err_set(err, ERR_INVALID, "this is no checkpoint of version 1");
	char message[256];
	int len = signed_text(&checkpoint, message, sizeof message);
	if (len < 0 || (size_t)len >= sizeof message ||
	    crypto_sign_verify_detached(checkpoint.signature, (const unsigned char *)message,
					(unsigned long long)len, checkpoint.public_) != 0)
		return err_set(err, ERR_INTERNAL, "the signature of the checkpoint is wrong");
	*ret = checkpoint;
	return ERR_OK;
}

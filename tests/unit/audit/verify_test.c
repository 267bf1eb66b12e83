// SPDX-License-Identifier: Apache-2.0
// A chain of ten records is made in memory, then damaged in every way that matters; the verifier
// must name the first bad record.
#include "audit/verify.h"
#include "check.h"

#include <sodium.h>

enum { RECORDS = 10 };
static const char chain[] = "01234567-89ab-4cde-8f01-23456789abcd";

struct log {
	struct buf lines[RECORDS];
	struct audit_place places[RECORDS];
};

static void log_done(struct log *log)
{
	for (size_t i = 0; i < RECORDS; i++)
		buf_done(&log->lines[i]);
}

static void log_make(struct log *log)
{
	struct audit_place place = { 0, audit_genesis(str_of(chain)) };
	for (size_t i = 0; i < RECORDS; i++) {
		struct audit_record record = { .stage = "begin",
					       .request_id = STR("r"),
					       .actor = STR("ann \"x\"\n"),
					       .resource = "tenant",
					       .verb = "create",
					       .object = STR("/v1/tenants") };
		audit_encode(&log->lines[i], str_of(chain), "2026-02-10T00:00:00Z", &record,
			     &place);
		log->places[i] = place;
		log->lines[i].len--; // without the newline
	}
}

static struct audit_checkpoint checkpoint_at(const struct audit_key *key,
					     const struct audit_place *place)
{
	struct audit_checkpoint checkpoint = { .place = *place, .time = "2026-02-10T00:00:00Z" };
	memcpy(checkpoint.chain, chain, sizeof chain);
	audit_checkpoint_sign(key, &checkpoint);
	return checkpoint;
}

// Feeds the lines named by order, -1 ends it.
static struct audit_report feed(struct log *log, const int *order,
				const struct audit_checkpoint *checkpoint)
{
	struct audit_verifier verifier;
	audit_verifier_init(&verifier, checkpoint);
	for (size_t i = 0; order[i] >= 0; i++)
		(void)audit_verifier_line(&verifier, buf_str(&log->lines[order[i]]));
	(void)audit_verifier_end(&verifier);
	return verifier.report;
}

static const struct {
	const char *name;
	int order[RECORDS + 3];
	bool with_checkpoint;
	audit_fault fault;
	int64_t bad_seq;
} cases[] = {
	{ "whole", { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1 }, false, AUDIT_GOOD, 0 },
	{ "whole, checkpoint", { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1 }, true, AUDIT_GOOD, 0 },
	{ "empty", { -1 }, false, AUDIT_GOOD, 0 },
	{ "empty, checkpoint", { -1 }, true, AUDIT_TAIL_CUT, 1 },
	{ "head cut", { 2, 3, 4, 5, 6, 7, 8, 9, -1 }, false, AUDIT_HEAD_CUT, 1 },
	{ "tail cut", { 0, 1, 2, 3, 4, 5, 6, -1 }, true, AUDIT_TAIL_CUT, 8 },
	{ "tail cut after the checkpoint", { 0, 1, 2, 3, 4, 5, 6, 7, -1 }, true, AUDIT_GOOD, 0 },
	{ "removed", { 0, 1, 2, 4, 5, 6, 7, 8, 9, -1 }, false, AUDIT_REMOVED, 4 },
	{ "repeated", { 0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, -1 }, false, AUDIT_REORDERED, 4 },
	{ "swapped", { 0, 1, 3, 2, 4, 5, 6, 7, 8, 9, -1 }, false, AUDIT_REMOVED, 3 },
	{ "moved back", { 0, 1, 2, 3, 0, 4, 5, 6, 7, 8, 9, -1 }, false, AUDIT_REORDERED, 5 },
};

static void check_orders(struct check *c, struct log *log, const struct audit_key *key)
{
	struct audit_checkpoint checkpoint = checkpoint_at(key, &log->places[7]);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct audit_report report =
			feed(log, cases[i].order, cases[i].with_checkpoint ? &checkpoint : NULL);
		CHECK_STR(c, cases[i].name, str_of(audit_fault_name(report.fault)),
			  audit_fault_name(cases[i].fault));
		CHECK_INT(c, cases[i].name, report.bad_seq, cases[i].bad_seq);
	}
}

// Every byte of every record: any change of it must be found, and nothing else be blamed.
static void check_every_byte(struct check *c, struct log *log)
{
	static const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1 };
	for (size_t r = 0; r < RECORDS; r += 4) {
		for (size_t i = 0; i < log->lines[r].len; i++) {
			log->lines[r].data[i] ^= 1;
			struct audit_report report = feed(log, all, NULL);
			CHECK(c, "flipped bit", report.fault != AUDIT_GOOD);
			CHECK_INT(c, "flipped bit", report.bad_seq, (int64_t)r + 1);
			log->lines[r].data[i] ^= 1;
		}
	}
}

// A record with a right hash of its own that does not follow from the one before.
static void check_inserted(struct check *c, struct log *log)
{
	AUTO(buf_done) struct buf line = { .limit = AUDIT_LINE_MAX_BYTES };
	struct audit_place place = log->places[2];
	struct audit_record record = { .stage = "end", .resource = "x", .verb = "y" };
	place.seq = 3;
	audit_encode(&line, str_of(chain), "2026-02-10T00:00:00Z", &record, &place);
	struct audit_verifier verifier;
	audit_verifier_init(&verifier, NULL);
	for (size_t i = 0; i < 3; i++)
		CHECK(c, "good", audit_verifier_line(&verifier, buf_str(&log->lines[i])));
	CHECK(c, "inserted",
	      audit_verifier_line(&verifier, str_slice(buf_str(&line), 0, line.len - 1)));
	CHECK(c, "what follows", !audit_verifier_line(&verifier, buf_str(&log->lines[3])));
	CHECK_INT(c, "what follows", verifier.report.bad_seq, 5);
}

// A whole chain made anew has right hashes but not those that were signed.
static void check_rewritten(struct check *c, struct log *log, const struct audit_key *key)
{
	static const int all[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1 };
	struct audit_place other = log->places[7];
	other.head.bytes[0] ^= 1;
	struct audit_checkpoint checkpoint = checkpoint_at(key, &other);
	struct audit_report report = feed(log, all, &checkpoint);
	CHECK_INT(c, "rewritten", report.fault, AUDIT_CHECKPOINT);
	CHECK_INT(c, "rewritten", report.bad_seq, 8);
	checkpoint = checkpoint_at(key, &log->places[7]);
	checkpoint.chain[0] = '9';
	report = feed(log, all, &checkpoint);
	CHECK_INT(c, "other chain", report.fault, AUDIT_CHECKPOINT);
}

static void check_checkpoint_text(struct check *c, struct log *log, const struct audit_key *key)
{
	struct audit_checkpoint checkpoint = checkpoint_at(key, &log->places[9]), back;
	AUTO(buf_done) struct buf text = { .limit = AUDIT_LINE_MAX_BYTES };
	struct err err;
	audit_checkpoint_encode(&checkpoint, &text);
	CHECK_INT(c, "decode", audit_checkpoint_decode(buf_str(&text), &back, &err), ERR_OK);
	CHECK_INT(c, "records", back.place.seq, RECORDS);
	char *digit = strstr(text.data, "\"records\":10");
	CHECK(c, "records in the text", digit != NULL);
	digit[strlen("\"records\":")] = '9';
	CHECK_INT(c, "changed", audit_checkpoint_decode(buf_str(&text), &back, &err), ERR_INTERNAL);
	CHECK_INT(c, "no JSON", audit_checkpoint_decode(STR("x"), &back, &err), ERR_INVALID);
	CHECK_INT(c, "empty", audit_checkpoint_decode(STR("{}"), &back, &err), ERR_INVALID);
}

static void check_public_text(struct check *c, const struct audit_key *key)
{
	char text[2 * AUDIT_KEY_BYTES + 1];
	unsigned char back[AUDIT_KEY_BYTES] = { 0 };
	audit_public_format(key->public_, text);
	CHECK(c, "there", audit_public_parse(str_of(text), back));
	CHECK(c, "and back", memcmp(back, key->public_, sizeof back) == 0);
	CHECK(c, "too short", !audit_public_parse(str_slice(str_of(text), 0, 62), back));
	CHECK(c, "empty", !audit_public_parse(STR(""), back));
	text[7] = 'g';
	CHECK(c, "no digit", !audit_public_parse(str_of(text), back));
	CHECK(c, "untouched", memcmp(back, key->public_, sizeof back) == 0);
}

int main(void)
{
	struct check c = { 0, 0 };
	struct log log = { 0 };
	struct audit_key key;
	if (sodium_init() < 0)
		return 1;
	(void)crypto_sign_keypair(key.public_, key.secret);
	log_make(&log);
	check_orders(&c, &log, &key);
	check_every_byte(&c, &log);
	check_inserted(&c, &log);
	check_rewritten(&c, &log, &key);
	check_checkpoint_text(&c, &log, &key);
	check_public_text(&c, &key);
	log_done(&log);
	return check_done(&c);
}

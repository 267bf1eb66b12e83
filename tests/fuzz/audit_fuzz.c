// SPDX-License-Identifier: Apache-2.0
// Bytes as an audit log (lines), and as a checkpoint. What the verifier accepts must be accepted
// again, and fail when any byte of it is changed.
#include "audit/verify.h"

#include <sodium.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool verify(struct str text, struct audit_report *ret_report)
{
	struct audit_verifier verifier;
	struct str line;
	audit_verifier_init(&verifier, NULL);
	while (str_split_next(&text, '\n', &line) && line.len > 0) {
		if (!audit_verifier_line(&verifier, line))
			break;
	}
	bool good = audit_verifier_end(&verifier);
	*ret_report = verifier.report;
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct audit_report report;
	struct audit_checkpoint checkpoint;
	struct err err = { 0 };
	struct str text = { (const char *)data, size };
	if (sodium_init() < 0)
		return 0;
	if (!verify(text, &report)) {
		ASSERT(report.fault != AUDIT_GOOD && report.bad_seq == report.place.seq + 1);
		ASSERT(report.text[0] != '\0');
	}
	if (audit_checkpoint_decode(text, &checkpoint, &err) == ERR_OK) {
		AUTO(buf_done) struct buf out = { .limit = 0 };
		audit_checkpoint_encode(&checkpoint, &out);
		ASSERT(audit_checkpoint_decode(buf_str(&out), &checkpoint, &err) == ERR_OK);
	}
	return 0;
}

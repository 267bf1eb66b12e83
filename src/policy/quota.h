// SPDX-License-Identifier: Apache-2.0
// Quota arithmetic of one tenant: who is let through now, who waits and at which place. Counting
// is over the requests themselves, so that a restart computes the same; a reservation ends when
// the request has ended, not when somebody deletes an object. Pure.
#pragma once

#include "policy/request.h"

struct quota_amount {
	int64_t gpus;
	int64_t cpu_milli;
	int64_t memory_bytes;
	int64_t pods;
	int64_t gpu_milli; // of shares of GPUs, beside the whole ones
};

struct quota_entry {
	struct str name;
	request_class class_;
	int64_t created_s;
	struct quota_amount need;
	bool holds;        // in: was let through before and has not ended
	bool is_admitted;  // out
	bool is_too_large; // out: by itself more than the quota; nobody waits for it
	int64_t position;  // out: 1 is next; 0 when admitted or too large
};

struct quota_amount quota_need_of(const struct request_spec *spec);
// The whole and the shared together, as so many whole ones.
int64_t quota_gpus(const struct quota_amount *amount);
// ERR_LIMIT when the amount alone is more than the quota; the text says by what.
MUST_USE err_status quota_check_alone(const struct tenant_quota *quota,
				      const struct quota_amount *need, struct err *err);
bool quota_fits(const struct tenant_quota *quota, const struct quota_amount *used,
		const struct quota_amount *need);
// Lets waiting entries through in the order class, creation, name, and stops at the first that
// does not fit, so that a large request is not starved by small ones; what alone is more than the
// quota (it may have been lowered) is passed over. Sorts the entries.
// ret_used (may be NULL) gets what all admitted ones hold.
void quota_admit(const struct tenant_quota *quota, struct quota_entry *entries, size_t count,
		 struct quota_amount *ret_used);

// SPDX-License-Identifier: Apache-2.0
// XIDs, the driver's numbered fault reports: what each one is about (a table, data) and which of
// them make a device unhealthy (a policy: the default ignore list, widened and narrowed by the
// same two settings that NVIDIA's device plugin reads). Source of the numbers: the public XID
// catalogue, docs.nvidia.com/deploy/xid-errors.
#pragma once

#include "base/str.h"

typedef enum xid_class {
	XID_APPLICATION, // the program's fault; the device stays good
	XID_FAIL,        // the device cannot go on
	XID_WARN,
	XID_MEMORY,
	XID_PCIE,
	XID_THERMAL,
	XID_POWER,
	XID_NVLINK,
	XID_OTHER, // not in the table
} xid_class;

struct xid_entry {
	uint32_t xid;
	xid_class class_;
	const char *text;
};

const struct xid_entry *xid_find(uint32_t xid); // NULL when not in the table
const char *xid_class_name(xid_class class_);
const char *xid_text(uint32_t xid); // "unknown XID" when not in the table

enum { XID_POLICY_MAX = 1024 }; // XIDs at or above it are never ignored

struct xid_policy {
	bool watches; // false: XIDs change no health
	uint64_t ignored[XID_POLICY_MAX / 64];
};

void xid_policy_init(struct xid_policy *policy); // the default ignore list
// disable: "all", or a text that holds "xids": nothing is watched; else a comma list of XIDs to
// ignore besides the default ones. enable: a comma list that wins over disable. Both may be
// empty. A part that is no number is refused with its text.
MUST_USE err_status xid_policy_set(struct xid_policy *policy, struct str disable, struct str enable,
				   struct err *err);
bool xid_policy_ignores(const struct xid_policy *policy, uint32_t xid);

// SPDX-License-Identifier: Apache-2.0
#include "gpu/xid.h"

#define XID_TABLE(X)                                                                               \
	X(13, XID_APPLICATION, "graphics engine exception")                                        \
	X(31, XID_APPLICATION, "GPU memory page fault")                                            \
	X(32, XID_MEMORY, "invalid or corrupted push buffer stream")                               \
	X(38, XID_PCIE, "driver firmware error")                                                   \
	X(39, XID_PCIE, "copy engine exception over PCIe")                                         \
	X(42, XID_PCIE, "video processor exception over PCIe")                                     \
	X(43, XID_APPLICATION, "GPU stopped processing")                                           \
	X(45, XID_APPLICATION, "preemptive cleanup after earlier errors")                          \
	X(48, XID_FAIL, "double-bit ECC error")                                                    \
	X(54, XID_POWER, "auxiliary power is not connected")                                       \
	X(56, XID_POWER, "display engine error")                                                   \
	X(57, XID_POWER, "error programming video memory interface")                               \
	X(58, XID_POWER, "unstable video memory interface")                                        \
	X(60, XID_THERMAL, "video processor exception, thermal class")                             \
	X(61, XID_THERMAL, "internal micro-controller breakpoint")                                 \
	X(62, XID_THERMAL, "internal micro-controller halt")                                       \
	X(63, XID_MEMORY, "row remapping or page retirement recorded")                             \
	X(64, XID_FAIL, "row remapping or page retirement failed")                                 \
	X(67, XID_NVLINK, "NVLink error, legacy report")                                           \
	X(68, XID_APPLICATION, "video processor exception")                                        \
	X(73, XID_NVLINK, "NVLink error, encoder engine report")                                   \
	X(74, XID_FAIL, "NVLink error")                                                            \
	X(78, XID_POWER, "vGPU start error")                                                       \
	X(79, XID_FAIL, "GPU has fallen off the bus")                                              \
	X(92, XID_WARN, "high single-bit ECC error rate")                                          \
	X(93, XID_WARN, "InfoROM write failed")                                                    \
	X(94, XID_WARN, "contained ECC error")                                                     \
	X(95, XID_FAIL, "uncontained ECC error")                                                   \
	X(109, XID_APPLICATION, "context switch timeout")                                          \
	X(119, XID_FAIL, "GSP RPC timeout")                                                        \
	X(120, XID_FAIL, "GSP error")                                                              \
	X(121, XID_NVLINK, "chip-to-chip link corrected error")                                    \
	X(137, XID_NVLINK, "NVLink privilege error")                                               \
	X(140, XID_FAIL, "unrecovered ECC error")                                                  \
	X(154, XID_OTHER, "recovery action changed")

static const struct xid_entry entries[] = {
#define ENTRY(number, class_name, description) { number, class_name, description },
	XID_TABLE(ENTRY)
#undef ENTRY
};

// 154 only announces that the recovery action changed; the probe that follows reads the action.
static const uint32_t ignored_by_default[] = { 13, 31, 43, 45, 68, 109, 154 };

const struct xid_entry *xid_find(uint32_t xid)
{
	for (size_t i = 0; i < ARRAY_COUNT(entries); i++) {
		if (entries[i].xid == xid)
			return &entries[i];
	}
	return NULL;
}

const char *xid_class_name(xid_class class_)
{
	switch (class_) {
	case XID_APPLICATION: return "application";
	case XID_FAIL: return "fail";
	case XID_WARN: return "warn";
	case XID_MEMORY: return "memory";
	case XID_PCIE: return "pcie";
	case XID_THERMAL: return "thermal";
	case XID_POWER: return "power";
	case XID_NVLINK: return "nvlink";
	case XID_OTHER: return "other";
	}
	return "other";
}

const char *xid_text(uint32_t xid)
{
	const struct xid_entry *entry = xid_find(xid);
	return entry == NULL ? "unknown XID" : entry->text;
}

static void set_ignored(struct xid_policy *policy, uint32_t xid, bool ignored)
{
	ASSERT(xid < XID_POLICY_MAX);
	uint64_t bit = UINT64_C(1) << (xid % 64);
	if (ignored)
		policy->ignored[xid / 64] |= bit;
	else
		policy->ignored[xid / 64] &= ~bit;
}

void xid_policy_init(struct xid_policy *policy)
{
	*policy = (struct xid_policy){ .watches = true };
	for (size_t i = 0; i < ARRAY_COUNT(ignored_by_default); i++)
		set_ignored(policy, ignored_by_default[i], true);
}

static bool holds_word(struct str text, struct str word)
{
	for (size_t i = 0; i + word.len <= text.len; i++) {
		if (str_eq(str_slice(text, i, i + word.len), word))
			return true;
	}
	return false;
}

static err_status set_list(struct xid_policy *policy, struct str list, bool ignored,
			   struct err *err)
{
	struct str part;
	while (str_split_next(&list, ',', &part)) {
		uint64_t xid = 0;
		part = str_trim(part);
		if (part.len == 0)
			continue;
		if (!str_to_u64(part, &xid) || xid >= XID_POLICY_MAX)
			return err_set(err, ERR_INVALID,
				       "\"" STR_FMT "\" is not an XID; give numbers below %d, "
				       "separated by commas",
				       STR_ARG(part), XID_POLICY_MAX);
		set_ignored(policy, (uint32_t)xid, ignored);
	}
	return ERR_OK;
}

err_status xid_policy_set(struct xid_policy *policy, struct str disable, struct str enable,
			  struct err *err)
{
	struct xid_policy next = *policy;
	if (str_eq_c(disable, "all") || holds_word(disable, STR("xids"))) {
		next.watches = false;
		disable = STR("");
		// XIDs named by enable are watched all the same.
		if (enable.len > 0) {
			next.watches = true;
			memset(next.ignored, 0xff, sizeof next.ignored);
		}
	}
	if (set_list(&next, disable, true, err) != ERR_OK)
		return err_wrap(err, "XIDs to ignore");
	if (set_list(&next, enable, false, err) != ERR_OK)
		return err_wrap(err, "XIDs to watch");
	*policy = next;
	return ERR_OK;
}

bool xid_policy_ignores(const struct xid_policy *policy, uint32_t xid)
{
	if (!policy->watches)
		return true;
	if (xid >= XID_POLICY_MAX)
		return false;
	return (policy->ignored[xid / 64] >> (xid % 64) & 1) != 0;
}

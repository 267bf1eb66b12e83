// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "gpu/compat.h"

static const struct gpu_info h100 = { .model = "NVIDIA H100", .compute_major = 9 };
static const struct gpu_info b200 = { .model = "NVIDIA B200", .compute_major = 10 };

static void check_versions(struct check *c)
{
	static const struct {
		const char *a, *b;
		int order;
	} cases[] = {
		{ "1.17.8", "1.17.8", 0 },
		{ "1.17.8-1", "1.17.8", 0 },
		{ "v1.36.3", "1.36.3", 0 },
		{ "v1.36.3+k3s1", "1.36.4", -1 },
		{ "1.9", "1.10", -1 },
		{ "570.26", "570.86.15", -1 },
		{ "2", "2.0.0", 0 },
		{ "2.2.9", "2.2.10", -1 },
		{ "580.65.06", "580.65.6", 0 },
		{ "", "0", 0 },
		{ "99999999999999999999.1", "1", 1 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		CHECK_INT(c, cases[i].a, compat_version_cmp(str_of(cases[i].a), str_of(cases[i].b)),
			  cases[i].order);
	CHECK(c, "version",
	      compat_is_version(STR("v1")) && !compat_is_version(STR("unknown")) &&
		      !compat_is_version(STR("")) && !compat_is_version(STR("v")));
}

// Codes of all findings, separated by blanks.
static void check_tables(struct check *c)
{
	static const struct {
		const char *name, *driver;
		uint32_t cuda;
		const char *kubelet, *runtime, *toolkit;
		const struct gpu_info *gpu;
		const char *codes;
	} cases[] = {
		{ "all well", "570.86.15", 12080, "v1.36.3", "containerd://2.2.9", "1.17.8", &h100,
		  "" },
		{ "nothing known", "", 0, "", "", "", &h100, "" },
		{ "other runtime", "570.86.15", 12080, "v1.31.0", "cri-o://1.0.0", "", &h100, "" },
		{ "escape", "570.86.15", 12080, "v1.36.3", "containerd://2.2.9", "1.17.7-1", &h100,
		  "CVE-2025-23266 CVE-2025-23267" },
		{ "older", "570.86.15", 12080, "v1.36.3", "containerd://2.2.9", "v1.17.3", &h100,
		  "CVE-2025-23359 CVE-2025-23266 CVE-2025-23267" },
		{ "oldest", "570.86.15", 12080, "v1.36.3", "containerd://2.2.9", "1.16.1", &h100,
		  "CVE-2024-0132 CVE-2024-0133 CVE-2024-0134 CVE-2024-0135 CVE-2024-0136 "
		  "CVE-2024-0137 CVE-2025-23359 CVE-2025-23266 CVE-2025-23267" },
		{ "old containerd", "570.86.15", 12080, "v1.36.3", "containerd://1.6.36", "", &h100,
		  "NoCDI CVE-2024-25621" },
		{ "1.7", "570.86.15", 12080, "v1.36.3", "containerd://1.7.29", "", &h100,
		  "CDIByConfiguration" },
		{ "2.1.4", "570.86.15", 12080, "v1.36.3", "containerd://2.1.4", "", &h100,
		  "CVE-2024-25621" },
		{ "old Kubernetes", "570.86.15", 12080, "v1.27.16", "containerd://2.2.9", "", &h100,
		  "NoCDI" },
		{ "gate", "570.86.15", 12080, "v1.28.1", "containerd://2.2.9", "", &h100,
		  "CDIByFeatureGate" },
		{ "too new", "570.86.15", 12080, "v1.38.0-rc.1", "containerd://2.2.9", "", &h100,
		  "NotTested" },
		{ "old driver", "440.33.01", 10020, "v1.36.3", "containerd://2.2.9", "", &h100,
		  "DriverTooOld DriverBelowBoard" },
		{ "board", "550.54.14", 12040, "v1.36.3", "containerd://2.2.9", "", &b200,
		  "DriverBelowBoard" },
		{ "mismatch", "550.54.14", 12080, "v1.36.3", "containerd://2.2.9", "", &h100,
		  "DriverBelowCUDA" },
		{ "CUDA between", "560.35.03", 12070, "v1.36.3", "containerd://2.2.9", "", &h100,
		  "" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct compat_finding findings[COMPAT_FINDINGS_MAX];
		const struct gpu_info *gpus[] = { cases[i].gpu };
		const struct compat_facts facts = { .driver = cases[i].driver,
						    .cuda = cases[i].cuda,
						    .kubelet = cases[i].kubelet,
						    .runtime = cases[i].runtime,
						    .toolkit = cases[i].toolkit,
						    .gpus = gpus,
						    .gpu_count = 1 };
		char codes[512] = "";
		size_t count = compat_check(&facts, findings), len = 0;
		for (size_t j = 0; j < count; j++) {
			len += (size_t)snprintf(codes + len, sizeof codes - len, "%s%s",
						j == 0 ? "" : " ", findings[j].code);
			CHECK(c, "a text, a version and a source",
			      findings[j].text[0] != '\0' && findings[j].version[0] != '\0' &&
				      findings[j].source[0] != '\0');
		}
		CHECK_STR(c, cases[i].name, str_of(codes), cases[i].codes);
	}
}

int main(void)
{
	struct check c = { 0 };
	check_versions(&c);
	check_tables(&c);
	return check_done(&c);
}

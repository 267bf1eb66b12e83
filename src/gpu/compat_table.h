// SPDX-License-Identifier: Apache-2.0
// Which versions go together, as data; compat.c reads it. Every row names where it is from. To add
// one: the component, from which version (included) up to which (excluded; "" is no bound) it
// holds, how bad it is, a code for programs, the text for people, the source. A version that no
// row names is fine. Rows about what was published after the last edit are not here.
#pragma once

#define BULLETIN "https://nvidia.custhelp.com/app/answers/detail/a_id/"
#define ADVISORY "https://github.com/containerd/containerd/security/advisories/"
#define CUDA_NOTES "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/"
#define TOOLKIT_NOTES                                                                              \
	"https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/"                \
	"release-notes.html"
#define GATES "https://kubernetes.io/docs/reference/command-line-tools-reference/feature-gates/"

// Component, from, below, level, code, text, source.
#define COMPAT_ROWS(X)                                                                             \
	X(TOOLKIT, "", "1.16.2", ERROR, "CVE-2024-0132",                                           \
	  "a crafted image reaches the host's files; install 1.16.2 or newer", BULLETIN "5582")    \
	X(TOOLKIT, "", "1.16.2", ERROR, "CVE-2024-0133",                                           \
	  "a crafted image makes empty files on the host; install 1.16.2 or newer",                \
	  BULLETIN "5582")                                                                         \
	X(TOOLKIT, "", "1.17.0", ERROR, "CVE-2024-0134",                                           \
	  "links made at the start leave the container's root; install 1.17.0 or newer",           \
	  TOOLKIT_NOTES)                                                                           \
	X(TOOLKIT, "", "1.17.1", ERROR, "CVE-2024-0135",                                           \
	  "a crafted image changes the host's binaries; install 1.17.1 or newer", BULLETIN "5599") \
	X(TOOLKIT, "", "1.17.1", ERROR, "CVE-2024-0136",                                           \
	  "an image gets the host's devices; install 1.17.1 or newer", BULLETIN "5599")            \
	X(TOOLKIT, "", "1.17.1", ERROR, "CVE-2024-0137",                                           \
	  "an image gets into the host's network; install 1.17.1 or newer", BULLETIN "5599")       \
	X(TOOLKIT, "", "1.17.4", ERROR, "CVE-2025-23359",                                          \
	  "a crafted image reaches the host's files; install 1.17.4 or newer", BULLETIN "5616")    \
	X(TOOLKIT, "", "1.17.8", ERROR, "CVE-2025-23266",                                          \
	  "an image runs code as root through a hook; install 1.17.8 or newer", BULLETIN "5659")   \
	X(TOOLKIT, "", "1.17.8", ERROR, "CVE-2025-23267",                                          \
	  "an image makes a hook follow links; install 1.17.8 or newer", BULLETIN "5659")          \
	X(CONTAINERD, "", "1.7.0", ERROR, "NoCDI",                                                 \
	  "knows no device names of CDI; install 1.7 or newer",                                    \
	  "https://github.com/containerd/containerd/blob/main/docs/cri/config.md")                 \
	X(CONTAINERD, "1.7.0", "2.0.0", WARNING, "CDIByConfiguration",                             \
	  "CDI is off unless enable_cdi is set in its configuration",                              \
	  "https://github.com/containerd/containerd/blob/main/docs/cri/config.md")                 \
	X(CONTAINERD, "", "1.7.29", ERROR, "CVE-2024-25621",                                       \
	  "its folders are open to local users; install 1.7.29 or newer",                          \
	  ADVISORY "GHSA-pwhc-rpq9-4c8w")                                                          \
	X(CONTAINERD, "2.0.0", "2.0.7", ERROR, "CVE-2024-25621",                                   \
	  "its folders are open to local users; install 2.0.7 or newer",                           \
	  ADVISORY "GHSA-pwhc-rpq9-4c8w")                                                          \
	X(CONTAINERD, "2.1.0", "2.1.5", ERROR, "CVE-2024-25621",                                   \
	  "its folders are open to local users; install 2.1.5 or newer",                           \
	  ADVISORY "GHSA-pwhc-rpq9-4c8w")                                                          \
	X(KUBERNETES, "", "1.28", ERROR, "NoCDI",                                                  \
	  "its device plugins cannot answer with CDI names; upgrade to 1.31 or newer", GATES)      \
	X(KUBERNETES, "1.28", "1.29", ERROR, "CDIByFeatureGate",                                   \
	  "CDI names need the gate DevicePluginCDIDevices; upgrade to 1.31 or newer", GATES)       \
	X(KUBERNETES, "1.38", "", WARNING, "NotTested",                                            \
	  "newer than what this release was tested with (1.36 and 1.37)",                          \
	  "this project's tests (HACKING.md)")                                                     \
	X(DRIVER, "", "450.80.02", ERROR, "DriverTooOld",                                          \
	  "lacks functions that the agent needs; install the 535 branch or newer",                 \
	  "https://docs.nvidia.com/datacenter/tesla/drivers/")

// CUDA version that the driver tells, and the oldest driver that comes with it.
#define COMPAT_CUDA(X)                                                                             \
	X("11.0", "450.36.06")                                                                     \
	X("11.1", "455.23")                                                                        \
	X("11.2", "460.27.03")                                                                     \
	X("11.3", "465.19.01")                                                                     \
	X("11.4", "470.42.01")                                                                     \
	X("11.5", "495.29.05")                                                                     \
	X("11.6", "510.39.01")                                                                     \
	X("11.7", "515.43.04")                                                                     \
	X("11.8", "520.61.05")                                                                     \
	X("12.0", "525.60.13")                                                                     \
	X("12.1", "530.30.02")                                                                     \
	X("12.2", "535.54.03")                                                                     \
	X("12.3", "545.23.06")                                                                     \
	X("12.4", "550.54.14")                                                                     \
	X("12.5", "555.42.02")                                                                     \
	X("12.6", "560.28.03")                                                                     \
	X("12.8", "570.26")                                                                        \
	X("12.9", "575.51.03")                                                                     \
	X("13.0", "580.65.06")

// Compute capability, and the driver of the first CUDA release that knows it.
#define COMPAT_BOARDS(X)                                                                           \
	X(7, 5, "410.48")                                                                          \
	X(8, 0, "450.36.06")                                                                       \
	X(8, 6, "455.23")                                                                          \
	X(8, 9, "520.61.05")                                                                       \
	X(9, 0, "520.61.05")                                                                       \
	X(10, 0, "570.26")                                                                         \
	X(12, 0, "570.26")

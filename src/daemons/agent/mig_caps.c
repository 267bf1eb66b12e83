// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/mig_caps.h"

#include "sys/fs.h"

#include <inttypes.h>
#include <stdio.h>

enum { MINORS_MAX_BYTES = 4 * 1024 * 1024, DEVICES_MAX_BYTES = 64 * 1024, MAJOR_MAX = 0xfff };

bool mig_caps_minor(struct str minors, uint32_t gpu_minor, uint32_t gi, uint32_t ci,
		    uint32_t *ret_minor)
{
	char want[64];
	uint64_t minor = 0;
	struct str line;
	int n = ci == UINT32_MAX ? snprintf(want, sizeof want,
					    "gpu%" PRIu32 "/gi%" PRIu32 "/access ", gpu_minor, gi)
				 : snprintf(want, sizeof want,
					    "gpu%" PRIu32 "/gi%" PRIu32 "/ci%" PRIu32 "/access ",
					    gpu_minor, gi, ci);
	ASSERT(n > 0 && (size_t)n < sizeof want);
	while (str_split_next(&minors, '\n', &line)) {
		if (!str_starts(line, str_of(want)))
			continue;
		if (!str_to_u64(str_trim(str_slice(line, (size_t)n, line.len)), &minor) ||
		    minor > UINT32_MAX)
			return false;
		*ret_minor = (uint32_t)minor;
		return true;
	}
	return false;
}

bool mig_caps_major(struct str devices, const char *name, uint32_t *ret_major)
{
	struct str line;
	while (str_split_next(&devices, '\n', &line)) {
		uint64_t major = 0;
		line = str_trim(line);
		size_t blank = str_find_byte(line, ' ', 0);
		if (str_eq_c(line, "Block devices:"))
			return false; // the same name may stand for another number there
		if (blank == SIZE_MAX ||
		    !str_eq_c(str_trim(str_slice(line, blank, line.len)), name) ||
		    !str_to_u64(str_slice(line, 0, blank), &major) || major == 0 ||
		    major > MAJOR_MAX)
			continue;
		*ret_major = (uint32_t)major;
		return true;
	}
	return false;
}

void mig_caps_read(const char *proc_root, struct mig_caps *ret)
{
	char path[4096];
	AUTO(buf_done) struct buf devices = { 0 };
	*ret = (struct mig_caps){ 0 };
	(void)snprintf(path, sizeof path, "%.3000s/driver/nvidia-caps/mig-minors", proc_root);
	if (fs_read(path, MINORS_MAX_BYTES, &ret->minors, NULL) != ERR_OK)
		buf_clear(&ret->minors);
	(void)snprintf(path, sizeof path, "%.3000s/devices", proc_root);
	if (fs_read(path, DEVICES_MAX_BYTES, &devices, NULL) != ERR_OK ||
	    !mig_caps_major(buf_str(&devices), "nvidia-caps", &ret->major))
		ret->major = 0;
}

void mig_caps_done(struct mig_caps *caps) { buf_done(&caps->minors); }

void mig_caps_find(const struct mig_caps *caps, struct mig_device *device)
{
	struct str minors = buf_str(&caps->minors);
	uint32_t gpu = device->gpu->minor, gi = device->instance->gi, ci = device->instance->ci;
	device->has_caps = mig_caps_minor(minors, gpu, gi, UINT32_MAX, &device->gi_cap) &&
			   mig_caps_minor(minors, gpu, gi, ci, &device->ci_cap);
}

char *mig_caps_name(uint32_t cap, char out[MIG_CAPS_NAME_BYTES])
{
	(void)snprintf(out, MIG_CAPS_NAME_BYTES, "nvidia-caps/nvidia-cap%" PRIu32, cap);
	return out;
}

// SPDX-License-Identifier: Apache-2.0
#include "gpu/gpu.h"

uint64_t gpu_memory_mib(const struct gpu_info *gpu) { return gpu->memory_bytes >> 20; }

const char *gpu_family(uint32_t compute_major, uint32_t compute_minor)
{
	switch (compute_major) {
	case 1: return "tesla";
	case 2: return "fermi";
	case 3: return "kepler";
	case 5: return "maxwell";
	case 6: return "pascal";
	case 7: return compute_minor < 5 ? "volta" : "turing";
	case 8: return compute_minor < 9 ? "ampere" : "ada-lovelace";
	case 9: return "hopper";
	case 10:
	case 12: return "blackwell";
	case 13: return "rubin";
	default: return "undefined";
	}
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

char *gpu_product_label(const char *model, char out[GPU_LABEL_BYTES])
{
	size_t len = 0;
	for (const char *c = model; *c != '\0' && len < GPU_LABEL_BYTES - 1; c++) {
		if (is_alnum(*c) || *c == '-' || *c == '_' || *c == '.')
			out[len++] = *c;
		else if (*c == ' ')
			out[len++] = '-';
	}
	// A label value begins and ends with an alphanumeric character.
	while (len > 0 && !is_alnum(out[len - 1]))
		len--;
	out[len] = '\0';
	size_t skip = 0;
	while (skip < len && !is_alnum(out[skip]))
		skip++;
	memmove(out, out + skip, len - skip + 1);
	return out;
}

bool gpu_is_uuid(struct str text)
{
	if (!str_starts(text, STR("GPU-")) && !str_starts(text, STR("MIG-")))
		return false;
	if (text.len == 4 || text.len >= GPU_UUID_BYTES)
		return false;
	for (size_t i = 4; i < text.len; i++) {
		char c = text.data[i];
		if (!is_alnum(c) && c != '-' && c != '/')
			return false;
	}
	return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "gpu/field.h"
#include "gpu/gpu.h"

static void check_labels(struct check *c)
{
	static const struct {
		const char *name, *model, *want;
	} cases[] = {
		{ "blanks become dashes", "NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3" },
		{ "kept as it is", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB" },
		{ "odd bytes are dropped", "RTX(TM) 6000/Ada", "RTXTM-6000Ada" },
		{ "ends are alphanumeric", " _T4_ ", "T4" },
		{ "nothing is left", "()", "" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		char out[GPU_LABEL_BYTES];
		CHECK_STR(c, cases[i].name, str_of(gpu_product_label(cases[i].model, out)),
			  cases[i].want);
	}
	char out[GPU_LABEL_BYTES];
	char model[200];
	memset(model, 'a', sizeof model);
	model[sizeof model - 1] = '\0';
	CHECK_INT(c, "a label value has at most 63 bytes", strlen(gpu_product_label(model, out)),
		  63);
}

static void check_families(struct check *c)
{
	static const struct {
		uint32_t major, minor;
		const char *want;
	} cases[] = {
		{ 7, 0, "volta" },      { 7, 5, "turing" },       { 8, 0, "ampere" },
		{ 8, 6, "ampere" },     { 8, 9, "ada-lovelace" }, { 9, 0, "hopper" },
		{ 10, 0, "blackwell" }, { 12, 0, "blackwell" },   { 13, 0, "rubin" },
		{ 99, 0, "undefined" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		CHECK_STR(c, "family", str_of(gpu_family(cases[i].major, cases[i].minor)),
			  cases[i].want);
}

static void check_uuids(struct check *c)
{
	CHECK(c, "whole GPU", gpu_is_uuid(STR("GPU-8d4a-11")));
	CHECK(c, "MIG of old drivers", gpu_is_uuid(STR("MIG-GPU-8d4a/1/0")));
	CHECK(c, "no prefix", !gpu_is_uuid(STR("8d4a")));
	CHECK(c, "empty", !gpu_is_uuid(STR("GPU-")));
	CHECK(c, "quote", !gpu_is_uuid(STR("GPU-8d\"4a")));
	char text[GPU_UUID_BYTES + 1];
	memset(text, 'a', sizeof text);
	memcpy(text, "GPU-", 4);
	CHECK(c, "too long", !gpu_is_uuid((struct str){ text, GPU_UUID_BYTES }));
	CHECK(c, "longest", gpu_is_uuid((struct str){ text, GPU_UUID_BYTES - 1 }));
}

static void check_fields(struct check *c)
{
	struct gpu_reading reading = { 0 };
	CHECK(c, "nothing read yet", !gpu_reading_has(&reading, GPU_FIELD_POWER_MW));
	gpu_reading_set(&reading, GPU_FIELD_POWER_MW, 68500);
	CHECK(c, "read", gpu_reading_has(&reading, GPU_FIELD_POWER_MW));
	CHECK(c, "others not", !gpu_reading_has(&reading, GPU_FIELD_SM_CLOCK));
	AUTO(buf_done) struct buf out = { 0 };
	gpu_field_print(&out, GPU_FIELD_POWER_MW, 68500);
	CHECK_STR(c, "watt with six decimals", buf_str(&out), "68.500000");
	buf_clear(&out);
	gpu_field_print(&out, GPU_FIELD_GPU_TEMP, -3);
	CHECK_STR(c, "integer", buf_str(&out), "-3");
}

int main(void)
{
	struct check c = { 0 };
	check_labels(&c);
	check_families(&c);
	check_uuids(&c);
	check_fields(&c);
	return check_done(&c);
}

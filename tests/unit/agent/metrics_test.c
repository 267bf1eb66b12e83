// SPDX-License-Identifier: Apache-2.0
// The classic profile byte by byte against golden files: whole page of the GPUs, with a CSV of
// counters, as a tenant sees it, and as OpenMetrics. argv: folder of golden files.
#include "base/metric.h"
#include "check.h"
#include "daemons/agent/exporter.h"
#include "daemons/agent/load_view.h"
#include "daemons/agent/metrics.h"

#include <stdlib.h>
#include <unistd.h>

enum { FILE_MAX_BYTES = 64 * 1024, GPUS = 4 };
static const uint64_t NOW_NS = 100 * UINT64_C(1000000000);

static struct monitor_gpu gpus[GPUS];
static struct counters counters;
static const char *golden_dir;

static err_status on_event(void *arg, struct usage_event *event)
{
	(void)arg;
	(void)event;
	return ERR_OK;
}

static void set_up_gpus(void)
{
	for (size_t i = 0; i < GPUS; i++) {
		struct monitor_gpu *gpu = &gpus[i];
		*gpu = (struct monitor_gpu){
			.is_known = true,
			.is_seen = true,
			.info = { .index = (uint32_t)i, .minor = (uint32_t)i },
			.reading_ns = NOW_NS - 1000000,
		};
		(void)snprintf(gpu->info.uuid, sizeof gpu->info.uuid, "GPU-%zu", i);
		(void)snprintf(gpu->info.model, sizeof gpu->info.model, "NVIDIA H100 80GB HBM3");
		(void)snprintf(gpu->info.pci_bus_id, sizeof gpu->info.pci_bus_id,
			       "00000000:%zuA:00.0", i + 1);
		for (int field = 0; field < GPU_FIELD_COUNT; field++)
			gpu_reading_set(&gpu->reading, (enum gpu_field)field,
					(int64_t)(1000 * i) + field);
	}
	gpus[2].reading_ns = 1; // too old: only its XID is shown
	gpus[2].last_xid = 79;
	(void)snprintf(gpus[3].info.model, sizeof gpus[3].info.model, "odd \"name\\\nof a board");
	gpus[3].reading.valid &= ~(UINT64_C(1) << GPU_FIELD_MEMORY_TEMP);
}

static void hold(struct usage *usage, const char *gpu, const char *team, const char *pod,
		 uint32_t share, uint32_t shares)
{
	const struct usage_holder holder = { .pod_uid = str_of(pod),
					     .namespace_ = str_of(team),
					     .pod = str_of(pod),
					     .container = STR("main"),
					     .gpu = str_of(gpu),
					     .share = share,
					     .shares = shares,
					     .is_first_choice = true };
	usage_show(usage, &holder, 10);
	usage_tenant(usage, team, team);
}

static struct usage *set_up_usage(void)
{
	const struct usage_config config = { .emit = on_event };
	struct usage *usage = usage_new(&config);
	usage_show_begin(usage);
	hold(usage, "GPU-0", "red", "train", 0, 0);
	hold(usage, "GPU-1", "red", "serve-a", 0, 4);
	hold(usage, "GPU-1", "red", "serve-a", 1, 4);
	hold(usage, "GPU-1", "blue", "serve-b", 2, 4);
	hold(usage, "GPU-3", "blue", "other", 0, 0);
	usage_show_end(usage, 10);
	for (size_t i = 0; i < usage_count(usage); i++)
		usage_sampled(usage, usage_at(usage, i), 250, 1024 * (i + 1));
	return usage;
}

static void check_golden(struct check *c, const char *name, struct str got)
{
	static char want[FILE_MAX_BYTES];
	char path[600];
	(void)snprintf(path, sizeof path, "%s/%s", golden_dir, name);
	FILE *file = fopen(path, "re");
	size_t len = file == NULL ? 0 : fread(want, 1, sizeof want - 1, file);
	want[len] = '\0';
	if (file != NULL)
		(void)fclose(file);
	CHECK_STR(c, name, got, want);
	// To see what changed: GOLDEN_OUT=FOLDER writes what came.
	const char *folder = getenv("GOLDEN_OUT");
	if (folder == NULL)
		return;
	(void)snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "we");
	if (file == NULL || fwrite(got.data, 1, got.len, file) != got.len || fclose(file) != 0)
		abort();
}

static void check_pages(struct check *c, const struct usage *usage)
{
	static const char csv[] = "DCGM_FI_DEV_GPU_UTIL, gauge, \"GPU, busy (in %).\"\n"
				  "DCGM_FI_DEV_XID_ERRORS, gauge, Last XID\n"
				  "DCGM_FI_DEV_POWER_USAGE, gauge, Power\n";
	const struct nvml_hello driver = { .driver_version = "570.86.15", .cuda_version = 12080 };
	struct metrics_view view = { .node = "node1",
				     .counters = &counters,
				     .gpus = gpus,
				     .count = GPUS,
				     .driver = &driver,
				     .usage = usage,
				     .now_ns = NOW_NS,
				     .reading_max_age_ns = NOW_NS / 10 };
	AUTO(buf_done) struct buf page = { 0 };
	AUTO(buf_done) struct buf open = { 0 };
	struct err err = { 0 };
	counters_init(&counters);
	metrics_put_gpus(&page, &view);
	check_golden(c, "classic.txt", buf_str(&page));
	buf_clear(&page);
	view.tenant = "red";
	metrics_put(&page, &view);
	check_golden(c, "tenant.txt", buf_str(&page));
	CHECK(c, "nothing of others", strstr(page.data, "blue") == NULL);
	metric_to_openmetrics(buf_str(&page), &open);
	check_golden(c, "tenant-openmetrics.txt", buf_str(&open));
	buf_clear(&page);
	view.tenant = NULL;
	CHECK_INT(c, "csv", counters_parse(str_of(csv), &counters, &err), ERR_OK);
	metrics_put_gpus(&page, &view);
	metrics_put_allocations(&page, &view);
	check_golden(c, "counters.txt", buf_str(&page));
	buf_clear(&page);
	view.tenant = "green";
	metrics_put_gpus(&page, &view);
	CHECK_STR(c, "a tenant without GPUs", buf_str(&page), "");
}

// Two instances of one GPU, one of them held.
static void check_migs(struct check *c)
{
	static struct monitor_gpu gpu;
	const struct usage_config config = { .emit = on_event };
	const struct nvml_hello driver = { .driver_version = "570.86.15" };
	const struct usage_holder holder = { .pod_uid = STR("u"),
					     .namespace_ = STR("red"),
					     .pod = STR("slice"),
					     .container = STR("main"),
					     .gpu = STR("GPU-0"),
					     .share_count = 3,
					     .shares = 7,
					     .profile = STR("3g.40gb"),
					     .is_first_choice = true };
	static const char csv[] = "DCGM_FI_DEV_FB_USED, gauge, Used\nDCGM_FI_DEV_GPU_TEMP, gauge, "
				  "Heat\n";
	struct usage *usage = usage_new(&config);
	struct metrics_view view = { .node = "node1",
				     .counters = &counters,
				     .gpus = &gpu,
				     .count = 1,
				     .driver = &driver,
				     .usage = usage,
				     .now_ns = NOW_NS,
				     .reading_max_age_ns = NOW_NS / 10 };
	AUTO(buf_done) struct buf page = { 0 };
	gpu = gpus[0];
	gpu.mig_ns = NOW_NS - 1;
	gpu.mig.instance_count = 2;
	gpu.mig.instances[0] = (struct mig_instance){
		.uuid = "MIG-0", .profile = "3g.40gb", .gi = 1, .start = 0, .used_mib = 700
	};
	gpu.mig.instances[1] = (struct mig_instance){
		.uuid = "MIG-1", .profile = "1g.10gb+me", .gi = 11, .start = 4, .used_mib = 12
	};
	usage_show_begin(usage);
	usage_show(usage, &holder, 10);
	usage_show_end(usage, 10);
	usage_tenant(usage, "red", "red");
	CHECK_INT(c, "csv", counters_parse(str_of(csv), &counters, NULL), ERR_OK);
	metrics_put_gpus(&page, &view);
	check_golden(c, "mig.txt", buf_str(&page));
	buf_clear(&page);
	view.tenant = "red";
	metrics_put_gpus(&page, &view);
	check_golden(c, "mig-tenant.txt", buf_str(&page));
	usage_free(usage);
}

static void check_openmetrics(struct check *c)
{
	static const char page[] = "# HELP a_total Say \"hi\".\n# TYPE a_total counter\na_total 5\n"
				   "# HELP b Bytes.\n# TYPE b counter\nb 6\n"
				   "# HELP c Now.\n# TYPE c gauge\nc{x=\"1\"} 7\n";
	AUTO(buf_done) struct buf out = { 0 };
	metric_to_openmetrics(str_of(page), &out);
	CHECK_STR(c, "openmetrics", buf_str(&out),
		  "# TYPE a counter\n# HELP a Say \\\"hi\\\".\na_total 5\n"
		  "# TYPE b unknown\n# HELP b Bytes.\nb 6\n"
		  "# TYPE c gauge\n# HELP c Now.\nc{x=\"1\"} 7\n# EOF\n");
}

static void check_tokens(struct check *c)
{
	static struct exporter exporter = { .tokens_file = "x" };
	static const struct {
		const char *text, *error; // NULL: taken
	} files[] = {
		{ "* 0123456789abcdef\n# people\nred  tenant-red-token-1\n", NULL },
		{ "", "no token" },
		{ "red short\n", "line 1: has no token" },
		{ "red\n", "line 1: has no token" },
		{ "\nRed! 0123456789abcdef\n", "line 2: begins with no tenant" },
		{ "red 0123456789abcdef x\n", "blanks" },
	};
	struct err err = { 0 };
	for (size_t i = ARRAY_COUNT(files); i-- > 0;) {
		err_status status =
			exporter_tokens_parse(str_of(files[i].text), &exporter.tokens, &err);
		CHECK(c, files[i].text, (status == ERR_OK) == (files[i].error == NULL));
		if (files[i].error != NULL)
			CHECK(c, err.text, strstr(err.text, files[i].error) != NULL);
	}
	static const struct {
		const char *authorization;
		bool is_allowed;
		const char *tenant;
	} asks[] = {
		{ "Bearer 0123456789abcdef", true, NULL },
		{ "bearer tenant-red-token-1", true, "red" },
		{ "Bearer tenant-red-token-2", false, NULL },
		{ "Bearer 0123456789abcde", false, NULL },
		{ "Basic 0123456789abcdef", false, NULL },
		{ "Bearer ", false, NULL },
		{ "", false, NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
		const char *tenant = "?";
		CHECK(c, asks[i].authorization,
		      exporter_allows(&exporter, str_of(asks[i].authorization), &tenant) ==
			      asks[i].is_allowed);
		CHECK_STR(c, asks[i].authorization, str_of(tenant == NULL ? "all" : tenant),
			  asks[i].tenant == NULL ? "all" : asks[i].tenant);
	}
	exporter.tokens_file = NULL;
	const char *tenant = "?";
	CHECK(c, "without a file", exporter_allows(&exporter, STR(""), &tenant) && tenant == NULL);
}

// A file that goes away, stays away, and comes back as it was.
static void check_unreadable(struct check *c)
{
	static struct exporter exporter;
	static const char text[] = "DCGM_FI_DEV_GPU_UTIL, gauge, x\n";
	char path[] = "/tmp/counters-XXXXXX";
	struct err err = { 0 };
	int fd = mkstemp(path);
	CHECK(c, "file", fd >= 0 && write(fd, text, sizeof text - 1) == sizeof text - 1);
	(void)close(fd);
	CHECK_INT(c, "start", exporter_init(&exporter, path, NULL, &err), ERR_OK);
	CHECK_INT(c, "one", exporter.counters.count, 1);
	char hidden[sizeof path + 8];
	(void)snprintf(hidden, sizeof hidden, "%s.away", path);
	CHECK_INT(c, "away", rename(path, hidden), 0);
	exporter_look(&exporter);
	CHECK(c, "is told", exporter.is_counters_bad && exporter.counters_why[0] != '\0');
	exporter_look(&exporter);
	CHECK(c, "what was in force stays", exporter.is_counters_bad);
	CHECK_INT(c, "still one", exporter.counters.count, 1);
	CHECK_INT(c, "back", rename(hidden, path), 0);
	exporter_look(&exporter);
	CHECK(c, "good again", !exporter.is_counters_bad && exporter.counters_why[0] == '\0');
	CHECK_INT(c, "removed", unlink(path), 0);
	exporter_done(&exporter);
}

static void check_load_view(struct check *c, const struct usage *usage)
{
	static struct monitor_gpu three[3];
	struct load_view view = {
		.node = "node1", .gpus = three, .count = 3, .usage = usage, .now_ns = NOW_NS
	};
	AUTO(buf_done) struct buf page = { 0 };
	memcpy(three, gpus, sizeof three);
	for (size_t i = 0; i < 3; i++)
		three[i].reading = (struct gpu_reading){ .valid = 0 };
	gpu_reading_set(&three[0].reading, GPU_FIELD_UTIL_PERCENT, 80);
	gpu_reading_set(&three[0].reading, GPU_FIELD_FB_USED_MIB, 4096);
	three[1].reading_ns = 0; // never read
	load_view_put(&view, &page);
	CHECK_STR(c, "load view", buf_str(&page),
		  "{\"node\":\"node1\",\"gpus\":[{\"uuid\":\"GPU-0\",\"healthy\":true,"
		  "\"age_ms\":1,\"util_milli\":800,\"memory_mib\":4096,\"holders\":["
		  "{\"pod_uid\":\"train\",\"container\":\"main\",\"num\":1,\"den\":1}]},"
		  "{\"uuid\":\"GPU-1\",\"healthy\":true,\"holders\":["
		  "{\"pod_uid\":\"serve-b\",\"container\":\"main\",\"num\":1,\"den\":4},"
		  "{\"pod_uid\":\"serve-a\",\"container\":\"main\",\"num\":2,\"den\":4}]},"
		  "{\"uuid\":\"GPU-2\",\"healthy\":true,\"age_ms\":99999,\"holders\":[]}]}\n");
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	if (argc != 2)
		return 2;
	golden_dir = argv[1];
	set_up_gpus();
	struct usage *usage = set_up_usage();
	check_pages(&c, usage);
	check_load_view(&c, usage);
	check_migs(&c);
	check_openmetrics(&c);
	check_tokens(&c);
	check_unreadable(&c);
	usage_free(usage);
	return check_done(&c);
}

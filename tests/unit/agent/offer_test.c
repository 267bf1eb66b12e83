// SPDX-License-Identifier: Apache-2.0
// The device plugin's configuration, file v1 of upstream: what is taken, what is refused and how
// it says so; what GPUs are offered as then; how shares are chosen.
#include "base/rng.h"
#include "check.h"
#include "daemons/agent/offer.h"
#include "daemons/agent/portion.h"
#include "daemons/agent/prefer.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *name, *text;
	struct dp_config want; // of what is compared below
	size_t notes;
} taken_cases[] = {
	{ "least", "version: v1\n", { .lists = DP_LIST_CDI_CRI }, 0 },
	{ "JSON",
	  "{\"version\": \"v1\", \"flags\": {\"plugin\": {\"deviceListStrategy\": "
	  "[\"cdi-annotations\", \"cdi-cri\"]}}}",
	  { .lists = DP_LIST_ANY_CDI },
	  0 },
	{ "as text",
	  "version: v1\nflags:\n  plugin:\n    deviceListStrategy: envvar\n"
	  "    deviceIDStrategy: index\n    passDeviceSpecs: true\n",
	  { .lists = DP_LIST_ENVVAR, .ids_by_index = true, .pass_device_specs = true },
	  0 },
	{ "upstream's example",
	  "version: v1\nflags:\n  migStrategy: \"none\"\n  failOnInitError: true\n"
	  "  nvidiaDriverRoot: \"/\"\n  plugin:\n    passDeviceSpecs: false\n"
	  "    deviceListStrategy: envvar\n    deviceIDStrategy: uuid\n  gfd:\n"
	  "    oneshot: false\n    noTimestamp: false\n    outputFile: /etc/f\n"
	  "    sleepInterval: 60s\n",
	  { .lists = DP_LIST_ENVVAR, .fail_on_init = true },
	  2 },
	{ "time-slicing",
	  "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n"
	  "    failRequestsGreaterThanOne: true\n    resources:\n"
	  "    - name: nvidia.com/gpu\n      replicas: 10\n",
	  { .lists = DP_LIST_CDI_CRI,
	    .sharing = DP_TIME_SLICED,
	    .fails_above_one = true,
	    .shared_count = 1 },
	  0 },
	{ "MPS with one replica",
	  "version: v1\nflags: {mpsRoot: /mps}\nsharing:\n  mps:\n    resources:\n"
	  "    - {name: gpu, replicas: 1}\n",
	  { .lists = DP_LIST_CDI_CRI,
	    .sharing = DP_MPS,
	    .fails_above_one = true,
	    .shared_count = 1 },
	  0 },
	{ "nulls",
	  "version: v1\nflags:\nresources:\nsharing: {timeSlicing: }\nimex: \n",
	  { .lists = DP_LIST_CDI_CRI },
	  0 },
	{ "without effect",
	  "version: v1\nflags: {migStrategy: single, gdsEnabled: true}\n"
	  "resources: {gpus: [{pattern: '*', name: gpu}]}\n",
	  { .lists = DP_LIST_CDI_CRI, .mig = DP_MIG_SINGLE },
	  2 },
	{ "channel",
	  "version: v1\nimex: {channelIDs: [0], required: true}\n"
	  "flags: {plugin: {deviceListStrategy: [envvar]}}",
	  { .lists = DP_LIST_ENVVAR, .has_imex_channel = true },
	  0 },
};

static void check_taken(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(taken_cases); i++) {
		struct dp_config config;
		struct err err = { 0 };
		const char *flags[DP_OPTIONS_MAX] = { NULL };
		dp_config_init(&config);
		err_status status = dp_config_read(str_of(taken_cases[i].text), &config, &err);
		if (status == ERR_OK)
			status = dp_config_overlay(&config, flags, &err);
		CHECK_STR(c, taken_cases[i].name, str_of(err.text), "");
		const struct dp_config *want = &taken_cases[i].want;
		CHECK_INT(c, taken_cases[i].name, status, ERR_OK);
		CHECK_INT(c, taken_cases[i].name, config.lists, want->lists);
		CHECK_INT(c, taken_cases[i].name, config.mig, want->mig);
		CHECK_INT(c, taken_cases[i].name, config.ids_by_index, want->ids_by_index);
		CHECK_INT(c, taken_cases[i].name, config.pass_device_specs,
			  want->pass_device_specs);
		CHECK_INT(c, taken_cases[i].name, config.fail_on_init, want->fail_on_init);
		CHECK_INT(c, taken_cases[i].name, config.sharing, want->sharing);
		CHECK_INT(c, taken_cases[i].name, config.fails_above_one, want->fails_above_one);
		CHECK_INT(c, taken_cases[i].name, config.shared_count, want->shared_count);
		CHECK_INT(c, taken_cases[i].name, config.has_imex_channel, want->has_imex_channel);
		CHECK_INT(c, taken_cases[i].name, config.note_count, taken_cases[i].notes);
	}
}

#define SHARE_HEAD "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: gpu\n"

static const struct {
	const char *text, *error;
} refused_cases[] = {
	{ "", "document" },
	{ "[]", "line 1: must be a mapping" },
	{ "flags: {}\n", "line 1: version is missing; add \"version: v1\"" },
	{ "version: v2\n", "line 1: version: must be v1" },
	{ "version: v1\nflag: {}\n",
	  "line 2: flag: is no key of file v1; known here are version, flags" },
	{ "version: v1\nflags:\n  a: 1\n", "line 3: flags.a: is no key of file v1" },
	{ "version: v1\nflags:\n\n  migStrategy: some\n",
	  "line 4: flags.migStrategy: \"some\" is not known here; use one of none, "
	  "single" },
	{ "version: v1\nflags:\n  failOnInitError: yes\n",
	  "line 3: flags.failOnInitError: must be true or false" },
	{ "version: v1\nflags: {mpsRoot: mps}\n", "must be an absolute path" },
	{ "version: v1\nflags:\n  deviceDiscoveryStrategy: tegra\n",
	  "line 3: flags.deviceDiscoveryStrategy: \"tegra\" is not known here" },
	{ "version: v1\nflags:\n  plugin:\n    deviceListStrategy: [cdi-cri, x]\n",
	  "line 4: flags.plugin.deviceListStrategy: \"x\" is not known here" },
	{ "version: v1\nflags:\n  plugin: {deviceListStrategy: []}\n", "a list of them" },
	{ "version: v1\nflags:\n  gfd: {sleepInterval: 5}\n", "line 3: flags.gfd.sleep" },
	{ "version: v1\nimex: {channelIDs: [1]}\n", "only [] and [0]" },
	{ "version: v1\nsharing: {timeSlicing: {}}\n", "resources is missing" },
	{ "version: v1\nsharing: {timeslicing: {}}\n",
	  "sharing.timeslicing: is no key of file v1; known here are timeSlicing, mps" },
	{ SHARE_HEAD, "line 5: sharing.timeSlicing.resources[0]: replicas is missing" },
	{ SHARE_HEAD "      replicas: 1\n",
	  "line 6: sharing.timeSlicing.resources[0].replicas: must be a whole number of at "
	  "least 2" },
	{ SHARE_HEAD "      replicas: 0\n", "at least 2" },
	{ SHARE_HEAD "      replicas: -3\n", "at least 2" },
	{ SHARE_HEAD "      replicas: two\n", "must be a whole number" },
	{ SHARE_HEAD "      replicas: 70000\n", "would have 4900000 bytes with 1 GPUs" },
	{ SHARE_HEAD "      devices: [0, 1, 2, 3, 4, 5, 6, 7]\n      replicas: 9500\n",
	  "line 7: sharing.timeSlicing.resources[0].replicas: the list for the kubelet "
	  "would have 5244000 bytes with 8 GPUs, it takes at most 4194304; use at most "
	  "7598" },
	{ SHARE_HEAD "      replicas: 99999999999\n", "it takes at most 4194304" },
	{ SHARE_HEAD "      replicas: 2\n      devices: none\n", "line 7: " },
	{ SHARE_HEAD "      replicas: 2\n      devices: 0\n", "must be all, a number" },
	{ SHARE_HEAD "      replicas: 2\n      devices: [0, 0]\n", "names a device twice" },
	{ SHARE_HEAD "      replicas: 2\n      devices: [99]\n", "resources[0].devices[0]" },
	{ SHARE_HEAD "      replicas: 2\n      devices: [x]\n", "its UUID" },
	{ SHARE_HEAD "      replicas: 2\n      rename: A B\n", "name of a resource" },
	{ "version: v1\nsharing:\n  timeSlicing: {resources: [{name: gpu, replicas: 2}]}\n"
	  "  mps: {resources: [{name: gpu, replicas: 2}]}\n",
	  "line 4: sharing.mps: not together with sharing.timeSlicing" },
	{ "version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n",
	  "sharing.mps needs flags.mpsRoot" },
	{ "version: v1\nflags: {mpsRoot: /m, migStrategy: mixed}\n"
	  "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n",
	  "sharing.mps: not together with migStrategy mixed" },
	{ "version: v1\nsharing: {shares: {replicas: 4}}\n", "replicas" },
	{ "version: v1\nsharing: {shares: {devices: -1}}\n",
	  "sharing.shares.devices: must be all, a number of GPUs" },
	{ "version: v1\nsharing: {shares: {memoryLimit: hard}}\n",
	  "sharing.shares.memoryLimit: must be none or mps" },
	{ "version: v1\nsharing: {shares: {memoryLimit: mps}}\n",
	  "sharing.shares.memoryLimit mps needs flags.mpsRoot" },
};

static void check_refused(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(refused_cases); i++) {
		struct dp_config config;
		struct err err = { 0 };
		dp_config_init(&config);
		err_status status = dp_config_read(str_of(refused_cases[i].text), &config, &err);
		CHECK_INT(c, "untouched", config.shared_count, status == ERR_OK ? 1 : 0);
		if (status == ERR_OK)
			status = dp_config_check(&config, &err);
		CHECK(c, refused_cases[i].text, status != ERR_OK);
		CHECK(c, refused_cases[i].error, strstr(err.text, refused_cases[i].error) != NULL);
		if (strstr(err.text, refused_cases[i].error) == NULL)
			printf("got: %s\n", err.text);
	}
}

// Flag above environment above file.
static void check_order(struct check *c)
{
	static const char text[] = "version: v1\nflags: {plugin: {deviceListStrategy: envvar, "
				   "sharedDevicesAllocationPolicy: packed}}\n";
	const char *flags[DP_OPTIONS_MAX] = { NULL };
	struct dp_config config;
	struct err err = { 0 };
	bool is_switch = true;
	dp_config_init(&config);
	CHECK_INT(c, "file", dp_config_read(str_of(text), &config, &err), ERR_OK);
	if (setenv("DEVICE_LIST_STRATEGY", "volume-mounts, cdi-cri", 1) != 0 ||
	    setenv("PASS_DEVICE_SPECS", "T", 1) != 0)
		abort();
	struct dp_config next = config;
	CHECK_INT(c, "environment", dp_config_overlay(&next, flags, &err), ERR_OK);
	CHECK_INT(c, "environment", next.lists, DP_LIST_VOLUME_MOUNTS | DP_LIST_CDI_CRI);
	CHECK(c, "environment", next.pass_device_specs && next.policy == DP_PACKED);
	size_t i = dp_option_find(STR("device-list-strategy"), &is_switch);
	CHECK(c, "takes a value", i != SIZE_MAX && !is_switch);
	flags[i] = "cdi-annotations";
	next = config;
	CHECK_INT(c, "flag", dp_config_overlay(&next, flags, &err), ERR_OK);
	CHECK_INT(c, "flag", next.lists, DP_LIST_CDI_ANNOTATIONS);
	flags[i] = "nonsense";
	CHECK_INT(c, "bad flag", dp_config_overlay(&next, flags, &err), ERR_INVALID);
	CHECK(c, "named", strstr(err.text, "--device-list-strategy: \"nonsense\"") != NULL);
	flags[i] = NULL;
	if (setenv("PASS_DEVICE_SPECS", "maybe", 1) != 0)
		abort();
	CHECK_INT(c, "bad environment", dp_config_overlay(&next, flags, &err), ERR_INVALID);
	CHECK_STR(c, "named", str_of(err.text), "$PASS_DEVICE_SPECS: must be true or false");
	i = dp_option_find(STR("gds-enabled"), &is_switch);
	CHECK(c, "stands alone", i != SIZE_MAX && is_switch);
	CHECK(c, "no flag", dp_option_find(STR("gds"), &is_switch) == SIZE_MAX);
	if (unsetenv("DEVICE_LIST_STRATEGY") != 0 || unsetenv("PASS_DEVICE_SPECS") != 0)
		abort();
}

enum { GPUS = 4 };

static void fill_gpus(struct monitor_gpu gpus[GPUS])
{
	for (uint32_t i = 0; i < GPUS; i++) {
		gpus[i] = (struct monitor_gpu){ .is_known = true, .info.numa_node = -1 };
		gpus[i].info.index = i;
		(void)snprintf(gpus[i].info.uuid, sizeof gpus[i].info.uuid, "GPU-%u", i);
		health_init(&gpus[i].health);
	}
}

// What each of four GPUs is offered as: "resource xN", separated by blanks.
static void check_plans(struct check *c)
{
#define ENTRIES(text) "version: v1\nsharing: {timeSlicing: {resources: [" text "]}}\n"
#define RENAMED(text)                                                                              \
	"version: v1\nsharing: {timeSlicing: {renameByDefault: true, resources: [" text "]}}\n"
	static const struct {
		const char *name, *text, *want; // beginning with '!': the error
	} cases[] = {
		{ "whole", "version: v1\n", "gpu gpu gpu gpu " },
		{ "all", ENTRIES("{name: gpu, replicas: 3}"), "gpux3 gpux3 gpux3 gpux3 " },
		{ "renamed", RENAMED("{name: gpu, replicas: 2}"),
		  "gpu.sharedx2 gpu.sharedx2 gpu.sharedx2 gpu.sharedx2 " },
		{ "by index", RENAMED("{name: gpu, replicas: 2, devices: [1, '3']}"),
		  "gpu gpu.sharedx2 gpu gpu.sharedx2 " },
		{ "by UUID", ENTRIES("{name: nvidia.com/gpu, replicas: 2, devices: [GPU-2]}"),
		  "gpu gpu gpux2 gpu " },
		{ "the first two", ENTRIES("{name: gpu, replicas: 5, devices: 2}"),
		  "gpux5 gpux5 gpu gpu " },
		{ "different counts",
		  RENAMED("{name: gpu, replicas: 2, devices: [0]}, {name: gpu, rename: gpu.small, "
			  "replicas: 8, devices: [2, 3]}"),
		  "gpu.sharedx2 gpu gpu.smallx8 gpu.smallx8 " },
		{ "not there", ENTRIES("{name: gpu, replicas: 2, devices: [7, GPU-x]}"),
		  "gpu gpu gpu gpu " },
		{ "another resource", ENTRIES("{name: mig-1g.5gb, replicas: 2}"),
		  "gpu gpu gpu gpu " },
		{ "shares", "version: v1\nsharing: {shares: {devices: 1}}\n",
		  "gpu-millix1000 gpu gpu gpu " },
		{ "shares and others",
		  "version: v1\nsharing: {shares: {}, timeSlicing: {resources: [{name: gpu, "
		  "replicas: 2, devices: [3]}]}}\n",
		  "!GPU 3 (GPU-3) is selected by two entries" },
		{ "twice",
		  ENTRIES("{name: gpu, replicas: 2}, {name: gpu, replicas: 3, devices: [2]}"),
		  "!GPU 2 (GPU-2) is selected by two entries" },
		{ "too many clients",
		  "version: v1\nflags: {mpsRoot: /m}\nsharing: {mps: "
		  "{resources: [{name: gpu, replicas: 17}]}}\n",
		  "!GPU 0 (GPU-0) serves at most 16 clients by MPS, not 17 replicas" },
		{ "too many together", ENTRIES("{name: gpu, replicas: 30000}"),
		  "!nvidia.com/gpu: the list of 120000 devices would have 8400000 bytes" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(buf_done) struct buf got = { 0 };
		struct monitor_gpu gpus[GPUS];
		struct dp_config config;
		struct offer offer = { 0 };
		struct err err = { 0 };
		fill_gpus(gpus);
		dp_config_init(&config);
		CHECK_INT(c, cases[i].name, dp_config_read(str_of(cases[i].text), &config, &err),
			  ERR_OK);
		err_status status = offer_plan(&config, "nvidia.com/gpu", gpus, GPUS, &offer, &err);
		if (cases[i].want[0] == '!') {
			CHECK(c, cases[i].name, status != ERR_OK);
			CHECK(c, err.text, strstr(err.text, cases[i].want + 1) != NULL);
			continue;
		}
		for (uint32_t slot = 0; slot < offer.count; slot++) {
			buf_put_c(&got, strchr(offer.gpus[slot].resource, '/') + 1);
			if (offer.gpus[slot].replicas > 0)
				buf_printf(&got, "x%u", offer.gpus[slot].replicas);
			buf_put_byte(&got, ' ');
		}
		CHECK_STR(c, cases[i].name, buf_str(&got), cases[i].want);
	}
}

static void check_lists(struct check *c)
{
	struct monitor_gpu gpus[GPUS];
	struct offer offer = { .count = GPUS };
	const char *names[OFFER_RESOURCES_MAX];
	static const char *const nothing_held_back[GPU_MAX] = { NULL };
	AUTO(buf_done) struct buf list = { 0 };
	fill_gpus(gpus);
	for (uint32_t i = 0; i < GPUS; i++) {
		(void)snprintf(offer.gpus[i].resource, DP_RESOURCE_BYTES, "nvidia.com/%s",
			       i % 2 == 0 ? "gpu.shared" : "gpu");
		offer.gpus[i].replicas = i % 2 == 0 ? 1000 : 0;
		(void)snprintf(gpus[i].info.uuid, sizeof gpus[i].info.uuid,
			       "GPU-00000000-0000-0000-0000-00000000000%u", i);
		gpus[i].info.numa_node = 1;
		gpus[i].health.state = HEALTH_UNHEALTHY;
	}
	CHECK_INT(c, "resources", offer_resources(&offer, names), 2);
	CHECK_STR(c, "sorted", str_of(names[0]), "nvidia.com/gpu");
	CHECK_STR(c, "sorted", str_of(names[1]), "nvidia.com/gpu.shared");
	offer_put_list(&list, &offer, names[1], gpus, nothing_held_back);
	CHECK(c, "computed size is a bound", list.len <= offer_list_bytes(2, 1000));
	CHECK(c, "and near", list.len * 100 > offer_list_bytes(2, 1000) * 90);
	CHECK_INT(c, "most replicas",
		  offer_list_bytes(8, offer_replicas_max(8)) <= OFFER_LIST_MAX_BYTES, 1);
	CHECK_INT(c, "most replicas",
		  offer_list_bytes(8, offer_replicas_max(8) + 1) <= OFFER_LIST_MAX_BYTES, 0);
}

// GPUs set aside for shares: two resources of units that stand for no GPU.
static void check_late(struct check *c)
{
	struct monitor_gpu gpus[GPUS];
	struct dp_config config;
	struct offer offer = { 0 };
	struct err err = { 0 };
	const char *names[OFFER_RESOURCES_MAX], *held_back[GPU_MAX] = { NULL };
	AUTO(buf_done) struct buf milli = { 0 };
	AUTO(buf_done) struct buf memory = { 0 };
	fill_gpus(gpus);
	for (uint32_t i = 0; i < GPUS; i++)
		gpus[i].info.memory_bytes = UINT64_C(1) << 30;
	dp_config_init(&config);
	CHECK_INT(c, "read",
		  dp_config_read(STR("version: v1\nsharing: {shares: {devices: [1, GPU-3]}, "
				     "timeSlicing: {resources: [{name: gpu, replicas: 2, devices: "
				     "[2]}]}}\n"),
				 &config, &err),
		  ERR_OK);
	CHECK_INT(c, "planned", offer_plan(&config, "nvidia.com/gpu", gpus, GPUS, &offer, &err),
		  ERR_OK);
	CHECK_INT(c, "resources", offer_resources(&offer, names), 3);
	CHECK_STR(c, "memory", str_of(names[0]), SHARE_MEMORY_RESOURCE);
	CHECK_STR(c, "thousandths", str_of(names[1]), SHARE_MILLI_RESOURCE);
	held_back[3] = "for a reason";
	offer_put_list(&milli, &offer, names[1], gpus, held_back);
	offer_put_list(&memory, &offer, names[0], gpus, held_back);
	CHECK(c, "both", memmem(milli.data, milli.len, "milli-1-999", 11) != NULL);
	CHECK(c, "both", memmem(milli.data, milli.len, "milli-3-0", 9) != NULL);
	CHECK(c, "no other", memmem(milli.data, milli.len, "milli-2-", 8) == NULL);
	CHECK(c, "four units",
	      memmem(memory.data, memory.len, "memory-1-3", 10) != NULL &&
		      memmem(memory.data, memory.len, "memory-1-4", 10) == NULL);
	CHECK(c, "one is held back", memmem(memory.data, memory.len, "Unhealthy", 9) != NULL);
	CHECK(c, "known", offer_has_late_id(&offer, gpus, SHARE_BY_MEMORY, STR("memory-3-3")));
	CHECK(c, "unknown", !offer_has_late_id(&offer, gpus, SHARE_BY_MEMORY, STR("memory-3-4")));
	CHECK(c, "of a whole one",
	      !offer_has_late_id(&offer, gpus, SHARE_BY_MILLI, STR("milli-0-1")));
	offer.hides_shares = true;
	CHECK_INT(c, "hidden", offer_resources(&offer, names), 1);
	CHECK(c, "hidden", !offer_has_late_id(&offer, gpus, SHARE_BY_MILLI, STR("milli-1-1")));
}

static void check_ids(struct check *c)
{
	static const struct {
		const char *id;
		bool ok;
		uint32_t share;
	} cases[] = {
		{ "GPU-1", true, OFFER_WHOLE },
		{ "GPU-1::0", true, 0 },
		{ "GPU-1::1234", true, 1234 },
		{ "MIG-a-b::7", true, 7 },
		{ "GPU-1::", false, 0 },
		{ "GPU-1:0", false, 0 },
		{ "GPU-1::-1", false, 0 },
		{ "GPU-1::0::1", false, 0 },
		{ "GPU-1::65535", false, 0 },
		{ "::1", false, 0 },
		{ "", false, 0 },
		{ "eth0", false, 0 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct str uuid = { 0 };
		uint32_t share = 0;
		CHECK_INT(c, cases[i].id, offer_id_parse(str_of(cases[i].id), &uuid, &share),
			  cases[i].ok);
		if (cases[i].ok)
			CHECK_INT(c, cases[i].id, share, cases[i].share);
	}
}

// GPUs as "total/available/must" digits; 'r' behind: planned for others.
static void check_shares(struct check *c)
{
	static const struct {
		const char *name, *gpus;
		size_t size;
		dp_policy policy;
		bool is_one_gpu;
		const char *want; // digits; NULL: refused
	} cases[] = {
		{ "spread", "440 440", 2, DP_DISTRIBUTED, false, "11" },
		{ "spread on the emptier", "420 440", 1, DP_DISTRIBUTED, false, "01" },
		{ "spread evenly", "420 440 430", 4, DP_DISTRIBUTED, false, "121" },
		{ "pack on the fuller", "420 440", 1, DP_PACKED, false, "10" },
		{ "pack, then the next", "420 440 410", 4, DP_PACKED, false, "211" },
		{ "musts count", "442 440", 3, DP_DISTRIBUTED, false, "21" },
		{ "away from plans", "440r 420", 1, DP_DISTRIBUTED, false, "01" },
		{ "plans of others if there is nothing else", "440r 400", 1, DP_PACKED, false,
		  "10" },
		{ "one GPU", "420 440", 3, DP_PACKED, true, "03" },
		{ "one GPU, the fuller", "420 440", 2, DP_PACKED, true, "20" },
		{ "one GPU with the musts", "420 441", 2, DP_PACKED, true, "02" },
		{ "none has enough", "420 420", 3, DP_PACKED, true, "21" },
		{ "all", "440 440", 8, DP_DISTRIBUTED, false, "44" },
		{ "too many", "440 440", 9, DP_DISTRIBUTED, false, NULL },
		{ "more musts", "442 441", 2, DP_DISTRIBUTED, false, NULL },
		{ "none", "440", 0, DP_DISTRIBUTED, false, NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct prefer_shared gpus[GPU_MAX] = { 0 };
		struct str rest = str_of(cases[i].gpus), part;
		size_t count = 0;
		uint32_t take[GPU_MAX];
		char got[GPU_MAX + 1] = { 0 };
		while (str_split_next(&rest, ' ', &part))
			gpus[count++] = (struct prefer_shared){
				.total = (uint32_t)(part.data[0] - '0'),
				.available = (uint32_t)(part.data[1] - '0'),
				.must = (uint32_t)(part.data[2] - '0'),
				.is_reserved = part.len > 3,
			};
		bool ok = prefer_shares(gpus, count, cases[i].size, cases[i].policy,
					cases[i].is_one_gpu, take);
		CHECK_INT(c, cases[i].name, ok, cases[i].want != NULL);
		for (size_t j = 0; ok && j < count; j++)
			got[j] = (char)('0' + take[j]);
		if (ok)
			CHECK_STR(c, cases[i].name, str_of(got), cases[i].want);
	}
}

static void check_cgroups(struct check *c)
{
#define UID "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "0::/kubepods/besteffort/pod" UID "/0123\n", UID },
		{ "0::/../../pod" UID "/cri-0123.scope\n", UID },
		{ "12:memory:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
		  "pod0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9.slice/cri.scope\n1:name=systemd:/\n",
		  UID },
		{ "0::/kubepods/pod" UID, UID },
		{ "0::/user.slice/user-0.slice\n", NULL },
		{ "0::/kubepods/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f\n", NULL },
		{ "0::/kubepods/pod0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8xy\n", NULL },
		{ "", NULL },
		{ "pod", NULL },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		char uid[POD_SHORT_BYTES] = "";
		CHECK_INT(c, cases[i].text, portion_pod_of(str_of(cases[i].text), uid),
			  cases[i].want != NULL);
		CHECK_STR(c, cases[i].text, str_of(uid), cases[i].want == NULL ? "" : UID);
	}
}

// Whatever the processes say: the parts together are no more than the device.
static void check_portions(struct check *c)
{
	char root[] = "/tmp/offer-test-XXXXXX", command[600];
	static const char uids[3][40] = { "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f0",
					  "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f1",
					  "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f2" };
	struct usage_allocation holders[3] = { 0 };
	struct portion portions[3];
	if (mkdtemp(root) == NULL)
		abort();
	for (size_t i = 0; i < 3; i++) {
		memcpy(holders[i].pod_uid, uids[i], sizeof uids[i]);
		holders[i].share_num = 1;
		holders[i].share_den = 4;
		portions[i] = (struct portion){ .holder = &holders[i] };
		(void)snprintf(command, sizeof command,
			       "mkdir %s/%zu && echo 0::/pod%s/x > %s/%zu/cgroup", root, i + 10,
			       uids[i], root, i + 10);
		if (system(command) != 0)
			abort();
	}
	const struct portion device = { .util_milli = 900, .memory_mib = 1000 };
	holders[2].share_num = 2;
	portion_by_share(portions, 3, &device);
	CHECK_INT(c, "by share", portions[0].util_milli, 225);
	CHECK_INT(c, "by share", portions[2].memory_mib, 500);
	struct nvml_processes processes = { .count = 4,
					    .items = { { 10, 30, UINT64_C(300) << 20 },
						       { 10, 15, UINT64_C(100) << 20 },
						       { 11, 45, UINT64_C(200) << 20 },
						       { 99, 90, UINT64_C(500) << 20 } } };
	portion_by_process(portions, 3, &device, &processes, root);
	CHECK_INT(c, "two processes", portions[0].memory_mib, 400);
	CHECK_INT(c, "two processes", portions[0].util_milli, 450);
	CHECK_INT(c, "one process", portions[1].memory_mib, 200);
	CHECK_INT(c, "no process", portions[2].memory_mib + portions[2].util_milli, 0);
	processes.items[2].util_percent = NVML_UTIL_UNKNOWN;
	portion_by_process(portions, 3, &device, &processes, root);
	CHECK_INT(c, "unknown: by share of those that run", portions[1].util_milli, 450);
	CHECK_INT(c, "no process", portions[2].util_milli, 0);
	processes.items[2].memory_bytes = UINT64_C(2000) << 20;
	portion_by_process(portions, 3, &device, &processes, root);
	CHECK(c, "not above the device",
	      portions[0].memory_mib + portions[1].memory_mib + portions[2].memory_mib <= 1000);
	portion_by_process(portions, 1, &device, &processes, root);
	CHECK_INT(c, "a single holder has all", portions[0].memory_mib, 1000);
	(void)snprintf(command, sizeof command, "rm -r %s", root);
	if (system(command) != 0)
		abort();
}

int main(void)
{
	struct check c = { 0 };
	check_taken(&c);
	check_refused(&c);
	check_order(&c);
	check_plans(&c);
	check_lists(&c);
	check_late(&c);
	check_ids(&c);
	check_shares(&c);
	check_cgroups(&c);
	check_portions(&c);
	return check_done(&c);
}

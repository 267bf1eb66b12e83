// SPDX-License-Identifier: Apache-2.0
// ResourceClaims: expressions by a table; which devices pods get, why they wait, what is free
// again.
#include "rig.h"

#include "base/rng.h"
#include "check.h"
#include "feed/feed_claim.h"
#include "sched/claim_cel.h"

#include <stdio.h>

#define D "device.attributes['gpu.gpuaas.io']"
#define CAP "device.capacity['gpu.gpuaas.io']"

static struct sched_attribute attributes[] = {
	{ { "gpu.gpuaas.io", 13 },
	  { "type", 4 },
	  SCHED_ATTRIBUTE_TEXT,
	  { "gpu", 3 },
	  0,
	  { { 0 }, false } },
	{ { "gpu.gpuaas.io", 13 },
	  { "minor", 5 },
	  SCHED_ATTRIBUTE_INT,
	  { "", 0 },
	  3,
	  { { 0 }, false } },
	{ { "gpu.gpuaas.io", 13 },
	  { "good", 4 },
	  SCHED_ATTRIBUTE_BOOL,
	  { "", 0 },
	  1,
	  { { 0 }, false } },
	{ { "gpu.gpuaas.io", 13 },
	  { "driverVersion", 13 },
	  SCHED_ATTRIBUTE_VERSION,
	  { "", 0 },
	  0,
	  { { 535, 54, 3 }, true } },
};
static struct sched_capacity capacity = { { "gpu.gpuaas.io", 13 },
					  { "memory", 6 },
					  INT64_C(80) << 30 };

static void check_cel(struct check *c)
{
	static const struct {
		const char *text;
		claim_cel want;
	} rows[] = {
		{ "true", CLAIM_CEL_YES },
		{ "device.driver == 'gpu.gpuaas.io' && " D ".type == 'gpu'", CLAIM_CEL_YES },
		{ "device.driver == \"nic\"", CLAIM_CEL_NO },
		{ "!(" D ".type != 'gpu')", CLAIM_CEL_YES },
		{ D "['minor'] >= 3 && " D ".minor < 4", CLAIM_CEL_YES },
		{ D ".minor == -3", CLAIM_CEL_NO },
		{ D ".minor in [1, 2, 3]", CLAIM_CEL_YES },
		{ D ".type in ['mig']", CLAIM_CEL_NO },
		{ "'type' in " D, CLAIM_CEL_YES },
		{ "'gpu.example.com' in device.attributes", CLAIM_CEL_NO },
		{ D ".good", CLAIM_CEL_YES },
		{ D ".driverVersion.isGreaterThan(semver('535.54.2'))", CLAIM_CEL_YES },
		{ D ".driverVersion.compareTo(semver('535.54.3')) == 0", CLAIM_CEL_YES },
		{ CAP ".memory.isGreaterThan(quantity('70Gi'))", CLAIM_CEL_YES },
		{ CAP ".memory.compareTo(quantity('80Gi')) < 0", CLAIM_CEL_NO },
		{ D ".type.startsWith('g') && " D ".type.endsWith('u')", CLAIM_CEL_YES },
		{ D ".type.lowerAscii().contains('P')", CLAIM_CEL_NO },
		{ D ".absent == 'x'", CLAIM_CEL_ERROR },
		{ D ".absent == 'x' || true", CLAIM_CEL_YES },
		{ "false && " D ".absent == 'x'", CLAIM_CEL_NO },
		{ D ".absent == 'x' || false", CLAIM_CEL_ERROR },
		{ "has(" D ".absent)", CLAIM_CEL_NO },
		{ D ".type == 3", CLAIM_CEL_NO },
		{ D ".type < 3", CLAIM_CEL_ERROR },
		{ D ".type.matches('g.*')", CLAIM_CEL_UNSUPPORTED },
		{ "true || device.pool == 'x'", CLAIM_CEL_UNSUPPORTED },
		{ "1 + 1 == 2", CLAIM_CEL_UNSUPPORTED },
		{ "", CLAIM_CEL_UNSUPPORTED },
		{ "true true", CLAIM_CEL_UNSUPPORTED },
		{ "'open", CLAIM_CEL_UNSUPPORTED },
		{ "1", CLAIM_CEL_UNSUPPORTED },
		{ "((((((((((((((((((((((((((((((((((true))))))))))))))))))))))))))))))))))",
		  CLAIM_CEL_UNSUPPORTED },
	};
	const struct sched_pool_device device = { .attributes = attributes,
						  .attribute_count = ARRAY_COUNT(attributes),
						  .capacities = &capacity,
						  .capacity_count = 1 };
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct str text = str_of(rows[i].text);
		CHECK_INT(c, rows[i].text, claim_cel_eval(text, STR("gpu.gpuaas.io"), &device),
			  rows[i].want);
		for (size_t len = 0; len < text.len; len++) // ends, whatever it says
			(void)claim_cel_eval(str_slice(text, 0, len), STR("x"), &device);
	}
}

static void put(struct rig *rig, sched_claim_kind kind, const char *text)
{
	AUTO(json_decrefp) json_t *json = NULL;
	err_status status = json_parse(str_of(text), &json, NULL);
	ASSERT(status == ERR_OK);
	struct sched_claim_object *object = feed_claim_object(kind, json);
	ASSERT(object != NULL);
	sched_claim_object_set(rig->sched, object);
}

static void put_claim(struct rig *rig, const char *name, const char *spec, const char *status)
{
	char text[2048];
	(void)snprintf(text, sizeof text,
		       "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"u-%s\","
		       "\"resourceVersion\":\"1\"},\"spec\":{\"devices\":{%s}},\"status\":{%s}}",
		       name, name, spec, status);
	put(rig, SCHED_DEVICE_CLAIM, text);
}

static void put_pod(struct rig *rig, const char *name, const char *claims)
{
	char text[1024];
	(void)snprintf(text, sizeof text,
		       "{kind: Pod, metadata: {name: %s}, spec: {resourceClaims: [%s], containers: "
		       "[{name: c}]}}\n",
		       name, claims);
	rig_put(rig, text);
}

// "p n: one=gpu-a,gpu-b" of the next decision, or its reasons.
static const char *next(struct rig *rig)
{
	static char out[1024];
	struct sched_decision decision;
	size_t at = 0;
	if (!sched_next(rig->sched, ++rig->now_ms, &decision))
		return "-";
	at += (size_t)snprintf(out, sizeof out, STR_FMT, STR_ARG(decision.name));
	if (decision.verb != SCHED_BIND) {
		for (size_t i = 0; i < decision.facts->count; i++)
			at += (size_t)snprintf(out + at, sizeof out - at, " %s",
					       sched_code_name(decision.facts->items[i].code));
		return out;
	}
	at += (size_t)snprintf(out + at, sizeof out - at, " " STR_FMT ":", STR_ARG(decision.node));
	for (size_t i = 0; i < decision.claim_allot_count; i++) {
		const struct sched_claim_allot *allot = &decision.claim_allots[i];
		at += (size_t)snprintf(out + at, sizeof out - at, " " STR_FMT "%s",
				       STR_ARG(allot->key), allot->is_allocated ? "!" : "=");
		for (size_t k = 0; k < allot->give_count; k++)
			at += (size_t)snprintf(out + at, sizeof out - at, "%s" STR_FMT,
					       k == 0 ? "" : ",", STR_ARG(allot->gives[k].device));
	}
	return out;
}

#define ONE "\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"gpu\",\"count\":1}}]"
#define MANY(count)                                                                                \
	"\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"gpu\",\"count\":" count  \
	"}}]"
#define WHERE(expression)                                                                          \
	"\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"gpu\",\"selectors\":["   \
	"{\"cel\":{\"expression\":\"" expression "\"}}]}}]"
#define DEVICE(name, group, more)                                                                  \
	"{\"name\":\"" name "\",\"attributes\":{\"type\":{\"string\":\"gpu\"},\"nvlinkGroup\":{"   \
	"\"string\":\"" group "\"}}" more "}"
#define GIVEN(device)                                                                              \
	"\"allocation\":{\"devices\":{\"results\":[{\"request\":\"g\",\"driver\":"                 \
	"\"gpu.gpuaas.io\",\"pool\":\"n\",\"device\":\"" device "\"}]}}"

static void begin(struct rig *rig)
{
	rig_init(rig);
	rig_put(rig, "{kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 8, pods: 20, "
		     "nvidia.com/gpu: 4}}}\n---\n{kind: Node, metadata: {name: m}, status: "
		     "{allocatable: {cpu: 8, pods: 20}}}\n");
	put(rig, SCHED_DEVICE_CLASS,
	    "{\"metadata\":{\"name\":\"gpu\"},\"spec\":{\"selectors\":[{\"cel\":{\"expression\":"
	    "\"device.driver == 'gpu.gpuaas.io' && " D ".type == 'gpu'\"}}]}}");
	put(rig, SCHED_SLICE,
	    "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.gpuaas.io\",\"nodeName\":"
	    "\"n\",\"pool\":{\"name\":\"n\",\"resourceSliceCount\":1},\"devices\":[" //
	    DEVICE("gpu-a", "x", "") "," DEVICE("gpu-b", "y", "") "," DEVICE("gpu-c", "y",
									     "") "," //
	    DEVICE("gpu-d", "x",
		   ",\"taints\":[{\"key\":\"ill\",\"effect\":\"NoSchedule\"}]") "]}}");
}

static void check_cases(struct check *c)
{
	static const struct {
		const char *name, *spec, *status, *want;
	} rows[] = {
		{ "one", ONE, "", "p n: default/c=gpu-a" },
		{ "three", MANY("3"), "", "p n: default/c=gpu-a,gpu-b,gpu-c" },
		{ "one too many, for one is ill", MANY("4"), "", "p ResourceClaimUnsatisfied" },
		{ "by selector", WHERE(D ".nvlinkGroup == 'y'"), "", "p n: default/c=gpu-b" },
		{ "an expression that fails", WHERE(D ".absent == 1"), "",
		  "p ResourceClaimUnsatisfied" },
		{ "beyond us", WHERE("device.pool == 'n'"), "", "p UnsupportedResourceClaim" },
		{ "of one group",
		  MANY("2") ",\"constraints\":[{\"matchAttribute\":\"gpu.gpuaas.io/nvlinkGroup\"}]",
		  "", "p n: default/c=gpu-b,gpu-c" },
		{ "all, one is ill",
		  "\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"gpu\","
		  "\"allocationMode\":\"All\"}}]",
		  "", "p ResourceClaimUnsatisfied" },
		{ "all, tolerated",
		  "\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"gpu\","
		  "\"allocationMode\":\"All\",\"tolerations\":[{\"operator\":\"Exists\"}]}}]",
		  "", "p n: default/c=gpu-a,gpu-b,gpu-c,gpu-d" },
		{ "no such class",
		  "\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"nic\"}}]", "",
		  "p ResourceClaimNotFound" },
		{ "alternatives", "\"requests\":[{\"name\":\"g\",\"firstAvailable\":[]}]", "",
		  "p UnsupportedResourceClaim" },
		{ "as an administrator",
		  "\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"gpu\","
		  "\"adminAccess\":true}}]",
		  "", "p UnsupportedResourceClaim" },
		{ "allocated already", ONE, GIVEN("gpu-c"), "p n: default/c!" },
		{ "of another driver", ONE,
		  "\"allocation\":{\"devices\":{\"results\":[{\"driver\":\"nic\"}]}}",
		  "p UnsupportedResourceClaim" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct rig rig;
		begin(&rig);
		put_claim(&rig, "c", rows[i].spec, rows[i].status);
		put_pod(&rig, "p", "{name: x, resourceClaimName: c}");
		CHECK_STR(c, rows[i].name, str_of(next(&rig)), rows[i].want);
		CHECK(c, rows[i].name, sched_check(rig.sched) == NULL);
		rig_done(&rig);
	}
}

static void check_life(struct check *c)
{
	struct rig rig;
	begin(&rig);
	put_pod(&rig, "p", "{name: x, resourceClaimName: one}");
	CHECK_STR(c, "no claim yet", str_of(next(&rig)), "p ResourceClaimNotFound");
	put_claim(&rig, "one", MANY("2"), "");
	CHECK_STR(c, "made", str_of(next(&rig)), "p n: default/one=gpu-a,gpu-b");
	put_claim(&rig, "two", MANY("2"), "");
	put_pod(&rig, "q", "{name: x, resourceClaimName: two}");
	CHECK_STR(c, "assumed ones are not free", str_of(next(&rig)), "q ResourceClaimUnsatisfied");
	put_claim(&rig, "one", MANY("2"), GIVEN("gpu-a")); // somebody else allocated it
	CHECK_STR(c, "one more is free", str_of(next(&rig)), "q n: default/two=gpu-b,gpu-c");
	sched_bind_failed(rig.sched, STR("uid-q"), rig.now_ms);
	sched_claim_object_remove(rig.sched, SCHED_DEVICE_CLAIM, STR("default/two"));
	put_claim(&rig, "three", MANY("2"), "");
	put_pod(&rig, "r", "{name: x, resourceClaimName: three}");
	for (int i = 0; i < 3; i++) {
		const char *got = next(&rig);
		if (got[0] == 'r')
			CHECK_STR(c, "given back", str_of(got), "r n: default/three=gpu-b,gpu-c");
	}
	rig_done(&rig);
}

#define PART(name, profile, parent)                                                                \
	"{\"name\":\"" name "\",\"attributes\":{\"type\":{\"string\":\"mig\"},\"profile\":{"       \
	"\"string\":\"" profile "\"},\"parentUUID\":{\"string\":\"" parent "\"}},\"capacity\":{"   \
	"\"memory\":{\"value\":\"9728Mi\"}}}"
#define SLICES(count, more)                                                                        \
	"\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"mig\",\"count\":" count  \
	",\"selectors\":[{\"cel\":{\"expression\":\"" D ".profile == '1g.10gb'\"}}]}}]" more

static void begin_parts(struct rig *rig)
{
	begin(rig);
	put(rig, SCHED_DEVICE_CLASS,
	    "{\"metadata\":{\"name\":\"mig\"},\"spec\":{\"selectors\":[{\"cel\":{\"expression\":"
	    "\"device.driver == 'gpu.gpuaas.io' && " D ".type == 'mig'\"}}]}}");
	put(rig, SCHED_SLICE,
	    "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.gpuaas.io\",\"nodeName\":"
	    "\"n\",\"pool\":{\"name\":\"n\",\"resourceSliceCount\":1},\"devices\":["    //
	    PART("mig-a", "3g.40gb", "GPU-P") "," PART("mig-b", "1g.10gb", "GPU-P") "," //
	    PART("mig-c", "1g.10gb", "GPU-Q") "," PART("mig-d", "1g.10gb", "GPU-Q") "," //
	    DEVICE("gpu-w", "x", "") "]}}");
	// The node's agent names whole GPUs alone; the second one is a pod's, as it was before.
	rig_put(rig, "{kind: GPUNode, metadata: {name: n}, status: {devices: ["
		     "{index: 0, uuid: GPU-P, model: A, memoryMiB: 81920, healthy: true}, "
		     "{index: 1, uuid: GPU-W, model: A, memoryMiB: 81920, healthy: true}]}}\n");
}

static void check_parts(struct check *c)
{
	static const struct {
		const char *name, *spec, *want;
	} rows[] = {
		{ "by its profile", SLICES("1", ""), "p n: default/c=mig-b" },
		{ "of two GPUs", SLICES("3", ""), "p n: default/c=mig-b,mig-c,mig-d" },
		{ "more than there are", SLICES("4", ""), "p ResourceClaimUnsatisfied" },
		{ "of one GPU",
		  SLICES("2", ",\"constraints\":[{\"matchAttribute\":"
			      "\"gpu.gpuaas.io/parentUUID\"}]"),
		  "p n: default/c=mig-c,mig-d" },
		{ "a whole one", ONE, "p n: default/c=gpu-w" },
		{ "by memory, where none is whole",
		  "\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"mig\","
		  "\"selectors\":[{\"cel\":{\"expression\":\"" CAP
		  ".memory.isGreaterThan(quantity('40Gi'))\"}}]}}]",
		  "p ResourceClaimUnsatisfied" },
		{ "a part of its memory",
		  "\"requests\":[{\"name\":\"g\",\"exactly\":{\"deviceClassName\":\"mig\","
		  "\"capacity\":{\"requests\":{\"memory\":\"1Gi\"}}}}]",
		  "p UnsupportedResourceClaim" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct rig rig;
		begin_parts(&rig);
		put_claim(&rig, "c", rows[i].spec, "");
		put_pod(&rig, "p", "{name: x, resourceClaimName: c}");
		CHECK_STR(c, rows[i].name, str_of(next(&rig)), rows[i].want);
		CHECK(c, rows[i].name, sched_check(rig.sched) == NULL);
		rig_done(&rig);
	}
	struct rig rig;
	begin_parts(&rig);
	put_claim(&rig, "whole", ONE, GIVEN("gpu-p")); // before it was in parts
	put_claim(&rig, "one", SLICES("3", ""), "");
	put_pod(&rig, "p", "{name: x, resourceClaimName: one}");
	CHECK_STR(c, "its GPU is held", str_of(next(&rig)), "p ResourceClaimUnsatisfied");
	sched_claim_object_remove(rig.sched, SCHED_DEVICE_CLAIM, STR("default/whole"));
	CHECK_STR(c, "free again", str_of(next(&rig)), "p n: default/one=mig-b,mig-c,mig-d");
	put_claim(&rig, "two", SLICES("1", ""), "");
	put_pod(&rig, "q", "{name: x, resourceClaimName: two}");
	CHECK_STR(c, "assumed", str_of(next(&rig)), "q ResourceClaimUnsatisfied");
	rig_done(&rig);
}

struct drawn { // a small slice and a claim
	size_t device_count, request_count;
	bool is_x[5], is_ill[5];
	int count[2]; // 0: all
	bool wants_x[2], is_matched;
};

static void draw(struct rng *rng, struct drawn *ret)
{
	*ret = (struct drawn){ .device_count = 1 + rng_below(rng, 5),
			       .request_count = 1 + rng_below(rng, 2),
			       .is_matched = rng_below(rng, 2) == 0 };
	for (size_t i = 0; i < ret->device_count; i++) {
		ret->is_x[i] = rng_below(rng, 2) == 0;
		ret->is_ill[i] = rng_below(rng, 4) == 0;
	}
	for (size_t i = 0; i < ret->request_count; i++) {
		ret->count[i] = rng_below(rng, 4) == 0 ? 0 : 1 + (int)rng_below(rng, 2);
		ret->wants_x[i] = rng_below(rng, 3) == 0;
	}
}

static bool is_of(const struct drawn *d, size_t request, size_t device)
{
	return !d->wants_x[request] || d->is_x[device];
}

// Whether the way (for each device the request that gets it, or none) is what the claim asks for.
static bool is_way(const struct drawn *d, const size_t to[5])
{
	bool has[2] = { false, false };
	for (size_t r = 0; r < d->request_count; r++) {
		int given = 0, all = 0;
		for (size_t i = 0; i < d->device_count; i++) {
			all += is_of(d, r, i) ? 1 : 0;
			given += to[i] == r ? 1 : 0;
			if (to[i] == r && (!is_of(d, r, i) || d->is_ill[i]))
				return false;
		}
		if (given == 0 || given != (d->count[r] == 0 ? all : d->count[r]))
			return false;
	}
	for (size_t i = 0; i < d->device_count; i++) {
		if (to[i] < d->request_count)
			has[d->is_x[i]] = true;
	}
	return !d->is_matched || !(has[0] && has[1]);
}

static bool has_way(const struct drawn *d)
{
	size_t ways = 1;
	for (size_t i = 0; i < d->device_count; i++)
		ways *= 3;
	for (size_t way = 0; way < ways; way++) {
		size_t to[5] = { 2, 2, 2, 2, 2 }, rest = way;
		for (size_t i = 0; i < d->device_count; i++, rest /= 3)
			to[i] = rest % 3;
		if (is_way(d, to))
			return true;
	}
	return false;
}

static void put_drawn(struct rig *rig, const struct drawn *d)
{
	char text[4096], requests[1024] = "\"requests\":[";
	size_t at = (size_t)snprintf(
		text, sizeof text,
		"{\"metadata\":{\"name\":\"s\"},\"spec\":{\"driver\":\"gpu.gpuaas.io\","
		"\"nodeName\":\"n\",\"pool\":{\"name\":\"n\",\"resourceSliceCount\":1},"
		"\"devices\":[");
	for (size_t i = 0; i < d->device_count; i++)
		at += (size_t)snprintf(
			text + at, sizeof text - at,
			"%s{\"name\":\"d%zu\",\"attributes\":{\"type\":{\"string\":\"gpu\"},"
			"\"g\":{\"string\":\"%c\"}},\"taints\":[%s]}",
			i == 0 ? "" : ",", i, d->is_x[i] ? 'x' : 'y',
			d->is_ill[i] ? "{\"key\":\"ill\",\"effect\":\"NoExecute\"}" : "");
	(void)snprintf(text + at, sizeof text - at, "]}}");
	put(rig, SCHED_SLICE, text);
	at = strlen(requests);
	for (size_t r = 0; r < d->request_count; r++)
		at += (size_t)snprintf(
			requests + at, sizeof requests - at,
			"%s{\"name\":\"r%zu\",\"exactly\":{\"deviceClassName\":\"gpu\",%s\"count\":"
			"%d,\"selectors\":[%s]}}",
			r == 0 ? "" : ",", r, d->count[r] == 0 ? "\"allocationMode\":\"All\"," : "",
			d->count[r],
			d->wants_x[r] ? "{\"cel\":{\"expression\":\"" D ".g == 'x'\"}}" : "");
	(void)snprintf(requests + at, sizeof requests - at, "]%s",
		       d->is_matched ? ",\"constraints\":[{\"matchAttribute\":\"g\"}]" : "");
	put_claim(rig, "c", requests, "");
}

static bool is_what_was_asked(const struct drawn *d, const struct sched_claim_allot *allot)
{
	size_t to[5] = { 2, 2, 2, 2, 2 };
	for (size_t i = 0; i < allot->give_count; i++) {
		size_t device = (size_t)(allot->gives[i].device.data[1] - '0');
		if (device >= d->device_count || to[device] != 2)
			return false;
		to[device] = (size_t)(allot->gives[i].request->name.data[1] - '0');
	}
	return is_way(d, to);
}

// Against all ways: a claim gets devices exactly if there is a way, and then one of them.
static void check_drawn(struct check *c)
{
	enum { CASES = 600 };
	struct rng rng;
	size_t found = 0;
	rng_init(&rng, 11);
	for (int i = 0; i < CASES; i++) {
		struct drawn drawn;
		struct rig rig;
		struct sched_decision decision;
		draw(&rng, &drawn);
		begin(&rig);
		put_drawn(&rig, &drawn);
		put_pod(&rig, "p", "{name: x, resourceClaimName: c}");
		bool decided = sched_next(rig.sched, ++rig.now_ms, &decision);
		bool is_bound = decided && decision.verb == SCHED_BIND;
		CHECK(c, "given exactly if there is a way", is_bound == has_way(&drawn));
		if (is_bound)
			CHECK(c, "and a right one",
			      is_what_was_asked(&drawn, &decision.claim_allots[0]));
		found += is_bound ? 1 : 0;
		rig_done(&rig);
	}
	CHECK(c, "both happen", found > CASES / 10 && found < CASES - CASES / 10);
}

int main(void)
{
	struct check c = { 0 };
	check_cel(&c);
	check_cases(&c);
	check_life(&c);
	check_parts(&c);
	check_drawn(&c);
	return check_done(&c);
}

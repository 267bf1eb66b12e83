// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"
#include "check.h"
#include "daemons/agent/pod_facts.h"

#define META                                                                                       \
	"\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\",\"creationTimestamp\":"    \
	"\"2026-01-01T00:00:00Z\",\"labels\":{\"gpuaas.io/request\":\"n.r-1\"},\"annotations\":{"  \
	"\"gpuaas.io/devices\":\"[]\",\"gpuaas.io/devices-mac\":\"ab\"}}"
#define CONTAINERS                                                                                 \
	"\"spec\":{\"initContainers\":[{\"name\":\"i\",\"resources\":{\"limits\":"                 \
	"{\"nvidia.com/gpu\":\"1\"}}}],\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":" \
	"{\"nvidia.com/gpu\":2,\"cpu\":\"1\"}}},{\"name\":\"b\",\"resources\":{}}]}"
#define SCHEDULED                                                                                  \
	"\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\","                          \
	"\"lastTransitionTime\":\"2026-01-01T00:00:05Z\"}]"
#define ENDED(at) "\"state\":{\"terminated\":{\"exitCode\":0,\"finishedAt\":\"" at "\"}}"

enum { T0 = 1767225600 };

static void check_times(struct check *c)
{
	static const struct {
		const char *name, *status;
		int64_t scheduled_s, finished_s;
		bool is_terminal, is_all_finished;
	} cases[] = {
		{ "new", "{}", 0, 0, false, false },
		{ "bound", "{" SCHEDULED "}", T0 + 5, 0, false, false },
		{ "runs",
		  "{\"phase\":\"Running\"," SCHEDULED ",\"containerStatuses\":[{\"name\":\"a\","
		  "\"state\":{\"running\":{}}},{\"name\":\"b\"," ENDED(
			  "2026-01-01T00:00:07Z") "}]}",
		  T0 + 5, T0 + 7, false, false },
		{ "ended",
		  "{\"phase\":\"Failed\"," SCHEDULED ",\"containerStatuses\":["
		  "{\"name\":\"a\"," ENDED(
			  "2026-01-01T00:00:09Z") "},"
						  "{\"name\":\"b\"," ENDED(
							  "2026-01-01T00:00:07Z") "}]}",
		  T0 + 5, T0 + 9, true, true },
		{ "ended in its init container",
		  "{\"phase\":\"Failed\"," SCHEDULED
		  ",\"initContainerStatuses\":[{\"name\":\"i\"," ENDED(
			  "2026-01-01T00:00:06Z") "}]}",
		  T0 + 5, T0 + 6, true, false },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
		AUTO(buf_done) struct buf text = { 0 };
		struct pod_facts facts;
		struct err err = { 0 };
		buf_printf(&text, "{" META "," CONTAINERS ",\"status\":%s}", cases[i].status);
		CHECK_INT(c, cases[i].name,
			  pod_facts_read(arena, buf_str(&text), false, "nvidia.com/gpu", &facts,
					 &err),
			  ERR_OK);
		CHECK_INT(c, cases[i].name, facts.scheduled_s, cases[i].scheduled_s);
		CHECK_INT(c, cases[i].name, facts.finished_s, cases[i].finished_s);
		CHECK(c, cases[i].name, facts.is_terminal == cases[i].is_terminal);
		CHECK(c, cases[i].name, facts.is_all_finished == cases[i].is_all_finished);
		CHECK_INT(c, "containers with GPUs", facts.container_count, 2);
		CHECK(c, "init container", facts.containers[0].is_init);
		CHECK_INT(c, "GPUs", facts.containers[1].gpus, 2);
		CHECK_STR(c, "request", str_of(facts.request), "n.r-1");
		CHECK_STR(c, "plan", facts.plan, "[]");
		CHECK_STR(c, "MAC", facts.plan_mac, "ab");
	}
}

static void check_requests(struct check *c)
{
	static const struct {
		const char *label, *request;
	} cases[] = { { "n.r", "n.r" }, { "n.r.s", "n.r.s" }, { "n", "" },
		      { "", "" },       { "other.r", "" },    { "n-2.r", "" },
		      { "r", "" },      { ".r", "" },         { "other.n.r", "" } };
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
		AUTO(buf_done) struct buf text = { 0 };
		struct pod_facts facts;
		buf_printf(&text,
			   "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\","
			   "\"labels\":{\"gpuaas.io/request\":\"%s\"}}}",
			   cases[i].label);
		CHECK_INT(c, cases[i].label,
			  pod_facts_read(arena, buf_str(&text), false, "nvidia.com/gpu", &facts,
					 NULL),
			  ERR_OK);
		CHECK_STR(c, cases[i].label, str_of(facts.request), cases[i].request);
	}
}

static void check_claims(struct check *c)
{
	static const struct {
		const char *name, *text;
		bool has_claims;
	} cases[] = {
		{ "none", "\"spec\":{},\"status\":{\"phase\":\"Running\"}", false },
		{ "named", "\"spec\":{\"resourceClaims\":[{\"name\":\"gpu\"}]}", true },
		{ "made for its resources",
		  "\"status\":{\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"x\"}}",
		  true },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
		AUTO(buf_done) struct buf text = { 0 };
		struct pod_facts facts;
		buf_printf(&text, "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"},%s}",
			   cases[i].text);
		CHECK_INT(c, cases[i].name,
			  pod_facts_read(arena, buf_str(&text), false, "nvidia.com/gpu", &facts,
					 NULL),
			  ERR_OK);
		CHECK(c, cases[i].name, facts.has_claims == cases[i].has_claims);
	}
}

int main(void)
{
	struct check c = { 0 };
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	struct pod_facts facts;
	static const char *const bad[] = { "", "[]", "{}", "{\"metadata\":{\"name\":\"p\"}}" };
	check_times(&c);
	check_requests(&c);
	check_claims(&c);
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		CHECK(&c, "refused",
		      pod_facts_read(arena, str_of(bad[i]), false, "nvidia.com/gpu", &facts,
				     NULL) != ERR_OK);
	CHECK(&c, "refused",
	      pod_facts_read(arena, STR("k8s\0\x0a\xff"), true, "nvidia.com/gpu", &facts, NULL) !=
		      ERR_OK);
	return check_done(&c);
}

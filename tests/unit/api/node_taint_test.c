// SPDX-License-Identifier: Apache-2.0
#include "api/node_taint.h"
#include "check.h"

#define OURS "{\"key\":\"gpuaas.io/dead-gpus\",\"value\":\"true\",\"effect\":\"NoSchedule\"}"
#define OTHER "{\"key\":\"a\",\"effect\":\"NoExecute\",\"timeAdded\":\"t\"}"
#define HOST(taints) "{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{" taints "}}"
#define PATCH(taints)                                                                              \
	"{\"metadata\":{\"resourceVersion\":\"7\"},\"spec\":{\"taints\":[" taints "]}}"

static const struct {
	const char *name, *host;
	bool is_wanted;
	const char *patch; // NULL: nothing to do
} rows[] = {
	{ "none, none wanted", HOST(""), false, NULL },
	{ "others, none wanted", HOST("\"taints\":[" OTHER "]"), false, NULL },
	{ "there already", HOST("\"taints\":[" OTHER "," OURS "]"), true, NULL },
	{ "the first", HOST(""), true, PATCH(OURS) },
	{ "beside others", HOST("\"taints\":[" OTHER "]"), true, PATCH(OTHER "," OURS) },
	{ "taken off", HOST("\"taints\":[" OURS "," OTHER "]"), false, PATCH(OTHER) },
	{ "the last one", HOST("\"taints\":[" OURS "]"), false, PATCH("") },
};

int main(void)
{
	struct check c = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		AUTO(json_decrefp) json_t *host = NULL;
		AUTO(json_decrefp) json_t *want = NULL;
		struct err err;
		CHECK_INT(&c, rows[i].name, json_parse(str_of(rows[i].host), &host, &err), ERR_OK);
		AUTO(json_decrefp) json_t *patch = node_taint_patch(host, rows[i].is_wanted);
		CHECK(&c, rows[i].name, (patch == NULL) == (rows[i].patch == NULL));
		if (rows[i].patch == NULL)
			continue;
		CHECK_INT(&c, rows[i].name, json_parse(str_of(rows[i].patch), &want, &err), ERR_OK);
		CHECK(&c, rows[i].name, json_equal(patch, want) == 1);
	}
	return check_done(&c);
}

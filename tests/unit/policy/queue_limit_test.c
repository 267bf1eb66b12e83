// SPDX-License-Identifier: Apache-2.0
// Requests against the limits of queues: what is refused with which numbers, and that equality is
// admitted to the slice.
#include "check.h"

#include "policy/queue_limit.h"

static const json_t *find(const void *arg, struct str tenant)
{
	const json_t *tenants = arg;
	char name[64];
	ASSERT(tenant.len < sizeof name);
	memcpy(name, tenant.data, tenant.len);
	name[tenant.len] = '\0';
	return json_object_get(tenants, name);
}

#define ASK(...) .ask = { __VA_ARGS__ }
static const struct {
	const char *tenant;
	struct request_spec ask;
	const char *says; // part of it; NULL: good
} cases[] = {
	{ "free", ASK(.gpu_count = 99), NULL },
	{ "nobody", ASK(.gpu_count = 99), NULL },
	{ "small", ASK(.gpu_count = 2), NULL },
	{ "small", ASK(.gpu_count = 3),
	  "3 GPUs are asked for, tenant \"small\" may hold 2 at once (queue.limit); ask for at "
	  "most "
	  "that, or have it raised" },
	{ "small", ASK(.gpu_count = 1, .gang = 2), NULL },
	{ "small", ASK(.gpu_count = 1, .gang = 3), "3 GPUs are asked for, tenant \"small\"" },
	{ "below", ASK(.gpu_count = 2), NULL },
	{ "below", ASK(.gpu_count = 3), "tenant \"small\" may hold 2 at once" },
	{ "persons", ASK(.gpu_count = 1), NULL },
	{ "persons", ASK(.gpu_count = 2),
	  "2 GPUs are asked for, one person of tenant \"persons\" may hold 1 at once "
	  "(queue.user_limit)" },
	{ "none", ASK(.gpu_milli = 1), "0.001 GPUs are asked for, tenant \"none\" may hold 0" },
	{ "small", ASK(.mig_profile = { "1g.10gb", 7 }, .gang = 14), NULL },
	{ "small", ASK(.mig_profile = { "1g.10gb", 7 }, .gang = 15), "2.143 GPUs are asked for" },
	{ "small", ASK(.gpu_milli = 500, .gang = 4), NULL },
	{ "small", ASK(.gpu_milli = 500, .gpu_memory_mib = 61440, .gang = 4), "3 GPUs" },
	{ "small", ASK(.gpu_milli = 500, .gpu_memory_mib = 163840, .gang = 2), NULL },
	{ "models", ASK(.gpu_count = 8), NULL },
	{ "models", ASK(.gpu_count = 2, .models = { { "H100", 4 } }, .model_count = 1), NULL },
	{ "models", ASK(.gpu_count = 3, .models = { { "H100-80GB", 9 } }, .model_count = 1),
	  "3 GPUs of the models are asked for, tenant \"models\" may hold 0 of them in such pods "
	  "at "
	  "once (queue.by_model); ask for at most that, allow another model" },
	{ "models", ASK(.gpu_count = 1, .gang = 3, .models = { { "H100", 4 } }, .model_count = 1),
	  "3 GPUs of the models are asked for, tenant \"models\" may hold 2" },
	{ "models",
	  ASK(.gpu_count = 3, .models = { { "H100", 4 }, { "L40S", 4 } }, .model_count = 2), NULL },
	{ "models", ASK(.gpu_count = 3, .models = { { "A100", 4 } }, .model_count = 1), NULL },
	{ "models-below", ASK(.gpu_count = 3, .models = { { "H100", 4 } }, .model_count = 1),
	  "tenant \"models\" may hold 0 of them" },
	{ "x", ASK(.gpu_count = 9), NULL }, // a circle is the scheduler's to tell
};
#undef ASK

int main(void)
{
	struct check c = { 0, 0 };
	struct err err;
	AUTO(json_decrefp) json_t *tenants = NULL;
	err_status status = json_parse(
		STR("{\"free\":{\"parent\":\"gone\"},\"small\":{\"limit\":2},\"below\":{\"parent\":"
		    "\"small\",\"limit\":8},\"persons\":{\"userLimit\":1,\"limit\":4},\"none\":{"
		    "\"limit\":0},\"models\":{\"byModel\":[{\"model\":\"H100\",\"limit\":2}]},"
		    "\"models-below\":{\"parent\":\"models\"},\"x\":{\"parent\":\"y\"},\"y\":{"
		    "\"parent\":\"x\"}}"),
		&tenants, &err);
	ASSERT(status == ERR_OK);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		const char *says = cases[i].says, *name = says == NULL ? cases[i].tenant : says;
		err.text[0] = '\0';
		status = queue_limit_check(str_of(cases[i].tenant), &cases[i].ask, find, tenants,
					   &err);
		CHECK_INT(&c, name, status, says == NULL ? ERR_OK : ERR_LIMIT);
		CHECK(&c, name, says == NULL || strstr(err.text, says) != NULL);
	}
	return check_done(&c);
}

// SPDX-License-Identifier: Apache-2.0
// A scenario of the simulator, and what a short one decides.
#include "sim/sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scenario scenario;
	struct err err = { 0 };
	if (scenario_parse((struct str){ (const char *)data, size }, &scenario, &err) != ERR_OK) {
		ASSERT(err.text[0] != '\0' && scenario.objects == NULL);
		return 0;
	}
	for (size_t i = 0; i < scenario.object_count; i++) {
		ASSERT(scenario.objects[i].at_ms >= 0 && scenario.objects[i].runs_ms >= -1);
		ASSERT(json_text(scenario.objects[i].json, "metadata.name").len > 0);
	}
	scenario_done(&scenario);
	return 0;
}

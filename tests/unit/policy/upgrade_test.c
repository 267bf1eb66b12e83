// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "policy/upgrade.h"

#include <stdlib.h>

static json_t *parsed(const char *text)
{
	json_t *value = NULL;
	struct err err;
	if (json_parse(str_of(text), &value, &err) != ERR_OK)
		printf("%s: %s\n", text, err.text);
	return value;
}

static struct upgrade begun(const char *body_text)
{
	AUTO(json_decrefp) json_t *body = parsed(body_text);
	struct upgrade upgrade = { 0 };
	struct err err;
	if (upgrade_begin(body, STR("570.86.15"), STR("ann"), false, 1000, &upgrade, &err) !=
	    ERR_OK)
		printf("%s\n", err.text);
	return upgrade;
}

// Facts of a step, and what is then.
struct row {
	const char *name;
	struct upgrade_facts facts;
	int64_t t_s;
	upgrade_phase phase;
	const char *reason; // part of it
};

#define WELL                                                                                       \
	.is_driver_ready = true, .is_plugin_registered = true, .are_devices_healthy = true,        \
	.is_counted = true
#define OLD .driver = STR("570.86.15"), .cuda = STR("12.8")
#define NEW .driver = STR("580.95.05"), .cuda = STR("13.0")

static void run(struct check *c, struct upgrade *upgrade, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		(void)upgrade_step(upgrade, &rows[i].facts, rows[i].t_s);
		CHECK_STR(c, rows[i].name, str_of(upgrade_phase_name(upgrade->phase)),
			  upgrade_phase_name(rows[i].phase));
		CHECK(c, upgrade->reason, strstr(upgrade->reason, rows[i].reason) != NULL);
		// The whole state survives its text.
		struct upgrade again;
		AUTO(json_decrefp) json_t *json = upgrade_to_json(upgrade);
		char *text = json_dumps(json, JSON_COMPACT);
		CHECK(c, rows[i].name, upgrade_parse(str_of(text), &again));
		AUTO(json_decrefp) json_t *json_again = upgrade_to_json(&again);
		CHECK(c, rows[i].name, json_equal(json, json_again) == 1);
		free(text);
	}
}

static void check_way(struct check *c)
{
	static const struct row rows[] = {
		{ "not counted", { OLD }, 1001, UPGRADE_DRAINING, "asked to leave" },
		{ "pods", { OLD, WELL, .pods_left = 3 }, 1002, UPGRADE_DRAINING, "3 pods" },
		{ "budget",
		  { OLD, WELL, .pods_left = 1, .blocker = STR("budget of red/x allows none now") },
		  1003,
		  UPGRADE_DRAINING,
		  "budget of red/x" },
		{ "empty", { OLD, WELL }, 1004, UPGRADE_WAITING, "" },
		{ "old driver", { OLD, WELL }, 1005, UPGRADE_WAITING, "580.95.05 is waited for" },
		{ "driver away", { .is_counted = true }, 1006, UPGRADE_WAITING, "not answer" },
		{ "new driver", { NEW, .is_driver_ready = true }, 1007, UPGRADE_VERIFYING, "" },
		{ "no plugin",
		  { NEW, .is_driver_ready = true },
		  1008,
		  UPGRADE_VERIFYING,
		  "plugin" },
		{ "flips back", { OLD, WELL }, 1009, UPGRADE_WAITING, "570.86.15" },
		{ "new again", { NEW, WELL }, 1010, UPGRADE_VERIFYING, "" },
		{ "sick",
		  { NEW, .is_driver_ready = true, .is_plugin_registered = true,
		    .unhealthy = STR("7 of 8 devices are healthy") },
		  1011,
		  UPGRADE_VERIFYING,
		  "7 of 8" },
		{ "well", { NEW, WELL }, 1012, UPGRADE_DONE, "13.0" },
		{ "stays done", { OLD, WELL }, 99999, UPGRADE_DONE, "13.0" },
	};
	struct upgrade upgrade = begun("{\"driver\":\"580.95.05\",\"cuda\":\"13.0\"}");
	CHECK(c, "cordoned", upgrade_is_cordoned(&upgrade) && upgrade_is_active(&upgrade));
	run(c, &upgrade, rows, ARRAY_COUNT(rows));
	CHECK(c, "uncordoned", !upgrade_is_cordoned(&upgrade) && !upgrade_is_active(&upgrade));
	upgrade.was_cordoned = true;
	CHECK(c, "somebody else's cordon stays", upgrade_is_cordoned(&upgrade));
}

static void check_stops(struct check *c)
{
	static const struct row unmanaged[] = {
		{ "unmanaged",
		  { OLD, WELL, .pods_left = 1, .blocker = STR("red/x has no owner"),
		    .is_unmanaged = true },
		  1001,
		  UPGRADE_STOPPED,
		  "no owner" },
		{ "stays", { OLD, WELL }, 1002, UPGRADE_STOPPED, "no owner" },
	};
	struct upgrade upgrade = begun("{}");
	run(c, &upgrade, unmanaged, ARRAY_COUNT(unmanaged));
	CHECK(c, "still cordoned", upgrade_is_cordoned(&upgrade));

	AUTO(json_decrefp) json_t *body = parsed("{\"force\":true,\"timeout\":\"10s\"}");
	struct err err;
	CHECK_INT(c, "resume", upgrade_resume(body, STR("bob"), 2000, &upgrade, &err), ERR_OK);
	static const struct row forced[] = {
		{ "forced",
		  { OLD, WELL, .pods_left = 1, .blocker = STR("red/x has no owner"),
		    .is_unmanaged = true },
		  2001,
		  UPGRADE_DRAINING,
		  "1 pods" },
		{ "too long", { OLD, WELL, .pods_left = 1 }, 2010, UPGRADE_STOPPED, "time is up" },
	};
	run(c, &upgrade, forced, ARRAY_COUNT(forced));
	CHECK_INT(c, "resume", upgrade_resume(body, STR("bob"), 3000, &upgrade, &err), ERR_OK);
	static const struct row any[] = {
		{ "empty", { OLD, WELL }, 3001, UPGRADE_WAITING, "" },
		{ "any other driver", { NEW, WELL }, 3002, UPGRADE_VERIFYING, "" },
		{ "sick",
		  { NEW, .is_driver_ready = true, .is_plugin_registered = true,
		    .unhealthy = STR("0 of 8") },
		  3012,
		  UPGRADE_STOPPED,
		  "time is up: 0" },
	};
	run(c, &upgrade, any, ARRAY_COUNT(any));
	CHECK_INT(c, "where", upgrade.stopped_in, UPGRADE_VERIFYING);

	upgrade = begun("{\"driver\":\"580.95.05\",\"cuda\":\"13.1\"}");
	static const struct row old_cuda[] = {
		{ "empty", { OLD, WELL }, 1001, UPGRADE_WAITING, "" },
		{ "new", { NEW, WELL }, 1002, UPGRADE_VERIFYING, "" },
		{ "CUDA too old", { NEW, WELL }, 1003, UPGRADE_STOPPED, "CUDA 13.0, not 13.1" },
	};
	run(c, &upgrade, old_cuda, ARRAY_COUNT(old_cuda));
}

static void check_bodies(struct check *c)
{
	AUTO(json_decrefp) json_t *body = parsed("{\"driver\":\"latest\"}");
	struct upgrade upgrade;
	struct err err;
	CHECK_INT(c, "no version",
		  upgrade_begin(body, STR(""), STR("ann"), false, 5, &upgrade, &err), ERR_INVALID);
	static const char *const odd[] = {
		"",
		"{}",
		"[]",
		"{\"phase\":\"flying\"}",
		"{\"phase\":\"waiting\"}",
		"{\"phase\":\"stopped\",\"stopped_in\":\"done\",\"begun\":\"2026-01-01T00:00:00Z\","
		"\"since\":\"2026-01-01T00:00:00Z\"}",
		"{\"phase\":\"waiting\",\"timeout\":-5,\"begun\":\"2026-01-01T00:00:00Z\","
		"\"since\":\"2026-01-01T00:00:00Z\"}",
	};
	for (size_t i = 0; i < ARRAY_COUNT(odd); i++)
		CHECK(c, odd[i], !upgrade_parse(str_of(odd[i]), &upgrade));
}

int main(void)
{
	struct check c = { 0 };
	check_way(&c);
	check_stops(&c);
	check_bodies(&c);
	return check_done(&c);
}

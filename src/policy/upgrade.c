// SPDX-License-Identifier: Apache-2.0
#include "policy/upgrade.h"

#include "base/timefmt.h"
#include "gpu/compat.h"

#include <stdarg.h>
#include <stdio.h>

enum { LIMIT_S = 3600, LIMIT_MAX_S = 7 * 86400 };

static const struct schema_field upgrade_fields[] = {
	{ "driver", SCHEMA_TEXT, .min = 1, .max = UPGRADE_VERSION_BYTES - 1,
	  .doc = "Version that must be there afterwards; absent: any other than now." },
	{ "cuda", SCHEMA_TEXT, .min = 1, .max = UPGRADE_VERSION_BYTES - 1,
	  .doc = "Oldest CUDA that the driver must serve." },
	{ "timeout", SCHEMA_DURATION, .min = 1, .max = LIMIT_MAX_S,
	  .doc = "Limit of each phase; 1h when absent." },
	{ "force", SCHEMA_BOOL, .doc = "Also evict pods that nobody makes anew." },
};
const struct schema upgrade_schema = { .name = "NodeUpgrade",
				       .doc = "A change of a node's driver.",
				       SCHEMA_FIELDS(upgrade_fields) };

static const char *const phase_names[UPGRADE_PHASE_COUNT] = { "draining", "waiting", "verifying",
							      "done", "stopped" };

const char *upgrade_phase_name(upgrade_phase phase)
{
	ASSERT(phase < UPGRADE_PHASE_COUNT);
	return phase_names[phase];
}

static bool phase_parse(struct str text, upgrade_phase *ret)
{
	for (size_t i = 0; i < UPGRADE_PHASE_COUNT; i++) {
		if (str_eq_c(text, phase_names[i])) {
			*ret = (upgrade_phase)i;
			return true;
		}
	}
	return false;
}

bool upgrade_is_active(const struct upgrade *upgrade)
{
	return upgrade->phase != UPGRADE_DONE && upgrade->phase != UPGRADE_STOPPED;
}

bool upgrade_is_cordoned(const struct upgrade *upgrade)
{
	return upgrade->phase != UPGRADE_DONE || upgrade->was_cordoned;
}

static void copy(char *out, size_t out_bytes, struct str text)
{
	(void)snprintf(out, out_bytes, STR_FMT, STR_ARG(text));
}

static void say(struct upgrade *upgrade, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct upgrade *upgrade, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(upgrade->reason, sizeof upgrade->reason, fmt, args);
	va_end(args);
}

static err_status take_versions(const json_t *body, struct upgrade *upgrade, struct err *err)
{
	static const char *const names[] = { "driver", "cuda" };
	char *const members[] = { upgrade->driver, upgrade->cuda };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct str version = json_text(body, names[i]);
		if (version.len == 0)
			continue;
		if (!compat_is_version(version) || version.len >= UPGRADE_VERSION_BYTES)
			return err_set(err, ERR_INVALID,
				       "%s \"" STR_FMT "\" is no version; give it as 580.95.05",
				       names[i], STR_ARG(version));
		copy(members[i], UPGRADE_VERSION_BYTES, version);
	}
	upgrade->limit_s = schema_get_duration_s(body, "timeout", LIMIT_S);
	upgrade->evicts_unmanaged = json_bool(body, "force", false);
	return ERR_OK;
}

err_status upgrade_begin(const json_t *body, struct str from, struct str user, bool was_cordoned,
			 int64_t now_s, struct upgrade *ret, struct err *err)
{
	struct upgrade upgrade = { .phase = UPGRADE_DRAINING,
				   .was_cordoned = was_cordoned,
				   .begun_s = now_s,
				   .phase_s = now_s };
	err_status status = take_versions(body, &upgrade, err);
	if (status != ERR_OK)
		return status;
	copy(upgrade.from, sizeof upgrade.from, from);
	copy(upgrade.user, sizeof upgrade.user, user);
	say(&upgrade, "pods are asked to leave");
	*ret = upgrade;
	return ERR_OK;
}

err_status upgrade_resume(const json_t *body, struct str user, int64_t now_s,
			  struct upgrade *upgrade, struct err *err)
{
	struct upgrade next = *upgrade;
	ASSERT(upgrade->phase == UPGRADE_STOPPED);
	err_status status = take_versions(body, &next, err);
	if (status != ERR_OK)
		return status;
	next.phase = next.stopped_in;
	// What was verified for another wish, or pods that came back, are looked at again.
	if (next.phase == UPGRADE_VERIFYING)
		next.phase = UPGRADE_WAITING;
	next.phase_s = now_s;
	copy(next.user, sizeof next.user, user);
	say(&next, "goes on");
	*upgrade = next;
	return ERR_OK;
}

static void enter(struct upgrade *upgrade, upgrade_phase phase, int64_t now_s)
{
	if (phase == UPGRADE_STOPPED)
		upgrade->stopped_in = upgrade->phase;
	upgrade->phase = phase;
	upgrade->phase_s = now_s;
}

static bool is_driver_wanted(const struct upgrade *upgrade, const struct upgrade_facts *facts)
{
	if (facts->driver.len == 0 || !facts->is_driver_ready)
		return false;
	if (upgrade->driver[0] != '\0')
		return str_eq_c(facts->driver, upgrade->driver);
	return !str_eq_c(facts->driver, upgrade->from);
}

static void step_draining(struct upgrade *upgrade, const struct upgrade_facts *facts, int64_t now_s)
{
	if (!facts->is_counted)
		return;
	if (facts->pods_left == 0) {
		enter(upgrade, UPGRADE_WAITING, now_s);
		return;
	}
	if (facts->blocker.len > 0)
		say(upgrade, "%zu pods are left; " STR_FMT, facts->pods_left,
		    STR_ARG(facts->blocker));
	else
		say(upgrade, "%zu pods are left", facts->pods_left);
	if (facts->is_unmanaged && !upgrade->evicts_unmanaged)
		enter(upgrade, UPGRADE_STOPPED, now_s);
}

static void step_waiting(struct upgrade *upgrade, const struct upgrade_facts *facts, int64_t now_s)
{
	if (is_driver_wanted(upgrade, facts)) {
		enter(upgrade, UPGRADE_VERIFYING, now_s);
		return;
	}
	const char *wanted = upgrade->driver[0] == '\0' ? "another driver" : upgrade->driver;
	if (facts->driver.len == 0 || !facts->is_driver_ready)
		say(upgrade, "the driver does not answer; %s is waited for", wanted);
	else
		say(upgrade, "the driver is " STR_FMT "; %s is waited for", STR_ARG(facts->driver),
		    wanted);
}

static void step_verifying(struct upgrade *upgrade, const struct upgrade_facts *facts,
			   int64_t now_s)
{
	if (!is_driver_wanted(upgrade, facts)) {
		enter(upgrade, UPGRADE_WAITING, now_s);
		step_waiting(upgrade, facts, now_s);
		return;
	}
	if (upgrade->cuda[0] != '\0' &&
	    compat_version_cmp(facts->cuda, str_of(upgrade->cuda)) < 0) {
		say(upgrade, "the driver " STR_FMT " serves CUDA " STR_FMT ", not %s",
		    STR_ARG(facts->driver), STR_ARG(facts->cuda), upgrade->cuda);
		enter(upgrade, UPGRADE_STOPPED, now_s);
		return;
	}
	if (!facts->is_plugin_registered) {
		say(upgrade, "the device plugin is not registered with the kubelet yet");
		return;
	}
	if (!facts->are_devices_healthy) {
		say(upgrade, STR_FMT, STR_ARG(facts->unhealthy));
		return;
	}
	enter(upgrade, UPGRADE_DONE, now_s);
	say(upgrade, "driver " STR_FMT ", CUDA " STR_FMT ", plugin and devices are well",
	    STR_ARG(facts->driver), STR_ARG(facts->cuda));
}

bool upgrade_step(struct upgrade *upgrade, const struct upgrade_facts *facts, int64_t now_s)
{
	struct upgrade before = *upgrade;
	switch (upgrade->phase) {
	case UPGRADE_DRAINING: step_draining(upgrade, facts, now_s); break;
	case UPGRADE_WAITING: step_waiting(upgrade, facts, now_s); break;
	case UPGRADE_VERIFYING: step_verifying(upgrade, facts, now_s); break;
	case UPGRADE_DONE:
	case UPGRADE_STOPPED:
	case UPGRADE_PHASE_COUNT: return false;
	}
	if (upgrade->phase == before.phase && now_s - upgrade->phase_s >= upgrade->limit_s) {
		char reason[UPGRADE_REASON_BYTES];
		memcpy(reason, upgrade->reason, sizeof reason);
		say(upgrade, "time is up: %.240s", reason);
		enter(upgrade, UPGRADE_STOPPED, now_s);
	}
	return upgrade->phase != before.phase || strcmp(upgrade->reason, before.reason) != 0;
}

static void put(json_t *object, const char *key, const char *text)
{
	if (text[0] != '\0')
		(void)json_object_set_new(object, key, json_string(text));
}

static void put_time(json_t *object, const char *key, int64_t unix_s)
{
	char text[TIME_TEXT_BYTES];
	if (time_format(unix_s, text))
		put(object, key, text);
}

json_t *upgrade_to_json(const struct upgrade *upgrade)
{
	json_t *out = json_object();
	put(out, "phase", upgrade_phase_name(upgrade->phase));
	if (upgrade->phase == UPGRADE_STOPPED)
		put(out, "stopped_in", upgrade_phase_name(upgrade->stopped_in));
	put(out, "driver", upgrade->driver);
	put(out, "cuda", upgrade->cuda);
	put(out, "from", upgrade->from);
	put(out, "user", upgrade->user);
	put(out, "reason", upgrade->reason);
	(void)json_object_set_new(out, "was_cordoned", json_boolean(upgrade->was_cordoned));
	(void)json_object_set_new(out, "force", json_boolean(upgrade->evicts_unmanaged));
	put_time(out, "begun", upgrade->begun_s);
	put_time(out, "since", upgrade->phase_s);
	(void)json_object_set_new(out, "timeout", json_integer(upgrade->limit_s));
	return out;
}

bool upgrade_parse(struct str text, struct upgrade *ret)
{
	AUTO(json_decrefp) json_t *object = NULL;
	struct upgrade upgrade = { 0 };
	if (json_parse(text, &object, NULL) != ERR_OK ||
	    !phase_parse(json_text(object, "phase"), &upgrade.phase))
		return false;
	(void)phase_parse(json_text(object, "stopped_in"), &upgrade.stopped_in);
	copy(upgrade.driver, sizeof upgrade.driver, json_text(object, "driver"));
	copy(upgrade.cuda, sizeof upgrade.cuda, json_text(object, "cuda"));
	copy(upgrade.from, sizeof upgrade.from, json_text(object, "from"));
	copy(upgrade.user, sizeof upgrade.user, json_text(object, "user"));
	copy(upgrade.reason, sizeof upgrade.reason, json_text(object, "reason"));
	upgrade.was_cordoned = json_bool(object, "was_cordoned", false);
	upgrade.evicts_unmanaged = json_bool(object, "force", false);
	upgrade.limit_s = json_int(object, "timeout", LIMIT_S);
	if (!time_parse(json_text(object, "begun"), &upgrade.begun_s, NULL) ||
	    !time_parse(json_text(object, "since"), &upgrade.phase_s, NULL))
		return false;
	// A phase that no stop can be in: somebody wrote it by hand.
	bool is_odd = upgrade.phase == UPGRADE_STOPPED && upgrade.stopped_in >= UPGRADE_DONE;
	if (is_odd || upgrade.limit_s < 1 || upgrade.limit_s > LIMIT_MAX_S)
		return false;
	*ret = upgrade;
	return true;
}

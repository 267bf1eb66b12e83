// SPDX-License-Identifier: Apache-2.0
#include "emulator/board.h"

#include "emulator/board_mig.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER(member, low, high)                                                                  \
	{                                                                                          \
#member, offsetof(struct board, member), low, high                                 \
	}
static const struct {
	const char *key;
	size_t offset;
	uint32_t min, max;
} NUMBERS[] = {
	NUMBER(architecture, 2, 64),
	NUMBER(compute_major, 3, 99),
	NUMBER(compute_minor, 0, 9),
	NUMBER(core_count, 1, 1000000),
	NUMBER(memory_mib, 64, 16777216),
	NUMBER(memory_reserved_mib, 0, 65536),
	NUMBER(bar1_mib, 1, 16777216),
	NUMBER(memory_bus_bits, 32, 16384),
	NUMBER(power_idle_w, 1, 10000),
	NUMBER(power_limit_w, 1, 10000),
	NUMBER(power_limit_min_w, 1, 10000),
	NUMBER(power_limit_max_w, 1, 10000),
	NUMBER(sm_clock_idle_mhz, 1, 10000),
	NUMBER(sm_clock_max_mhz, 1, 10000),
	NUMBER(memory_clock_idle_mhz, 1, 100000),
	NUMBER(memory_clock_max_mhz, 1, 100000),
	NUMBER(video_clock_idle_mhz, 1, 10000),
	NUMBER(video_clock_max_mhz, 1, 10000),
	NUMBER(pstate_idle, 0, 15),
	NUMBER(temp_idle_c, 0, 120),
	NUMBER(temp_busy_c, 0, 120),
	NUMBER(temp_shutdown_c, 1, 150),
	NUMBER(temp_slowdown_c, 1, 150),
	NUMBER(temp_gpu_max_c, 1, 150),
	NUMBER(temp_memory_above_gpu_c, 0, 60),
	NUMBER(temp_memory_max_c, 1, 150),
	NUMBER(pci_device_id, 1, UINT32_MAX),
	NUMBER(pci_subsystem_id, 0, UINT32_MAX),
	NUMBER(pcie_gen_max, 1, 8),
	NUMBER(pcie_width, 1, 32),
	NUMBER(nvlink_count, 0, 36),
	NUMBER(nvlink_version, 0, 16),
	NUMBER(nvlink_mb_s, 0, 100000),
	NUMBER(nvlink_switch_count, 0, 64),
	NUMBER(has_ecc, 0, 1),
	NUMBER(is_mig_capable, 0, 1),
	NUMBER(has_memory_temp, 0, 1),
};

#define MIG_PROFILES "mig_profiles" // may be absent

#define TEXT(member)                                                                               \
	{                                                                                          \
#member, offsetof(struct board, member), sizeof(((struct board *)0)->member)       \
	}
static const struct {
	const char *key;
	size_t offset, size_bytes;
} TEXTS[] = { TEXT(id), TEXT(name), TEXT(part_number), TEXT(vbios) };

// The value of {"value": ..., "source": KEY} where KEY is explained under "sources".
static err_status figure(const json_t *object, const char *key, const json_t **ret_value,
			 struct err *err)
{
	const json_t *entry = json_object_get(object, key);
	const json_t *value = json_object_get(entry, "value");
	const char *source = json_string_value(json_object_get(entry, "source"));

	if (value == NULL)
		return err_set(err, ERR_INVALID, "figure \"%s\" is missing", key);
	if (source == NULL ||
	    !json_is_string(json_object_get(json_object_get(object, "sources"), source)))
		return err_set(err, ERR_INVALID, "figure \"%s\" names no known source", key);
	*ret_value = value;
	return ERR_OK;
}

// Numbers, truths, and identifiers that people write in hexadecimal text.
static bool number_of(const json_t *value, uint64_t *ret_number)
{
	if (json_is_boolean(value)) {
		*ret_number = json_is_true(value) ? 1 : 0;
		return true;
	}
	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		*ret_number = (uint64_t)json_integer_value(value);
		return true;
	}
	const char *text = json_string_value(value);
	if (text != NULL && text[0] == '0' && text[1] == 'x' && strlen(text) <= 10) {
		char *end = NULL;
		*ret_number = strtoul(text + 2, &end, 16);
		return *end == 0 && end != text + 2;
	}
	return false;
}

static err_status check_sense(const struct board *board, struct err *err)
{
	if (board->power_idle_w >= board->power_limit_w)
		return err_set(err, ERR_INVALID, "power_idle_w is not below power_limit_w");
	if (board->power_limit_w < board->power_limit_min_w ||
	    board->power_limit_w > board->power_limit_max_w)
		return err_set(err, ERR_INVALID, "power_limit_w is outside its own limits");
	if (board->memory_reserved_mib >= board->memory_mib)
		return err_set(err, ERR_INVALID, "memory_reserved_mib is not below memory_mib");
	if (board->temp_idle_c > board->temp_busy_c)
		return err_set(err, ERR_INVALID, "temp_idle_c is above temp_busy_c");
	if (board->nvlink_count == 0 && board->nvlink_switch_count > 0)
		return err_set(err, ERR_INVALID, "nvlink_switch_count needs nvlink_count");
	return ERR_OK;
}

static err_status check_keys(json_t *object, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		bool known = strcmp(key, "sources") == 0 || strcmp(key, MIG_PROFILES) == 0;
		for (size_t i = 0; i < ARRAY_COUNT(NUMBERS); i++)
			known = known || strcmp(key, NUMBERS[i].key) == 0;
		for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++)
			known = known || strcmp(key, TEXTS[i].key) == 0;
		if (!known)
			return err_set(err, ERR_INVALID, "unknown figure \"%.60s\"", key);
	}
	return ERR_OK;
}

err_status board_read(const json_t *object, struct board *ret_board, struct err *err)
{
	struct board board = { 0 };
	const json_t *value = NULL;

	if (!json_is_object(object))
		return err_set(err, ERR_INVALID, "a board must be an object");
	if (check_keys((json_t *)(uintptr_t)object, err) != ERR_OK)
		return ERR_INVALID;
	for (size_t i = 0; i < ARRAY_COUNT(TEXTS); i++) {
		if (figure(object, TEXTS[i].key, &value, err) != ERR_OK)
			return ERR_INVALID;
		const char *text = json_string_value(value);
		if (text == NULL || text[0] == 0 || strlen(text) >= TEXTS[i].size_bytes)
			return err_set(err, ERR_INVALID, "\"%s\" must be a text of 1 to %zu bytes",
				       TEXTS[i].key, TEXTS[i].size_bytes - 1);
		memcpy((char *)&board + TEXTS[i].offset, text, strlen(text));
	}
	for (size_t i = 0; i < ARRAY_COUNT(NUMBERS); i++) {
		uint64_t number = 0;
		if (figure(object, NUMBERS[i].key, &value, err) != ERR_OK)
			return ERR_INVALID;
		if (!number_of(value, &number) || number < NUMBERS[i].min ||
		    number > NUMBERS[i].max)
			return err_set(err, ERR_INVALID, "\"%s\" must be a number of %u to %u",
				       NUMBERS[i].key, NUMBERS[i].min, NUMBERS[i].max);
		uint32_t narrow = (uint32_t)number;
		memcpy((char *)&board + NUMBERS[i].offset, &narrow, sizeof(narrow));
	}
	if (check_sense(&board, err) != ERR_OK)
		return ERR_INVALID;
	if (json_object_get(object, MIG_PROFILES) != NULL &&
	    (figure(object, MIG_PROFILES, &value, err) != ERR_OK ||
	     board_read_mig(value, &board, err) != ERR_OK))
		return ERR_INVALID;
	*ret_board = board;
	return ERR_OK;
}

err_status board_read_file(const char *path, struct board *ret_board, json_t **ret_json,
			   struct err *err)
{
	json_error_t where;
	json_t *object = json_load_file(path, JSON_REJECT_DUPLICATES, &where);

	if (object == NULL)
		return err_set(err, ERR_INVALID, "%s line %d: %s", path, where.line, where.text);
	if (board_read(object, ret_board, err) != ERR_OK) {
		json_decref(object);
		return err_wrap(err, "board %s", path);
	}
	if (ret_json != NULL)
		*ret_json = object;
	else
		json_decref(object);
	return ERR_OK;
}

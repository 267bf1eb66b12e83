// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/counters.h"

#include <stdio.h>

#define XID_NAME "DCGM_FI_DEV_XID_ERRORS"
#define XID_HELP "Value of the last XID error encountered."
#define DRIVER_NAME "DCGM_FI_DRIVER_VERSION"

enum { COLUMNS = 3, CELL_BYTES = COUNTER_HELP_BYTES };

// Named in dcgm-exporter's files, but not to be had through NVML, or not on whole GPUs.
static const char *const unserved_names[] = {
	"DCGM_FI_DEV_NVLINK_BANDWIDTH_L0",
	"DCGM_FI_DEV_VGPU_LICENSE_STATUS",
	"DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
	"DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
	"DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
	"DCGM_FI_NVML_VERSION",
	"DCGM_FI_CUDA_DRIVER_VERSION",
	"DCGM_FI_DEV_BRAND",
	"DCGM_FI_DEV_SERIAL",
	"DCGM_FI_DEV_VBIOS_VERSION",
	"DCGM_FI_DEV_OEM_INFOROM_VER",
	"DCGM_FI_DEV_ECC_INFOROM_VER",
	"DCGM_FI_DEV_POWER_INFOROM_VER",
	"DCGM_FI_DEV_INFOROM_IMAGE_VER",
	"DCGM_EXP_XID_ERRORS_COUNT",
	"DCGM_EXP_CLOCK_EVENTS_COUNT",
	"DCGM_EXP_GPU_HEALTH_STATUS",
	"DCGM_EXP_P2P_STATUS",
};
// Of the profiling fields NVML gives some, and of Hopper and newer; the others are not served.
static const char unserved_prefix[] = "DCGM_FI_PROF_";

// One line's cells, trimmed.
struct line {
	char cells[COLUMNS][CELL_BYTES];
	size_t count;
};

static void add(struct counters *counters, counter_kind kind, enum gpu_field field,
		const char *type, const char *help)
{
	ASSERT(counters->count < COUNTERS_MAX);
	struct counter *counter = &counters->items[counters->count++];
	*counter = (struct counter){ .kind = kind, .field = field };
	(void)snprintf(counter->type, sizeof counter->type, "%.*s", (int)sizeof counter->type - 1,
		       type);
	(void)snprintf(counter->help, sizeof counter->help, "%s", help);
}

void counters_init(struct counters *counters)
{
	*counters = (struct counters){ .has_driver_label = true };
	for (int i = 0; i < GPU_FIELD_DEFAULT_COUNT; i++) {
		const struct gpu_field_info *info = gpu_field_info((enum gpu_field)i);
		add(counters, COUNTER_FIELD, (enum gpu_field)i, info->type, info->help);
	}
	add(counters, COUNTER_XID, (enum gpu_field)0, "gauge", XID_HELP);
}

// The next cell of the rest of a line; quoted ones may hold commas, and "" for a quote.
static err_status take_cell(struct str *rest, char out[CELL_BYTES], bool *ret_is_last,
			    struct err *err)
{
	size_t at = 0, len = 0;
	while (at < rest->len && (rest->data[at] == ' ' || rest->data[at] == '\t'))
		at++;
	bool is_quoted = at < rest->len && rest->data[at] == '"', is_open = is_quoted;
	at += is_quoted ? 1 : 0;
	for (; at < rest->len; at++) {
		char c = rest->data[at];
		bool is_double = c == '"' && at + 1 < rest->len && rest->data[at + 1] == '"';
		if (is_open && c == '"' && !is_double) {
			is_open = false;
			continue;
		}
		if (!is_open && c == ',')
			break;
		if (is_quoted && !is_open && c != ' ' && c != '\t')
			return err_set(err, ERR_INVALID,
				       "text stands after a closing quote; put the whole cell in "
				       "quotes");
		at += is_open && is_double ? 1 : 0;
		if (len == CELL_BYTES - 1)
			return err_set(err, ERR_LIMIT, "a cell has more than %d bytes; shorten it",
				       CELL_BYTES - 1);
		out[len++] = c;
	}
	if (is_open)
		return err_set(err, ERR_INVALID, "a quote is not closed; close it on the line");
	while (len > 0 && (out[len - 1] == ' ' || out[len - 1] == '\t'))
		len--;
	out[len] = '\0';
	*ret_is_last = at >= rest->len;
	*rest = str_slice(*rest, at + 1, rest->len);
	return ERR_OK;
}

static err_status split(struct str text, struct line *ret, struct err *err)
{
	bool is_last = false;
	for (ret->count = 0; !is_last; ret->count++) {
		if (ret->count == COLUMNS)
			return err_set(
				err, ERR_INVALID,
				"there are more than %d cells; put a help text with commas in "
				"quotes",
				COLUMNS);
		if (take_cell(&text, ret->cells[ret->count], &is_last, err) != ERR_OK)
			return err->status;
	}
	if (ret->count < COLUMNS)
		return err_set(err, ERR_INVALID, "there are %zu cells; write NAME, type, help",
			       ret->count);
	return ERR_OK;
}

static bool is_unserved(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(unserved_names); i++) {
		if (strcmp(name, unserved_names[i]) == 0)
			return true;
	}
	struct str rest = str_of(name);
	if (!str_starts(rest, str_of(unserved_prefix)) || rest.len == sizeof unserved_prefix - 1)
		return false;
	for (size_t i = sizeof unserved_prefix - 1; i < rest.len; i++) {
		char c = rest.data[i];
		if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
			return false;
	}
	return true;
}

static bool find_field(const char *name, enum gpu_field *ret)
{
	for (int i = 0; i < GPU_FIELD_COUNT; i++) {
		if (strcmp(name, gpu_field_info((enum gpu_field)i)->name) == 0) {
			*ret = (enum gpu_field)i;
			return true;
		}
	}
	return false;
}

static bool is_there(const struct counters *counters, counter_kind kind, enum gpu_field field)
{
	for (size_t i = 0; i < counters->count; i++) {
		if (counters->items[i].kind == kind && counters->items[i].field == field)
			return true;
	}
	return false;
}

static err_status take_line(const struct line *line, struct counters *counters, struct err *err)
{
	const char *name = line->cells[0], *type = line->cells[1], *help = line->cells[2];
	bool is_label = strcmp(type, "label") == 0, is_driver = strcmp(name, DRIVER_NAME) == 0;
	bool is_xid = strcmp(name, XID_NAME) == 0;
	enum gpu_field field = (enum gpu_field)0;
	if (!is_label && strcmp(type, "gauge") != 0 && strcmp(type, "counter") != 0)
		return err_set(err, ERR_INVALID,
			       "type \"%.40s\" is not served; write gauge, counter or label", type);
	if (!str_is_utf8(str_of(help)))
		return err_set(err, ERR_INVALID, "the help text is not UTF-8; write it anew");
	bool is_known = is_driver || is_xid || find_field(name, &field);
	if (!is_known && is_unserved(name)) {
		counters->unserved++;
		return ERR_OK;
	}
	if (!is_known)
		return err_set(err, ERR_NOT_FOUND,
			       "\"%.80s\" is no counter known here; correct the name or remove the "
			       "line",
			       name);
	if (is_driver != is_label)
		return err_set(err, ERR_INVALID, "%s is %s; write the type %s", name,
			       is_driver ? "a label" : "a value",
			       is_driver ? "label" : "gauge or counter");
	if (is_driver) {
		counters->has_driver_label = true;
		return ERR_OK;
	}
	counter_kind kind = is_xid ? COUNTER_XID : COUNTER_FIELD;
	if (is_there(counters, kind, field))
		return err_set(err, ERR_INVALID, "%s stands twice; remove one of the lines", name);
	if (counters->count == COUNTERS_MAX)
		return err_set(err, ERR_LIMIT, "there are more than %d counters", COUNTERS_MAX);
	add(counters, kind, field, type, help);
	return ERR_OK;
}

err_status counters_parse(struct str text, struct counters *ret, struct err *err)
{
	struct err local;
	struct counters counters = { 0 };
	struct str row;
	err = err == NULL ? &local : err;
	if (text.len > COUNTERS_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "the file has more than %d bytes",
			       COUNTERS_MAX_BYTES);
	for (size_t number = 1; str_split_next(&text, '\n', &row); number++) {
		struct line line;
		row = str_trim(row);
		if (row.len == 0 || row.data[0] == '#')
			continue;
		if (memchr(row.data, '\0', row.len) != NULL)
			return err_set(err, ERR_INVALID, "line %zu: holds a zero byte; remove it",
				       number);
		if (split(row, &line, err) != ERR_OK || take_line(&line, &counters, err) != ERR_OK)
			return err_wrap(err, "line %zu", number);
	}
	if (counters.count == 0)
		return err_set(
			err, ERR_INVALID,
			"the file names no counter that is served here; add one or leave the "
			"file away");
	*ret = counters;
	return ERR_OK;
}

// SPDX-License-Identifier: Apache-2.0
#include "emulator/control.h"

#include "emulator/calls.h"
#include "gpu/nvml_abi.h"

enum {
	WORDS_MAX = 8,
	DELAY_MAX_US = 600 * 1000000,
	PID_MAX = 4194304,
	CODE_MAX = 999999,
	COUNT_MAX = 1000000000,
	CUDA_PART_MAX = 99,
	START_MAX = 7,
	TEMP_MAX_C = 150,
	THROTTLE_MAX = 0x1ff
};

struct words {
	struct str word[WORDS_MAX];
	size_t count;
};

static err_status number(struct str text, const char *what, uint32_t max, uint32_t *ret,
			 struct err *err)
{
	uint64_t value = 0;

	if (!str_to_u64(text, &value) || value > max)
		return err_set(err, ERR_INVALID, "%s must be 0 to %u, not \"" STR_FMT "\"", what,
			       max, STR_ARG(text));
	*ret = (uint32_t)value;
	return ERR_OK;
}

static err_status slot(struct str text, struct control_command *command, struct err *err)
{
	return number(text, "GPU", WIRE_GPU_MAX - 1, &command->slot, err);
}

static err_status copy_word(struct str text, struct control_command *command, struct err *err)
{
	if (text.len >= sizeof(command->word))
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is longer than %zu bytes",
			       STR_ARG(text), sizeof(command->word) - 1);
	memcpy(command->word, text.data, text.len);
	command->word[text.len] = 0;
	return ERR_OK;
}

static bool is_plain_word(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' || c == '+';
		if (!plain)
			return false;
	}
	return text.len > 0 && text.data[0] != '.';
}

static err_status plain(struct str text, const char *what, struct control_command *command,
			struct err *err)
{
	if (!is_plain_word(text))
		return err_set(err, ERR_INVALID,
			       "%s \"" STR_FMT "\" has a byte outside "
			       "[A-Za-z0-9._+-]",
			       what, STR_ARG(text));
	return copy_word(text, command, err);
}

// A version suffix in the command names one version, none names all of them.
static bool is_call(struct str text)
{
#define NAME(name) #name,
	static const char *const NAMES[] = { CALLS_ALL(NAME) };
#undef NAME
	for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
		struct str name = str_of(NAMES[i]);
		if (str_eq(name, text))
			return true;
		if (str_starts(name, text) && name.len == text.len + 3 &&
		    str_starts(str_slice(name, text.len, name.len), STR("_v")))
			return true;
	}
	return false;
}

static err_status call(struct str text, struct control_command *command, struct err *err)
{
	if (!str_eq_c(text, "all") && !is_call(text))
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is no function of the library",
			       STR_ARG(text));
	return copy_word(text, command, err);
}

static err_status is_on(struct str text, struct control_command *command, struct err *err)
{
	command->is_on = str_eq_c(text, "on");
	if (!command->is_on && !str_eq_c(text, "off"))
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is neither on nor off",
			       STR_ARG(text));
	return ERR_OK;
}

static err_status on_off(const struct words *w, struct control_command *command, struct err *err)
{
	return is_on(w->word[1], command, err);
}

static err_status only_slot(const struct words *w, struct control_command *command, struct err *err)
{
	return slot(w->word[1], command, err);
}

static err_status instance(const struct str words[2], struct control_command *command,
			   struct err *err)
{
	if (number(words[0], "GI", UINT32_MAX, &command->gpu_instance_id, err) != ERR_OK)
		return ERR_INVALID;
	return number(words[1], "CI", UINT32_MAX, &command->compute_instance_id, err);
}

static err_status xid(const struct words *w, struct control_command *command, struct err *err)
{
	if (w->count == 4)
		return err_set(err, ERR_INVALID, "GI needs CI");
	command->gpu_instance_id = NVML_NO_INSTANCE;
	command->compute_instance_id = NVML_NO_INSTANCE;
	if (slot(w->word[1], command, err) != ERR_OK ||
	    number(w->word[2], "XID", CODE_MAX, &command->code, err) != ERR_OK)
		return ERR_INVALID;
	return w->count < 5 ? ERR_OK : instance(&w->word[3], command, err);
}

static err_status slow(const struct words *w, struct control_command *command, struct err *err)
{
	if (call(w->word[1], command, err) != ERR_OK)
		return ERR_INVALID;
	return number(w->word[2], "microseconds", DELAY_MAX_US, &command->delay_us, err);
}

static err_status hang(const struct words *w, struct control_command *command, struct err *err)
{
	if (call(w->word[1], command, err) != ERR_OK)
		return ERR_INVALID;
	return slot(w->word[2], command, err);
}

static err_status error(const struct words *w, struct control_command *command, struct err *err)
{
	if (call(w->word[1], command, err) != ERR_OK ||
	    number(w->word[2], "return code", NVML_ERROR_UNKNOWN, &command->code, err) != ERR_OK)
		return ERR_INVALID;
	return w->count == 4 ? slot(w->word[3], command, err) : ERR_OK;
}

static err_status add(const struct words *w, struct control_command *command, struct err *err)
{
	return plain(w->word[1], "board", command, err);
}

bool control_cuda_version(struct str text, uint32_t *ret_version)
{
	struct str major_text;
	uint64_t major = 0, minor = 0;

	if (!str_split_next(&text, '.', &major_text) || !str_to_u64(major_text, &major) ||
	    !str_to_u64(text, &minor) || major > CUDA_PART_MAX || minor > CUDA_PART_MAX)
		return false;
	*ret_version = (uint32_t)(major * 1000 + minor * 10);
	return true;
}

static err_status driver(const struct words *w, struct control_command *command, struct err *err)
{
	if (w->count == 3 && !control_cuda_version(w->word[2], &command->code))
		return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is no CUDA version such as 12.8",
			       STR_ARG(w->word[2]));
	return plain(w->word[1], "driver version", command, err);
}

// ecc I on|off, or ecc I corrected|uncorrected COUNT.
static err_status ecc(const struct words *w, struct control_command *command, struct err *err)
{
	if (slot(w->word[1], command, err) != ERR_OK)
		return ERR_INVALID;
	if (w->count == 3) {
		command->kind = CONTROL_ECC_MODE;
		return is_on(w->word[2], command, err);
	}
	command->code = str_eq_c(w->word[2], "uncorrected") ? 1 : 0;
	if (command->code == 0 && !str_eq_c(w->word[2], "corrected"))
		return err_set(err, ERR_INVALID,
			       "\"" STR_FMT "\" is neither corrected nor uncorrected",
			       STR_ARG(w->word[2]));
	return number(w->word[3], "COUNT", COUNT_MAX, &command->numbers[0], err);
}

// mig I on|off, mig I create PROFILE [START], mig I destroy GI|all.
static err_status mig(const struct words *w, struct control_command *command, struct err *err)
{
	if (slot(w->word[1], command, err) != ERR_OK)
		return ERR_INVALID;
	if (w->count == 3) {
		command->kind = CONTROL_MIG_MODE;
		return is_on(w->word[2], command, err);
	}
	command->numbers[0] = WIRE_ANYWHERE;
	if (str_eq_c(w->word[2], "create")) {
		command->kind = CONTROL_MIG_CREATE;
		if (w->count == 5 &&
		    number(w->word[4], "START", START_MAX, &command->numbers[0], err) != ERR_OK)
			return ERR_INVALID;
		return plain(w->word[3], "profile", command, err);
	}
	command->kind = CONTROL_MIG_DESTROY;
	command->gpu_instance_id = WIRE_NO_INSTANCE;
	if (!str_eq_c(w->word[2], "destroy") || w->count == 5)
		return err_set(err, ERR_INVALID, "usage: mig I destroy GI|all");
	if (str_eq_c(w->word[3], "all"))
		return ERR_OK;
	return number(w->word[3], "GI", CODE_MAX, &command->gpu_instance_id, err);
}

static err_status slot_and_numbers(const struct words *w, struct control_command *command,
				   struct err *err)
{
	ASSERT(w->count >= 2 && w->count - 2 <= CONTROL_NUMBERS_MAX);
	if (slot(w->word[1], command, err) != ERR_OK)
		return ERR_INVALID;
	for (size_t i = 2; i < w->count; i++)
		if (number(w->word[i], "each count", COUNT_MAX, &command->numbers[i - 2], err) !=
		    ERR_OK)
			return ERR_INVALID;
	return ERR_OK;
}

static err_status recovery(const struct words *w, struct control_command *command, struct err *err)
{
	if (slot(w->word[1], command, err) != ERR_OK)
		return ERR_INVALID;
	return number(w->word[2], "recovery action", 7, &command->code, err);
}

static err_status temp(const struct words *w, struct control_command *command, struct err *err)
{
	if (slot(w->word[1], command, err) != ERR_OK)
		return ERR_INVALID;
	return number(w->word[2], "degrees", TEMP_MAX_C, &command->code, err);
}

static err_status throttle(const struct words *w, struct control_command *command, struct err *err)
{
	if (slot(w->word[1], command, err) != ERR_OK)
		return ERR_INVALID;
	return number(w->word[2], "MASK", THROTTLE_MAX, &command->code, err);
}

static err_status process(const struct words *w, struct control_command *command, struct err *err)
{
	if (slot(w->word[1], command, err) != ERR_OK ||
	    number(w->word[2], "PID", PID_MAX, &command->pid, err) != ERR_OK)
		return ERR_INVALID;
	if (command->pid == 0)
		return err_set(err, ERR_INVALID, "PID must not be 0");
	if (w->count == 5)
		return err_set(err, ERR_INVALID, "GI needs CI");
	command->gpu_instance_id = WIRE_NO_INSTANCE;
	command->compute_instance_id = WIRE_NO_INSTANCE;
	if (w->count == 6 && instance(&w->word[4], command, err) != ERR_OK)
		return ERR_INVALID;
	return number(w->word[3], "MIB", UINT32_MAX, &command->memory_mib, err);
}

static const struct {
	const char *name;
	enum control_kind kind;
	size_t words_min, words_max;
	err_status (*parse)(const struct words *w, struct control_command *command,
			    struct err *err);
	const char *usage;
} COMMANDS[] = {
	{ "lost", CONTROL_LOST, 2, 2, only_slot, "lost I" },
	{ "xid", CONTROL_XID, 3, 5, xid, "xid I CODE [GI CI]" },
	{ "initfail", CONTROL_INITFAIL, 2, 2, on_off, "initfail on|off" },
	{ "wait-error", CONTROL_WAIT_ERROR, 2, 2, on_off, "wait-error on|off" },
	{ "slow", CONTROL_SLOW, 3, 3, slow, "slow CALL US" },
	{ "hang", CONTROL_HANG, 3, 3, hang, "hang CALL I" },
	{ "error", CONTROL_ERROR, 3, 4, error, "error CALL CODE [I]" },
	{ "add", CONTROL_ADD, 2, 2, add, "add BOARD" },
	{ "remove", CONTROL_REMOVE, 2, 2, only_slot, "remove I" },
	{ "driver", CONTROL_DRIVER, 2, 3, driver, "driver VERSION [CUDA]" },
	{ "restore", CONTROL_RESTORE, 2, 2, only_slot, "restore I" },
	{ "recovery", CONTROL_RECOVERY, 3, 3, recovery, "recovery I ACTION" },
	{ "process", CONTROL_PROCESS, 4, 6, process, "process I PID MIB [GI CI]" },
	{ "temp", CONTROL_TEMP, 3, 3, temp, "temp I C" },
	{ "throttle", CONTROL_THROTTLE, 3, 3, throttle, "throttle I MASK" },
	{ "mig", CONTROL_MIG_MODE, 3, 5, mig,
	  "mig I on|off, mig I create PROFILE [START], or mig I destroy GI|all" },
	{ "ecc", CONTROL_ECC, 3, 4, ecc, "ecc I on|off, or ecc I corrected|uncorrected COUNT" },
	{ "pages", CONTROL_PAGES, 5, 5, slot_and_numbers, "pages I SINGLE DOUBLE PENDING" },
	{ "rows", CONTROL_ROWS, 6, 6, slot_and_numbers,
	  "rows I CORRECTABLE UNCORRECTABLE PENDING FAILED" },
};

// Blanks and tabs of any number separate words; a word too many is kept to be noticed.
static void split(struct str line, struct words *ret)
{
	size_t at = 0;

	*ret = (struct words){ 0 };
	while (ret->count < WORDS_MAX) {
		while (at < line.len && (line.data[at] == ' ' || line.data[at] == '\t'))
			at++;
		size_t from = at;
		while (at < line.len && line.data[at] != ' ' && line.data[at] != '\t')
			at++;
		if (at == from)
			return;
		ret->word[ret->count++] = str_slice(line, from, at);
	}
}

err_status control_parse(struct str line, struct control_command *ret_command, struct err *err)
{
	struct control_command command = { .slot = WIRE_NO_SLOT };
	struct words words;

	if (memchr(line.data == NULL ? "" : line.data, 0, line.len) != NULL)
		return err_set(err, ERR_INVALID, "the line has a NUL byte");
	split(str_trim(line), &words);
	if (words.count == 0 || words.word[0].data[0] == '#') {
		*ret_command = command;
		return ERR_OK;
	}
	for (size_t i = 0; i < ARRAY_COUNT(COMMANDS); i++) {
		if (!str_eq_c(words.word[0], COMMANDS[i].name))
			continue;
		if (words.count < COMMANDS[i].words_min || words.count > COMMANDS[i].words_max)
			return err_set(err, ERR_INVALID, "usage: %s", COMMANDS[i].usage);
		command.kind = COMMANDS[i].kind;
		if (COMMANDS[i].parse(&words, &command, err) != ERR_OK)
			return ERR_INVALID;
		*ret_command = command;
		return ERR_OK;
	}
	return err_set(err, ERR_INVALID, "unknown command \"" STR_FMT "\"", STR_ARG(words.word[0]));
}

bool control_lines_next(struct control_lines *lines, struct str *rest, struct str *ret_line,
			bool *ret_too_long)
{
	size_t end = str_find_byte(*rest, '\n', 0);
	struct str part = str_slice(*rest, 0, end == SIZE_MAX ? rest->len : end);

	size_t room = sizeof(lines->line) - lines->len;
	size_t take = min_size(part.len, room);
	if (take > 0)
		memcpy(lines->line + lines->len, part.data, take);
	lines->len += take;
	lines->is_too_long = lines->is_too_long || take < part.len;
	*rest = str_slice(*rest, end == SIZE_MAX ? rest->len : end + 1, rest->len);
	if (end == SIZE_MAX)
		return false;
	*ret_line = (struct str){ lines->line, lines->len };
	*ret_too_long = lines->is_too_long;
	lines->len = 0;
	lines->is_too_long = false;
	lines->line_number++;
	return true;
}

void control_lines_reset(struct control_lines *lines) { *lines = (struct control_lines){ 0 }; }

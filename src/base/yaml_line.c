// SPDX-License-Identifier: Apache-2.0
// Where a value stands in a YAML text: a second walk over its events, made only to tell a person.
#include "base/buf.h"
#include "base/yaml.h"

#include <yaml.h>

enum { PATH_MAX_BYTES = 1024 };

struct place { // an open mapping or sequence
	bool is_mapping, is_key_next;
	size_t index;    // of the next item of a sequence
	size_t path_len; // of its own path
};

struct walk {
	yaml_parser_t parser;
	struct buf path; // of the value that comes next
	struct place places[YAML_DEPTH_MAX];
	size_t depth;
};

static void cut_path(struct walk *walk, size_t len)
{
	if (walk->path.len <= len)
		return;
	walk->path.len = len;
	walk->path.data[len] = '\0';
}

// The path of the next value of the innermost container, which is no key.
static void enter_value(struct walk *walk)
{
	struct place *place = walk->depth == 0 ? NULL : &walk->places[walk->depth - 1];
	if (place == NULL || place->is_mapping)
		return;
	cut_path(walk, place->path_len);
	buf_printf(&walk->path, "[%zu]", place->index++);
}

static void enter_key(struct walk *walk, const yaml_event_t *event)
{
	struct place *place = &walk->places[walk->depth - 1];
	cut_path(walk, place->path_len);
	if (walk->path.len > 0)
		buf_put_byte(&walk->path, '.');
	buf_put(&walk->path,
		(struct str){ (const char *)event->data.scalar.value, event->data.scalar.length });
	place->is_key_next = false;
}

static void leave_value(struct walk *walk)
{
	if (walk->depth > 0 && walk->places[walk->depth - 1].is_mapping)
		walk->places[walk->depth - 1].is_key_next = true;
}

static bool is_key(const struct walk *walk)
{
	return walk->depth > 0 && walk->places[walk->depth - 1].is_key_next;
}

static bool take_event(struct walk *walk, const yaml_event_t *event)
{
	bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
	if (is_mapping || event->type == YAML_SEQUENCE_START_EVENT) {
		if (is_key(walk) || walk->depth == YAML_DEPTH_MAX)
			return false; // the reader refused it
		enter_value(walk);
		walk->places[walk->depth++] = (struct place){ .is_mapping = is_mapping,
							      .is_key_next = is_mapping,
							      .path_len = walk->path.len };
	} else if (event->type == YAML_SCALAR_EVENT && is_key(walk)) {
		enter_key(walk, event);
	} else if (event->type == YAML_SCALAR_EVENT) {
		enter_value(walk);
		leave_value(walk);
	} else if (event->type == YAML_MAPPING_END_EVENT ||
		   event->type == YAML_SEQUENCE_END_EVENT) {
		walk->depth--;
		leave_value(walk);
	}
	return !walk->path.failed;
}

size_t yaml_line_of(struct str text, const char *path)
{
	struct walk walk = { .path = { .limit = PATH_MAX_BYTES } };
	size_t line = 0;
	bool goes_on = text.len <= YAML_INPUT_MAX_BYTES && path[0] != '\0';
	if (!goes_on || yaml_parser_initialize(&walk.parser) == 0)
		return 0;
	yaml_parser_set_encoding(&walk.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&walk.parser, (const unsigned char *)text.data, text.len);
	while (goes_on && line == 0) {
		yaml_event_t event;
		if (yaml_parser_parse(&walk.parser, &event) == 0)
			break;
		bool is_begin = event.type == YAML_SCALAR_EVENT ||
				event.type == YAML_MAPPING_START_EVENT ||
				event.type == YAML_SEQUENCE_START_EVENT;
		goes_on = take_event(&walk, &event) && event.type != YAML_STREAM_END_EVENT;
		if (goes_on && is_begin && str_eq_c(buf_str(&walk.path), path))
			line = event.start_mark.line + 1;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&walk.parser);
	buf_done(&walk.path);
	return line;
}

// SPDX-License-Identifier: Apache-2.0
#include "feed/feed_load.h"

#include "base/json.h"
#include "base/json_scan.h"
#include "base/map.h"

enum { AGE_MAX_DAYS = 1000, MILLI_A_PERCENT = 10 };
static const int64_t AGE_MAX_MS = INT64_C(86400000) * AGE_MAX_DAYS;

// A decimal number without sign or exponent as thousandths of it; further decimals are cut off.
static bool read_milli(struct str text, int64_t *ret_milli)
{
	struct str whole, part = text;
	int64_t units, milli = 0;
	(void)str_split_next(&part, '.', &whole);
	bool has_point = whole.len < text.len;
	for (size_t i = 0; i < text.len; i++) {
		if ((text.data[i] < '0' || text.data[i] > '9') && i != whole.len)
			return false;
	}
	if (whole.len == 0 || (has_point && part.len == 0) || !str_to_i64(whole, &units) ||
	    units > INT64_MAX / 1000 - 1)
		return false;
	for (size_t i = 0; i < 3; i++)
		milli = 10 * milli + (i < part.len ? part.data[i] - '0' : 0);
	*ret_milli = units * 1000 + milli;
	return true;
}

struct reader {
	struct feed_clock clock;
	struct feed_loads loads;
	size_t cap;
	struct map *places; // uuid -> place + 1
};

// By our own clock; false: of the future, or so old that it cannot be true.
static bool place_age(const struct reader *reader, int64_t age_ms, int64_t *ret_at_ms)
{
	if (age_ms < -FEED_LOAD_AHEAD_MS || age_ms > AGE_MAX_MS)
		return false;
	*ret_at_ms = reader->clock.now_ms - max_i64(age_ms, 0);
	return *ret_at_ms >= 0;
}

static void add(struct reader *reader, const struct sched_load_in *item)
{
	uintptr_t place = (uintptr_t)map_find(reader->places, item->uuid);
	if (item->uuid.len == 0 || item->milli < 0 || item->milli > SCHED_LOAD_MILLI_MAX ||
	    (place == 0 && reader->loads.count == reader->cap)) {
		reader->loads.bad++;
		return;
	}
	if (place == 0) {
		reader->loads.items[reader->loads.count++] = *item;
		(void)map_set(reader->places, item->uuid, (void *)(uintptr_t)reader->loads.count);
		return;
	}
	// A GPU has another series with every pod it is given to; the last one counts.
	struct sched_load_in *known = &reader->loads.items[place - 1];
	bool is_newer = item->at_ms > known->at_ms ||
			(item->at_ms == known->at_ms && item->milli > known->milli);
	if (is_newer)
		*known = *item;
}

static err_status start(struct reader *reader, struct arena *arena, size_t cap,
			struct feed_clock clock, struct err *err)
{
	*reader = (struct reader){ .clock = clock, .cap = min_size(cap, FEED_LOADS_MAX) };
	reader->loads.items = ARENA_ARRAY(arena, struct sched_load_in, max_size(reader->cap, 1));
	if (reader->loads.items == NULL)
		return err_set(err, ERR_LIMIT, "no memory for %zu loads", cap);
	reader->places = map_new(0);
	return ERR_OK;
}

err_status feed_load_view(struct arena *arena, struct str text, struct feed_clock clock,
			  struct feed_loads *ret, struct err *err)
{
	AUTO(json_decrefp) json_t *view = NULL;
	struct reader reader;
	if (json_parse(text, &view, err) != ERR_OK)
		return err->status;
	const json_t *gpus = json_object_get(view, "gpus"), *gpu;
	size_t i;
	if (!json_is_array(gpus))
		return err_set(err, ERR_PROTOCOL, "no load view: gpus is missing");
	if (start(&reader, arena, json_array_size(gpus), clock, err) != ERR_OK)
		return err->status;
	struct str node = arena_dup(arena, json_text(view, "node"));
	json_array_foreach(gpus, i, gpu)
	{
		struct sched_load_in item = { .node = node,
					      .is_node_sure = true,
					      .uuid = arena_dup(arena, json_text(gpu, "uuid")) };
		if (json_object_get(gpu, "util_milli") == NULL)
			continue;
		item.milli = json_int(gpu, "util_milli", -1);
		if (place_age(&reader, json_int(gpu, "age_ms", INT64_MAX), &item.at_ms))
			add(&reader, &item);
		else
			reader.loads.bad++;
	}
	map_free(reader.places);
	*ret = reader.loads;
	return ERR_OK;
}

// The last of [[seconds, "percent"], ...]; false: there is none that can be a load.
static bool read_last(const struct reader *reader, struct str values, struct sched_load_in *item)
{
	struct json_iter iter = json_iter_of(values);
	struct str key, pair, last = { NULL, 0 }, seconds, percent;
	int64_t at_ms, milli;
	while (json_iter_next(&iter, &key, &pair))
		last = pair;
	iter = json_iter_of(last);
	if (last.data == NULL || !json_iter_next(&iter, &key, &seconds) ||
	    !json_iter_next(&iter, &key, &percent))
		return false;
	percent = json_scan_text(percent);
	if (percent.data == NULL || !read_milli(seconds, &at_ms) || !read_milli(percent, &milli))
		return false;
	item->milli = milli > 1000 * 100 ? -1 : milli * MILLI_A_PERCENT / 1000;
	return item->milli >= 0 && place_age(reader, reader->clock.wall_ms - at_ms, &item->at_ms);
}

static void read_series(struct reader *reader, struct str series)
{
	struct str metric = json_scan_at(series, "metric");
	struct str values = json_scan_at(series, "values");
	struct str host = json_scan_text(json_scan_at(metric, "Hostname"));
	struct sched_load_in item = { .node = host.data == NULL ? STR("") : host,
				      .uuid = json_scan_text(json_scan_at(metric, "UUID")) };
	if (json_scan_at(metric, "GPU_I_ID").data != NULL)
		return; // of a MIG device
	if (item.uuid.data != NULL && values.data != NULL && read_last(reader, values, &item))
		add(reader, &item);
	else
		reader->loads.bad++;
}

err_status feed_load_prometheus(struct arena *arena, struct str text, struct feed_clock clock,
				struct feed_loads *ret, struct err *err)
{
	struct reader reader;
	struct str key, series;
	struct str status = json_scan_text(json_scan_at(text, "status"));
	struct str type = json_scan_text(json_scan_at(text, "data.resultType"));
	struct str result = json_scan_at(text, "data.result");
	if (status.data == NULL || !str_eq_c(status, "success") || type.data == NULL ||
	    !str_eq_c(type, "matrix") || result.data == NULL)
		return err_set(err, ERR_PROTOCOL, "no answer of Prometheus to a range of a metric");
	size_t count = 0;
	struct json_iter iter = json_iter_of(result);
	while (json_iter_next(&iter, &key, &series))
		count++;
	if (iter.failed)
		return err_set(err, ERR_PROTOCOL, "the answer of Prometheus is broken off");
	if (start(&reader, arena, count, clock, err) != ERR_OK)
		return err->status;
	iter = json_iter_of(result);
	while (json_iter_next(&iter, &key, &series))
		read_series(&reader, series);
	map_free(reader.places);
	*ret = reader.loads;
	return ERR_OK;
}

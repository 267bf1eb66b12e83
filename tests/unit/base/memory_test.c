// SPDX-License-Identifier: Apache-2.0
// arena, buf, map: limits hold, order is kept, nothing is half done at a limit.
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/rng.h"
#include "check.h"

static void test_arena(struct check *c)
{
	struct arena *arena = arena_new(64 * 1024);
	CHECK(c, "over the limit", arena_alloc(arena, 65 * 1024) == NULL);
	CHECK(c, "overflow of count", arena_alloc_array(arena, SIZE_MAX / 2, 4) == NULL);
	char *first = arena_alloc(arena, 10);
	CHECK(c, "aligned", ((uintptr_t)first & 15) == 0);
	size_t got = 0;
	while (arena_alloc(arena, 1000) != NULL)
		got++;
	CHECK_INT(c, "limit", got, (64 * 1024 - 16) / 1008);
	CHECK(c, "small still fits or not, never more than the limit",
	      arena_used_bytes(arena) <= 64 * 1024);
	arena_reset(arena);
	CHECK_INT(c, "reset", arena_used_bytes(arena), 0);
	const unsigned char *zero = arena_alloc(arena, 100);
	CHECK(c, "zeroed again", zero[0] == 0 && zero[99] == 0);
	CHECK_STR(c, "printf", str_of(arena_printf(arena, "%d-%s", 7, "x")), "7-x");
	CHECK_STR(c, "dup", arena_dup(arena, STR("hello")), "hello");
	arena_free(arena);
	arena_free(NULL);
}

static void test_buf(struct check *c)
{
	AUTO(buf_done) struct buf b = { .limit = 10 };
	buf_put_c(&b, "12345");
	buf_printf(&b, "%d", 67890);
	CHECK(c, "full", buf_ok(&b) && b.len == 10);
	buf_put_byte(&b, 'x');
	CHECK(c, "failed", !buf_ok(&b));
	CHECK_STR(c, "kept", buf_str(&b), "1234567890");
	buf_clear(&b);
	CHECK(c, "usable again", buf_ok(&b));
	buf_put_c(&b, "abcdef");
	buf_consume(&b, 4);
	CHECK_STR(c, "consume", buf_str(&b), "ef");
	AUTO(buf_done) struct buf j = { 0 };
	buf_put_json(&j, STR("a\"\\\n\x01\xc3\xa4\xff\xe2\x82z"));
	CHECK_STR(c, "json", buf_str(&j),
		  "\"a\\\"\\\\\\n\\u0001\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"");
}

// A map against a plain array of presence, under random changes.
static void test_map(struct check *c)
{
	enum { KEYS = 500, STEPS = 20000 };
	static int values[KEYS];
	bool present[KEYS] = { false };
	size_t count = 0, wrong = 0;
	struct map *map = map_new(1);
	struct rng rng;
	rng_init(&rng, 42);
	for (int step = 0; step < STEPS; step++) {
		size_t k = (size_t)rng_below(&rng, KEYS);
		char key[16];
		(void)snprintf(key, sizeof key, "key-%zu", k);
		if (rng_below(&rng, 3) == 0) {
			wrong += (map_remove(map, str_of(key)) != NULL) != present[k];
			count -= present[k];
			present[k] = false;
		} else {
			wrong += (map_set(map, str_of(key), &values[k]) != NULL) != present[k];
			count += !present[k];
			present[k] = true;
		}
		wrong += map_count(map) != count;
		wrong += (map_find(map, str_of(key)) == &values[k]) != present[k];
	}
	CHECK_INT(c, "map agrees with the oracle", wrong, 0);
	size_t i = 0, seen = 0;
	void *value;
	while (map_next(map, &i, NULL, &value))
		seen += present[(int *)value - values];
	CHECK_INT(c, "iteration sees each once", seen, count);
	map_free(map);
	map = map_new(0);
	int x, y;
	(void)map_set(map, STR("b"), &x);
	(void)map_set(map, STR("a"), &y);
	struct str key;
	i = 0;
	CHECK(c, "order of insertion", map_next(map, &i, &key, NULL) && str_eq_c(key, "b"));
	CHECK(c, "empty key is a key",
	      map_set(map, STR(""), &x) == NULL && map_find(map, STR("")) == &x);
	map_free(map);
}

// Keys that are part of their values, under random changes; an old one is overwritten as soon as
// the map has let it go.
static void test_map_borrowing(struct check *c)
{
	enum { KEYS = 200, STEPS = 20000 };
	static struct {
		char key[16];
	} values[KEYS][2];
	int held[KEYS] = { 0 }; // 0: absent, else 1 + which of the two
	size_t wrong = 0;
	struct map *map = map_new_borrowing(1);
	struct rng rng;
	rng_init(&rng, 43);
	for (int step = 0; step < STEPS; step++) {
		size_t k = (size_t)rng_below(&rng, KEYS);
		int next = rng_below(&rng, 3) == 0 ? 0 : held[k] == 1 ? 2 : 1;
		void *old = held[k] == 0 ? NULL : &values[k][held[k] - 1];
		char key[16];
		(void)snprintf(key, sizeof key, "key-%zu", k);
		if (next == 0) {
			wrong += map_remove(map, str_of(key)) != old;
		} else {
			memcpy(values[k][next - 1].key, key, sizeof key);
			wrong += map_set(map, str_of(values[k][next - 1].key),
					 &values[k][next - 1]) != old;
		}
		if (old != NULL)
			memset(old, 'x', sizeof values[k][0]);
		held[k] = next;
		void *now = next == 0 ? NULL : &values[k][next - 1];
		wrong += map_find(map, str_of(key)) != now;
	}
	struct str key;
	void *value;
	for (size_t i = 0; map_next(map, &i, &key, &value);)
		wrong += (const void *)key.data != value;
	CHECK_INT(c, "a borrowing map agrees with the oracle", wrong, 0);
	CHECK(c, "empty key without memory",
	      map_set(map, (struct str){ NULL, 0 }, &wrong) == NULL &&
		      map_find(map, STR("")) == &wrong);
	map_free(map);
}

int main(void)
{
	struct check c = { 0 };
	test_arena(&c);
	test_buf(&c);
	test_map(&c);
	test_map_borrowing(&c);
	return check_done(&c);
}

// SPDX-License-Identifier: Apache-2.0
// Hash map from text to pointer, in order of insertion when iterated, so that two runs over the
// same input do the same. Keys are copied, unless the map borrows them; values are borrowed (the
// caller frees them). Memory errors at growth end the program: a map never holds what a request
// may grow without a limit of its own. Keys are below 4 GiB.
#pragma once

#include "base/str.h"

struct map;

struct map *map_new(uint64_t seed); // seed makes collisions unpredictable; 0 in tests
// Keys are borrowed: each stays where it is until it is removed, as a part of its value can.
struct map *map_new_borrowing(uint64_t seed);
void map_free(struct map *map); // NULL is allowed; frees no value
size_t map_count(const struct map *map);
void *map_find(const struct map *map, struct str key); // NULL when absent
// Sets and returns the value that was there before (NULL if none); a borrowed key is the new one.
void *map_set(struct map *map, struct str key, void *value);
// Removes and returns the value, NULL if absent. Keeps the order of the others.
void *map_remove(struct map *map, struct str key);

// Iteration: for (size_t i = 0; map_next(map, &i, &key, &value);) { ... }. Removing the current
// key while iterating is allowed; adding is not.
bool map_next(const struct map *map, size_t *i, struct str *ret_key, void **ret_value);

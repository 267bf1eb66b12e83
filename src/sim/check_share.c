// SPDX-License-Identifier: Apache-2.0
// The checker's own books of shares: no GPU is given out beyond what it is, nor whole and in
// shares at once, and every container gets what it asked for, of one GPU.
#include "sim/sim.h"

#include <stdlib.h>

enum { ROWS_FIRST = 64 };

struct row { // a line of a plan that holds
	struct str uuid;
	const struct sim_pod *pod;
	struct share share;
};

struct share_books {
	struct map *devices; // uuid -> memory in MiB, one more
	struct row *rows;
	size_t count, room;
};

struct share_books *share_books_new(void)
{
	struct share_books *books = calloc(1, sizeof *books);
	ASSERT(books != NULL);
	books->devices = map_new(0);
	return books;
}

void share_books_free(struct share_books *books)
{
	map_free(books->devices);
	free(books->rows);
	free(books);
}

void share_books_devices(struct share_books *books, const struct sched_device_in *devices,
			 size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)map_set(books->devices, devices[i].uuid,
			      (void *)(uintptr_t)(devices[i].memory_mib + 1));
}

static void add(struct share_books *books, const struct row *row)
{
	if (books->count == books->room) {
		books->room = books->room == 0 ? ROWS_FIRST : 2 * books->room;
		books->rows = realloc(books->rows, books->room * sizeof *row);
		ASSERT(books->rows != NULL);
	}
	books->rows[books->count++] = *row;
}

static struct share given(const struct share_books *books, struct str uuid)
{
	struct share sum = { 0 };
	for (size_t i = 0; i < books->count; i++) {
		if (str_eq(books->rows[i].uuid, uuid))
			share_add(&sum, &books->rows[i].share);
	}
	return sum;
}

bool share_books_has(const struct share_books *books, struct str uuid)
{
	struct share sum = given(books, uuid);
	return sum.milli > 0 || sum.memory_mib > 0;
}

// What the grants give a container, which is of one GPU.
static bool sum_up(const struct sched_decision *bind, struct str container, struct share *ret_sum,
		   struct str *ret_uuid)
{
	*ret_sum = (struct share){ 0 };
	*ret_uuid = STR("");
	for (size_t i = 0; i < bind->grant_count; i++) {
		const struct sched_grant *grant = &bind->grants[i];
		struct share part = { grant->milli, grant->memory_mib };
		if (grant->resource.len == 0 || !str_eq(grant->container, container))
			continue;
		if (ret_uuid->len > 0 && !str_eq(*ret_uuid, grant->uuid))
			return false;
		share_add(ret_sum, &part);
		*ret_uuid = grant->uuid;
	}
	return true;
}

const char *share_books_take(struct share_books *books, const struct sim_pod *pod,
			     const struct sched_decision *bind)
{
	const struct sched_spec *spec = pod->in.spec;
	for (size_t i = 0; i < spec->share_count; i++) {
		const struct sched_share_ask *ask = &spec->shares[i];
		struct row row = { .pod = pod };
		if (!sum_up(bind, ask->container, &row.share, &row.uuid))
			return "a container was given shares of two GPUs";
		const void *kept = map_find(books->devices, row.uuid);
		if (kept == NULL)
			return "a share of a GPU that is not there was given";
		const struct share whole = share_whole((int64_t)(uintptr_t)kept - 1);
		struct share wanted = share_of(&ask->share, whole.memory_mib);
		if (row.share.milli != wanted.milli || row.share.memory_mib != wanted.memory_mib)
			return "a container was given another share than it asked for";
		add(books, &row);
		struct share sum = given(books, row.uuid);
		if (!share_fits(&sum, &whole))
			return "more of a GPU was given than there is";
	}
	return NULL;
}

void share_books_release(struct share_books *books, const struct sim_pod *pod)
{
	size_t kept = 0;
	for (size_t i = 0; i < books->count; i++) {
		if (books->rows[i].pod != pod)
			books->rows[kept++] = books->rows[i];
	}
	books->count = kept;
}

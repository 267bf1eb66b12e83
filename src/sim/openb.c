// SPDX-License-Identifier: Apache-2.0
#include "sim/openb.h"

#include <stddef.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 16, MILLI = 1000 };
static const int64_t CPU_MILLI_MAX = INT64_C(1) << 31, MEMORY_MIB_MAX = INT64_C(1) << 40;

struct table { // being read line by line
	struct openb_file file;
	struct str rest;
	size_t line;
	struct str columns[COLUMNS_MAX];
	size_t column_count, wanted_count;
};

static err_status refuse(const struct table *table, struct err *err, const char *text)
{
	return err_set(err, ERR_INVALID, "%s:%zu: %s", table->file.name, table->line, text);
}

static bool next_line(struct table *table, struct str *ret_line)
{
	struct str line;
	while (str_split_next(&table->rest, '\n', &line)) {
		table->line++;
		*ret_line = str_trim(line);
		if (ret_line->len > 0)
			return true;
	}
	return false;
}

static size_t split(struct table *table, struct str line)
{
	struct str part;
	table->column_count = 0;
	while (table->column_count < COLUMNS_MAX && str_split_next(&line, ',', &part))
		table->columns[table->column_count++] = part;
	if (line.len > 0)
		return COLUMNS_MAX + 1;
	return table->column_count;
}

static size_t count_lines(struct str text)
{
	size_t lines = 1;
	for (size_t i = 0; (i = str_find_byte(text, '\n', i)) != SIZE_MAX; i++)
		lines++;
	return lines;
}

static err_status open_table(struct table *table, struct openb_file file, const char *long_head,
			     const char *short_head, struct err *err)
{
	struct str line;
	*table = (struct table){ .file = file, .rest = file.text };
	if (!next_line(table, &line))
		return err_set(err, ERR_INVALID, "%s: empty; the first line must be %s", file.name,
			       short_head);
	if (!str_eq_c(line, long_head) && !str_eq_c(line, short_head))
		return err_set(err, ERR_INVALID, "%s:1: the first line must be %s", file.name,
			       short_head);
	table->wanted_count = split(table, line);
	return ERR_OK;
}

static err_status next_row(struct table *table, bool *ret_has, struct err *err)
{
	struct str line;
	*ret_has = false;
	if (!next_line(table, &line))
		return ERR_OK;
	if (split(table, line) != table->wanted_count)
		return err_set(err, ERR_INVALID, "%s:%zu: write %zu columns, as in the first line",
			       table->file.name, table->line, table->wanted_count);
	if (table->columns[0].len == 0 || table->columns[0].len > 253)
		return refuse(table, err, "give a name of 1 to 253 bytes in the first column");
	*ret_has = true;
	return ERR_OK;
}

static err_status read_number(const struct table *table, size_t column, int64_t max,
			      int64_t *ret_value, struct err *err)
{
	int64_t value;
	if (!str_to_i64(table->columns[column], &value) || value < 0 || value > max)
		return err_set(err, ERR_INVALID,
			       "%s:%zu: column %zu is \"" STR_FMT
			       "\"; write a whole number from 0 to %lld",
			       table->file.name, table->line, column + 1,
			       STR_ARG(str_slice(table->columns[column], 0, 40)), (long long)max);
	*ret_value = value;
	return ERR_OK;
}

static err_status read_node(const struct table *table, void *row, struct err *err)
{
	struct openb_node *node = row;
	int64_t gpus = 0;
	node->name = table->columns[0];
	node->model = table->columns[4];
	node->line = table->line;
	if (read_number(table, 1, CPU_MILLI_MAX, &node->cpu_milli, err) != ERR_OK ||
	    read_number(table, 2, MEMORY_MIB_MAX, &node->memory_mib, err) != ERR_OK ||
	    read_number(table, 3, OPENB_GPUS_MAX, &gpus, err) != ERR_OK)
		return err->status;
	node->gpu_count = (uint32_t)gpus;
	if (gpus > 0 && node->model.len == 0)
		return refuse(table, err, "name the model of the node's GPUs in column 5");
	return ERR_OK;
}

static err_status read_pod(const struct table *table, void *row, struct err *err)
{
	struct openb_pod *pod = row;
	int64_t gpus = 0, milli = 0;
	pod->name = table->columns[0];
	pod->line = table->line;
	pod->models = table->wanted_count > 5 ? table->columns[5] : STR("");
	if (read_number(table, 1, CPU_MILLI_MAX, &pod->cpu_milli, err) != ERR_OK ||
	    read_number(table, 2, MEMORY_MIB_MAX, &pod->memory_mib, err) != ERR_OK ||
	    read_number(table, 3, OPENB_GPUS_MAX, &gpus, err) != ERR_OK ||
	    read_number(table, 4, MILLI, &milli, err) != ERR_OK)
		return err->status;
	if ((gpus == 0) != (milli == 0))
		return refuse(table, err, "give both num_gpu and gpu_milli, or 0 for both");
	if (gpus > 1 && milli != MILLI)
		return refuse(table, err, "gpu_milli must be 1000 with more than one GPU");
	pod->gpu_count = (int32_t)gpus;
	pod->gpu_milli = (int32_t)milli;
	return ERR_OK;
}

struct list { // of rows that begin with their name
	const char *none, *too_many;
	const char *long_head, *short_head; // accepted first lines
	size_t row_bytes, line_at, max;
	err_status (*read)(const struct table *table, void *row, struct err *err);
};

static int compare_names(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static err_status read_rows(struct table *table, const struct list *list, char *rows, size_t cap,
			    size_t *ret_count, struct err *err)
{
	size_t count = 0;
	for (bool has;;) {
		if (next_row(table, &has, err) != ERR_OK)
			return err->status;
		if (!has)
			break;
		if (count == cap)
			return refuse(table, err, list->too_many);
		if (list->read(table, rows + count++ * list->row_bytes, err) != ERR_OK)
			return err->status;
	}
	*ret_count = count;
	return count == 0 ? refuse(table, err, list->none) : ERR_OK;
}

// Rows by name, in the arena.
static err_status parse_rows(struct arena *arena, struct openb_file file, const struct list *list,
			     void **ret_rows, size_t *ret_count, struct err *err)
{
	struct table table;
	size_t cap = min_size(count_lines(file.text), list->max), count;
	if (open_table(&table, file, list->long_head, list->short_head, err) != ERR_OK)
		return err->status;
	char *rows = arena_alloc_array(arena, cap, list->row_bytes);
	if (rows == NULL)
		return err_set(err, ERR_LIMIT, "%s: no memory", file.name);
	if (read_rows(&table, list, rows, cap, &count, err) != ERR_OK)
		return err->status;
	qsort(rows, count, list->row_bytes, compare_names);
	for (size_t i = 1; i < count; i++) {
		const char *row = rows + i * list->row_bytes;
		size_t line;
		memcpy(&line, row + list->line_at, sizeof line);
		if (compare_names(row - list->row_bytes, row) == 0)
			return err_set(err, ERR_INVALID,
				       "%s:%zu: this name is there twice; names must differ",
				       file.name, line);
	}
	*ret_rows = rows;
	*ret_count = count;
	return ERR_OK;
}

err_status openb_nodes_parse(struct arena *arena, struct openb_file file, struct openb_nodes *ret,
			     struct err *err)
{
	static const struct list NODES = {
		.none = "no nodes; add one a line",
		.too_many = "more nodes than can be read; split the list",
		.long_head = "sn,cpu_milli,memory_mib,gpu,model",
		.short_head = "sn,cpu_milli,memory_mib,gpu,model",
		.row_bytes = sizeof(struct openb_node),
		.line_at = offsetof(struct openb_node, line),
		.max = OPENB_NODES_MAX,
		.read = read_node,
	};
	void *rows;
	size_t count;
	_Static_assert(offsetof(struct openb_node, name) == 0, "rows begin with their name");
	if (parse_rows(arena, file, &NODES, &rows, &count, err) != ERR_OK)
		return err->status;
	*ret = (struct openb_nodes){ rows, count };
	return ERR_OK;
}

err_status openb_pods_parse(struct arena *arena, struct openb_file file, struct openb_pods *ret,
			    struct err *err)
{
	static const struct list PODS = {
		.none = "no pods; add one a line",
		.too_many = "more pods than can be read; split the list",
		.long_head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
			     "creation_time,deletion_time,scheduled_time",
		.short_head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli",
		.row_bytes = sizeof(struct openb_pod),
		.line_at = offsetof(struct openb_pod, line),
		.max = OPENB_PODS_MAX,
		.read = read_pod,
	};
	void *rows;
	size_t count;
	_Static_assert(offsetof(struct openb_pod, name) == 0, "rows begin with their name");
	if (parse_rows(arena, file, &PODS, &rows, &count, err) != ERR_OK)
		return err->status;
	*ret = (struct openb_pods){ rows, count };
	return ERR_OK;
}

int64_t openb_gpu_milli(const struct openb_pod *pod)
{
	return (int64_t)pod->gpu_count * pod->gpu_milli;
}

err_status openb_order_parse(struct arena *arena, struct openb_file file,
			     const struct openb_pods *pods, struct openb_order *ret,
			     struct err *err)
{
	struct table table = { .file = file, .rest = file.text };
	size_t cap = min_size(count_lines(file.text), 2 * (size_t)OPENB_PODS_MAX), count = 0;
	uint32_t *order = ARENA_ARRAY(arena, uint32_t, cap);
	if (order == NULL)
		return err_set(err, ERR_LIMIT, "%s: no memory", file.name);
	for (struct str line; next_line(&table, &line);) {
		const struct openb_pod key = { .name = line };
		const struct openb_pod *pod =
			bsearch(&key, pods->items, pods->count, sizeof key, compare_names);
		if (pod == NULL)
			return refuse(&table, err, "the list of pods has no pod of this name");
		if (count == cap)
			return refuse(&table, err, "more lines than can be read");
		order[count++] = (uint32_t)(pod - pods->items);
	}
	ret->pods = order;
	ret->count = count;
	return ERR_OK;
}

err_status openb_ranks_parse(struct arena *arena, struct openb_file file, size_t node_count,
			     uint32_t **ret_ranks, struct err *err)
{
	struct table table = { .file = file, .rest = file.text };
	uint32_t *ranks = ARENA_ARRAY(arena, uint32_t, node_count);
	bool *is_taken = ARENA_ARRAY(arena, bool, node_count);
	size_t count = 0;
	if (ranks == NULL || is_taken == NULL)
		return err_set(err, ERR_LIMIT, "%s: no memory", file.name);
	for (struct str line; next_line(&table, &line);) {
		uint64_t rank;
		if (!str_to_u64(line, &rank) || rank >= node_count || is_taken[rank] ||
		    count == node_count)
			return err_set(err, ERR_INVALID,
				       "%s:%zu: write each number from 0 to %zu once, one a line",
				       file.name, table.line, node_count - 1);
		is_taken[rank] = true;
		ranks[count++] = (uint32_t)rank;
	}
	if (count < node_count)
		return err_set(err, ERR_INVALID, "%s: %zu ranks for %zu nodes; write one a node",
			       file.name, count, node_count);
	*ret_ranks = ranks;
	return ERR_OK;
}

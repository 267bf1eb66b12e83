// SPDX-License-Identifier: Apache-2.0
#include "gpu/compat.h"

#include "gpu/compat_table.h"

#include <inttypes.h>
#include <stdio.h>

enum { VERSION_PARTS = 4, PART_MAX = 1000000 };

struct row {
	compat_component component;
	const char *from, *below; // "" is no bound
	compat_level level;
	const char *code, *text, *source;
};

static const struct row rows[] = {
#define ROW(component, from, below, level, code, text, source)                                     \
	{ COMPAT_##component, from, below, COMPAT_##level, code, text, source },
	COMPAT_ROWS(ROW)
#undef ROW
};

static const struct {
	const char *cuda, *driver;
} cudas[] = {
#define PAIR(cuda, driver) { cuda, driver },
	COMPAT_CUDA(PAIR)
#undef PAIR
};

static const struct {
	uint32_t major, minor;
	const char *driver;
} boards[] = {
#define BOARD(major, minor, driver) { major, minor, driver },
	COMPAT_BOARDS(BOARD)
#undef BOARD
};

static const char *const component_names[COMPAT_COMPONENT_COUNT] = { "driver", "cuda", "kubernetes",
								     "containerd",
								     "container-toolkit" };

const char *compat_component_name(compat_component component)
{
	ASSERT(component < COMPAT_COMPONENT_COUNT);
	return component_names[component];
}

const char *compat_level_name(compat_level level)
{
	return level == COMPAT_ERROR ? "error" : "warning";
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool compat_is_version(struct str text)
{
	size_t at = text.len > 0 && text.data[0] == 'v' ? 1 : 0;
	return at < text.len && is_digit(text.data[at]);
}

static void parse(struct str text, uint32_t out[VERSION_PARTS])
{
	size_t at = text.len > 0 && text.data[0] == 'v' ? 1 : 0, part = 0;
	memset(out, 0, VERSION_PARTS * sizeof out[0]);
	for (; at < text.len && part < VERSION_PARTS; at++) {
		char c = text.data[at];
		if (c == '.')
			part++;
		else if (!is_digit(c))
			return;
		else if (out[part] < PART_MAX)
			out[part] = out[part] * 10 + (uint32_t)(c - '0');
	}
}

int compat_version_cmp(struct str a, struct str b)
{
	uint32_t left[VERSION_PARTS], right[VERSION_PARTS];
	parse(a, left);
	parse(b, right);
	for (size_t i = 0; i < VERSION_PARTS; i++) {
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	}
	return 0;
}

static struct compat_finding *add(struct compat_finding *ret, size_t *count)
{
	return *count < COMPAT_FINDINGS_MAX ? &ret[(*count)++] : NULL;
}

static void check_rows(compat_component component, struct str version, struct compat_finding *ret,
		       size_t *count)
{
	if (!compat_is_version(version))
		return;
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		const struct row *row = &rows[i];
		bool holds = row->component == component &&
			     (row->from[0] == '\0' ||
			      compat_version_cmp(version, str_of(row->from)) >= 0) &&
			     (row->below[0] == '\0' ||
			      compat_version_cmp(version, str_of(row->below)) < 0);
		struct compat_finding *finding = holds ? add(ret, count) : NULL;
		if (finding == NULL)
			continue;
		*finding = (struct compat_finding){ .component = component,
						    .level = row->level,
						    .code = row->code,
						    .source = row->source };
		(void)snprintf(finding->version, sizeof finding->version, "%.*s",
			       (int)min_size(version.len, 40), version.data);
		(void)snprintf(finding->text, sizeof finding->text, "%s", row->text);
	}
}

// A driver that tells a newer CUDA than its branch has: library and kernel module do not match.
static void check_cuda(const struct compat_facts *facts, struct compat_finding *ret, size_t *count)
{
	char cuda[24];
	const char *needed = NULL;
	(void)snprintf(cuda, sizeof cuda, "%" PRIu32 ".%" PRIu32, facts->cuda / 1000,
		       facts->cuda % 1000 / 10);
	for (size_t i = 0; i < ARRAY_COUNT(cudas); i++) {
		if (compat_version_cmp(str_of(cudas[i].cuda), str_of(cuda)) <= 0)
			needed = cudas[i].driver;
	}
	if (facts->cuda == 0 || needed == NULL || !compat_is_version(str_of(facts->driver)) ||
	    compat_version_cmp(str_of(facts->driver), str_of(needed)) >= 0)
		return;
	struct compat_finding *finding = add(ret, count);
	if (finding == NULL)
		return;
	*finding = (struct compat_finding){ .component = COMPAT_CUDA,
					    .level = COMPAT_ERROR,
					    .code = "DriverBelowCUDA",
					    .source = CUDA_NOTES };
	(void)snprintf(finding->version, sizeof finding->version, "%s", cuda);
	(void)snprintf(finding->text, sizeof finding->text,
		       "CUDA %s comes with driver %s or newer, not with %.40s", cuda, needed,
		       facts->driver);
}

static void check_boards(const struct compat_facts *facts, struct compat_finding *ret,
			 size_t *count)
{
	if (!compat_is_version(str_of(facts->driver)))
		return;
	for (size_t i = 0; i < ARRAY_COUNT(boards); i++) {
		const struct gpu_info *gpu = NULL;
		for (size_t j = 0; j < facts->gpu_count && gpu == NULL; j++) {
			if (facts->gpus[j]->compute_major == boards[i].major &&
			    facts->gpus[j]->compute_minor == boards[i].minor)
				gpu = facts->gpus[j];
		}
		if (gpu == NULL ||
		    compat_version_cmp(str_of(facts->driver), str_of(boards[i].driver)) >= 0)
			continue;
		struct compat_finding *finding = add(ret, count);
		if (finding == NULL)
			return;
		*finding = (struct compat_finding){ .component = COMPAT_DRIVER,
						    .level = COMPAT_ERROR,
						    .code = "DriverBelowBoard",
						    .source = CUDA_NOTES };
		(void)snprintf(finding->version, sizeof finding->version, "%.40s", facts->driver);
		(void)snprintf(finding->text, sizeof finding->text,
			       "%.60s needs driver %s or newer", gpu->model, boards[i].driver);
	}
}

size_t compat_check(const struct compat_facts *facts,
		    struct compat_finding ret[COMPAT_FINDINGS_MAX])
{
	static const char containerd[] = "containerd://";
	struct str runtime = str_of(facts->runtime);
	size_t count = 0;
	check_rows(COMPAT_DRIVER, str_of(facts->driver), ret, &count);
	check_boards(facts, ret, &count);
	check_cuda(facts, ret, &count);
	check_rows(COMPAT_KUBERNETES, str_of(facts->kubelet), ret, &count);
	if (str_starts(runtime, str_of(containerd)))
		check_rows(COMPAT_CONTAINERD,
			   str_slice(runtime, sizeof containerd - 1, runtime.len), ret, &count);
	check_rows(COMPAT_TOOLKIT, str_of(facts->toolkit), ret, &count);
	return count;
}

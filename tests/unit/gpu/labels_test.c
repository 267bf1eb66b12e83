// SPDX-License-Identifier: Apache-2.0
// Labels of every board and of nodes that are shared, mixed or in instances, against golden files.
// argv: folder of boards, folder of golden files.
#include "base/json.h"
#include "check.h"
#include "gpu/labels.h"

#include <dirent.h>
#include <stdlib.h>

enum { FILE_MAX_BYTES = 64 * 1024, NODE_GPUS = 8 };

struct node {
	struct gpu_info infos[NODE_GPUS];
	struct gpu_label_gpu gpus[NODE_GPUS];
	struct gpu_label_mig migs[NODE_GPUS * 7];
	struct gpu_label_facts facts;
};

static const char *boards_dir, *golden_dir;

static struct str read_file(const char *dir, const char *name, const char *suffix,
			    char out[FILE_MAX_BYTES])
{
	char path[600];
	(void)snprintf(path, sizeof path, "%s/%s%s", dir, name, suffix);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return STR("");
	size_t len = fread(out, 1, FILE_MAX_BYTES - 1, file);
	(void)fclose(file);
	return (struct str){ out, len };
}

static void add_board(struct node *node, const char *board, size_t count)
{
	static char text[FILE_MAX_BYTES];
	AUTO(json_decrefp) json_t *root = NULL;
	struct err err = { 0 };
	if (json_parse(read_file(boards_dir, board, ".json", text), &root, &err) != ERR_OK) {
		printf("%s: %s\n", board, err.text);
		abort();
	}
	for (size_t i = 0; i < count; i++) {
		size_t at = node->facts.gpu_count++;
		struct gpu_info *info = &node->infos[at];
		*info = (struct gpu_info){
			.index = (uint32_t)at,
			.minor = (uint32_t)at,
			.compute_major = (uint32_t)json_int(root, "compute_major.value", 0),
			.compute_minor = (uint32_t)json_int(root, "compute_minor.value", 0),
			.memory_bytes = (uint64_t)json_int(root, "memory_mib.value", 0) << 20,
			.numa_node = -1,
			.pci_class = 0x030200,
			.mig_capable = json_bool(root, "is_mig_capable.value", false),
		};
		(void)snprintf(info->uuid, sizeof info->uuid, "GPU-%zu", at);
		(void)snprintf(info->model, sizeof info->model, STR_FMT,
			       STR_ARG(json_text(root, "name.value")));
		node->gpus[at] = (struct gpu_label_gpu){ .info = info };
	}
}

static void add_migs(struct node *node, size_t gpu, const char *profile, size_t count)
{
	bool is_large = strcmp(profile, "3g.40gb") == 0;
	node->infos[gpu].mig_enabled = true;
	for (size_t i = 0; i < count; i++) {
		struct gpu_label_mig *mig = &node->migs[node->facts.mig_count++];
		*mig = (struct gpu_label_mig){ .parent = &node->infos[gpu],
					       .memory_mib = is_large ? 40192 : 9856,
					       .multiprocessors = is_large ? 42 : 14,
					       .gi_slices = is_large ? 3 : 1,
					       .ci_slices = is_large ? 3 : 1,
					       .copy_engines = is_large ? 3 : 1,
					       .decoders = is_large ? 2 : 0 };
		(void)snprintf(mig->profile, sizeof mig->profile, "%s", profile);
	}
}

static void set_up(struct node *node)
{
	*node = (struct node){ .facts = { .driver_version = "570.86.15",
					  .cuda_version = 12080,
					  .machine = "PowerEdge XE9680\n",
					  .timestamp_s = 1767225600 } };
	node->facts.gpus = node->gpus;
	node->facts.migs = node->migs;
}

static int by_name(const void *left, const void *right)
{
	const struct gpu_label *a = left, *b = right;
	return strcmp(a->name, b->name);
}

static struct str text_of(const struct node *node, char out[FILE_MAX_BYTES])
{
	static struct gpu_labels labels;
	size_t len = 0;
	gpu_labels_make(&node->facts, &labels);
	qsort(labels.items, labels.count, sizeof labels.items[0], by_name);
	for (size_t i = 0; i < labels.count; i++)
		len += (size_t)snprintf(out + len, FILE_MAX_BYTES - len, "nvidia.com/%s=%s\n",
					labels.items[i].name, labels.items[i].value);
	return (struct str){ out, len };
}

static void reverse(struct node *node)
{
	for (size_t i = 0; i < node->facts.gpu_count / 2; i++) {
		size_t j = node->facts.gpu_count - 1 - i;
		struct gpu_label_gpu moved = node->gpus[i];
		node->gpus[i] = node->gpus[j];
		node->gpus[j] = moved;
	}
	for (size_t i = 0; i < node->facts.mig_count / 2; i++) {
		size_t j = node->facts.mig_count - 1 - i;
		struct gpu_label_mig moved = node->migs[i];
		node->migs[i] = node->migs[j];
		node->migs[j] = moved;
	}
}

static void check_golden(struct check *c, struct node *node, const char *name)
{
	static char got[FILE_MAX_BYTES], want[FILE_MAX_BYTES];
	struct str wanted = read_file(golden_dir, name, ".txt", want);
	want[wanted.len] = '\0';
	CHECK_STR(c, name, text_of(node, got), want);
	// Another order of enumeration, the same labels.
	reverse(node);
	CHECK_STR(c, name, text_of(node, got), want);
}

static void check_boards(struct check *c)
{
	static struct node node;
	struct dirent *entry;
	DIR *dir = opendir(boards_dir);
	if (dir == NULL)
		abort();
	while ((entry = readdir(dir)) != NULL) {
		struct str name = str_of(entry->d_name);
		char board[200];
		if (!str_ends(name, STR(".json")))
			continue;
		(void)snprintf(board, sizeof board, "%.*s", (int)name.len - 5, name.data);
		set_up(&node);
		add_board(&node, board, NODE_GPUS);
		check_golden(c, &node, board);
	}
	(void)closedir(dir);
}

static void set_sharing(struct node *node, gpu_sharing sharing, uint32_t replicas, bool is_renamed)
{
	node->facts.sharing = sharing;
	for (size_t i = 0; i < node->facts.gpu_count; i++) {
		node->gpus[i].replicas = replicas;
		node->gpus[i].is_renamed = is_renamed;
	}
}

static void check_sharing(struct check *c)
{
	static struct node node;
	set_up(&node);
	add_board(&node, "L40S", 4);
	set_sharing(&node, GPU_SHARING_TIME_SLICING, 10, false);
	check_golden(c, &node, "time-slicing");
	set_sharing(&node, GPU_SHARING_TIME_SLICING, 10, true);
	check_golden(c, &node, "time-slicing-renamed");
	set_sharing(&node, GPU_SHARING_MPS, 4, false);
	check_golden(c, &node, "mps");
	// Different counts on one node: the smaller holds for all.
	set_sharing(&node, GPU_SHARING_TIME_SLICING, 10, false);
	node.gpus[2].replicas = 4;
	check_golden(c, &node, "time-slicing-uneven");
}

static void check_mixed(struct check *c)
{
	static struct node node;
	set_up(&node);
	add_board(&node, "T4", 2);
	add_board(&node, "A100-SXM4-80GB", 4);
	add_board(&node, "L40S", 2);
	for (size_t i = 0; i < 2; i++)
		node.infos[i].pci_class = 0x030000;
	check_golden(c, &node, "mixed-models");
	set_up(&node);
	node.facts.machine = "";
	node.facts.timestamp_s = 0;
	add_board(&node, "H100-SXM5-80GB", 2);
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(node.infos[i].clique, sizeof node.infos[i].clique, "%s",
			       "1b2c3d4e-0000-4000-8000-112233445566.3");
		node.infos[i].pci_class = 0;
	}
	check_golden(c, &node, "fabric");
}

static void check_migs(struct check *c)
{
	static struct node node;
	for (int mode = 0; mode < 4; mode++) {
		static const char *const names[] = { "mig-single", "mig-mixed", "mig-invalid",
						     "mig-none" };
		set_up(&node);
		add_board(&node, "A100-SXM4-80GB", 2);
		add_migs(&node, 0, "1g.10gb", 7);
		if (mode == 0)
			add_migs(&node, 1, "1g.10gb", 7);
		if (mode == 1) {
			add_migs(&node, 1, "1g.10gb+me", 1);
			add_migs(&node, 1, "3g.40gb", 1);
		}
		node.facts.mig = mode == 1   ? GPU_MIG_MIXED
				 : mode == 3 ? GPU_MIG_NONE
					     : GPU_MIG_SINGLE;
		check_golden(c, &node, names[mode]);
	}
}

static void check_odd(struct check *c)
{
	static struct node node;
	static struct gpu_labels labels;
	set_up(&node);
	node.facts.driver_version = "470.57";
	add_board(&node, "T4", 1);
	(void)snprintf(node.infos[0].model, sizeof node.infos[0].model, "  NVIDIA \"X\"/(tm) %.70s",
		       "0123456789012345678901234567890123456789012345678901234567890123456789");
	gpu_labels_make(&node.facts, &labels);
	CHECK_STR(c, "no revision",
		  str_of(gpu_labels_find(&labels, "cuda.driver-version.revision")), "");
	CHECK_STR(c, "odd model", str_of(gpu_labels_find(&labels, "gpu.product")),
		  "NVIDIA-Xtm-01234567890123456789012345678901234567890123456789");
	set_up(&node);
	gpu_labels_make(&node.facts, &labels);
	CHECK(c, "no GPU", gpu_labels_find(&labels, "gpu.product") == NULL);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	if (argc != 3)
		return 2;
	boards_dir = argv[1];
	golden_dir = argv[2];
	check_boards(&c);
	check_sharing(&c);
	check_mixed(&c);
	check_migs(&c);
	check_odd(&c);
	return check_done(&c);
}

// SPDX-License-Identifier: Apache-2.0
#include "emulator/answer.h"

#include "check.h"
#include "gpu/nvml_abi.h"

#include <stdlib.h>
#include <unistd.h>

#define S UINT64_C(1000000000)

static const char *board_dir;
static struct machine machine;
static struct wire_reply reply;

static bool write_file(const char *path, struct str text)
{
	FILE *file = fopen(path, "w");

	if (file == NULL)
		return false;
	bool good = fwrite(text.data, 1, text.len, file) == text.len;
	return fclose(file) == 0 && good;
}

static err_status load(const char *text, struct err *err)
{
	char path[] = "machine_test_XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || !write_file(path, str_of(text)))
		return ERR_IO;
	err_status status = machine_read(path, board_dir, S, &machine, err);
	close(fd);
	unlink(path);
	return status;
}

static void boards(struct check *c)
{
	static const struct {
		const char *id, *name;
		uint32_t memory_mib, power_limit_w, major, minor;
	} WANT[] = {
		{ "A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", 81920, 400, 8, 0 },
		{ "H100-SXM5-80GB", "NVIDIA H100 80GB HBM3", 81559, 700, 9, 0 },
		{ "L40S", "NVIDIA L40S", 46068, 350, 8, 9 },
	};

	for (size_t i = 0; i < ARRAY_COUNT(WANT); i++) {
		struct board board = { 0 };
		struct err err = { 0 };
		char path[512];
		snprintf(path, sizeof(path), "%s/%s.json", board_dir, WANT[i].id);
		CHECK_INT(c, path, board_read_file(path, &board, NULL, &err), ERR_OK);
		CHECK_STR(c, WANT[i].id, str_of(board.id), WANT[i].id);
		CHECK_STR(c, WANT[i].id, str_of(board.name), WANT[i].name);
		CHECK_INT(c, WANT[i].id, board.memory_mib, WANT[i].memory_mib);
		CHECK_INT(c, WANT[i].id, board.power_limit_w, WANT[i].power_limit_w);
		CHECK_INT(c, WANT[i].id, board.compute_major, WANT[i].major);
		CHECK_INT(c, WANT[i].id, board.compute_minor, WANT[i].minor);
	}
}

static void makes(struct check *c)
{
	char path[512], again[64] = "";
	const char *seeds[] = { "node1", "node2", "node1" };

	snprintf(path, sizeof(path), "%s/H100-SXM5-80GB.json", board_dir);
	for (size_t i = 0; i < ARRAY_COUNT(seeds); i++) {
		AUTO(buf_done) struct buf out = { 0 };
		struct machine_plan plan = { path, seeds[i], "570.86.15", "12.8", 8, 96 };
		struct err err = { 0 };
		CHECK_INT(c, "make", machine_make(&plan, &out, &err), ERR_OK);
		CHECK_INT(c, "load what was made", load(out.data, &err), ERR_OK);
		CHECK_INT(c, "count", machine_gpu_count(&machine), 8);
		CHECK_INT(c, "second socket", machine.gpus[4].numa, 1);
		for (uint32_t a = 0; a < 8; a++)
			for (uint32_t b = 0; b < a; b++)
				CHECK(c, "unique",
				      strcmp(machine.gpus[a].uuid, machine.gpus[b].uuid) != 0);
		if (i == 0)
			snprintf(again, sizeof(again), "%s", machine.gpus[7].uuid);
		CHECK(c, seeds[i], (strcmp(again, machine.gpus[7].uuid) == 0) == (i != 1));
	}
	struct machine_plan bad = { path, "x", "570", "twelve", 8, 96 };
	CHECK(c, "no CUDA version", machine_make(&bad, &(struct buf){ 0 }, NULL) != ERR_OK);
}

static const struct {
	const char *name, *text;
} BAD_FILES[] = {
	{ "no JSON", "gpus" },
	{ "no GPUs", "{}" },
	{ "unknown board", "{\"gpus\":[{\"board\":\"Z80\"}]}" },
	{ "a path for a board", "{\"gpus\":[{\"board\":\"../boards/L40S\"}]}" },
	{ "no board", "{\"gpus\":[{}]}" },
	{ "index out of order", "{\"gpus\":[{\"board\":\"L40S\",\"index\":1}]}" },
	{ "wrong address", "{\"gpus\":[{\"board\":\"L40S\",\"pci\":\"1A:00.0\"}]}" },
	{ "same UUID twice", "{\"gpus\":[{\"board\":\"L40S\",\"uuid\":\"GPU-1\"},"
			     "{\"board\":\"L40S\",\"uuid\":\"GPU-1\"}]}" },
	{ "no cpus", "{\"cpus\":0,\"gpus\":[]}" },
	{ "board without figures", "{\"boards\":{\"X\":{}},\"gpus\":[]}" },
	{ "key twice", "{\"gpus\":[],\"gpus\":[]}" },
};

static void refuses(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(BAD_FILES); i++) {
		struct err err = { 0 };
		CHECK(c, BAD_FILES[i].name, load(BAD_FILES[i].text, &err) != ERR_OK);
		CHECK(c, BAD_FILES[i].name, err.text[0] != 0);
	}
}

static err_status command(const char *line, uint64_t now_ns)
{
	struct control_command parsed;

	if (control_parse(str_of(line), &parsed, NULL) != ERR_OK)
		return ERR_INVALID;
	return machine_apply(&machine, &parsed, now_ns, NULL);
}

static uint32_t ask(enum wire_op op, uint32_t slot, const char *key, uint64_t now_ns)
{
	struct wire_request request = { .magic = WIRE_MAGIC, .op = op, .slot = slot };

	snprintf(request.key, sizeof(request.key), "%s", key);
	size_t size_bytes = answer_request(&machine, &request, now_ns, &reply);
	return size_bytes >= WIRE_REPLY_HEAD_BYTES ? reply.status : UINT32_MAX;
}

static void lives(struct check *c)
{
	struct err err = { 0 };
	uint32_t slot = 0;

	CHECK_INT(c, "load",
		  load("{\"gpus\":[{\"board\":\"L40S\"},{\"board\":\"L40S\"},"
		       "{\"board\":\"A100-SXM4-80GB\"}]}",
		       &err),
		  ERR_OK);
	CHECK_INT(c, "by index", ask(WIRE_FIND_INDEX, 2, "", S), NVML_SUCCESS);
	CHECK_STR(c, "by index", str_of(reply.body.gpu.name), "NVIDIA A100-SXM4-80GB");
	CHECK_INT(c, "by PCI", ask(WIRE_FIND_PCI, 0, "0000:32:00.0", S), NVML_SUCCESS);
	CHECK_INT(c, "by PCI", reply.body.gpu.slot, 1);
	CHECK_INT(c, "no such UUID", ask(WIRE_FIND_UUID, 0, "GPU-0", S), NVML_ERROR_NOT_FOUND);
	CHECK_INT(c, "no such index", ask(WIRE_FIND_INDEX, 3, "", S), NVML_ERROR_INVALID_ARGUMENT);
	CHECK_INT(c, "lost", command("lost 0", 2 * S), ERR_OK);
	CHECK_INT(c, "lost", ask(WIRE_GPU, 0, "", 3 * S), NVML_ERROR_GPU_IS_LOST);
	CHECK_INT(c, "others live", ask(WIRE_GPU, 1, "", 3 * S), NVML_SUCCESS);
	CHECK_INT(c, "idle for 2 s at 35 W", reply.body.gpu.energy_mj, 70000);
	CHECK_INT(c, "removed", command("remove 1", 3 * S), ERR_OK);
	CHECK_INT(c, "index moves up", ask(WIRE_FIND_INDEX, 1, "", 3 * S), NVML_SUCCESS);
	CHECK_INT(c, "slot stays", reply.body.gpu.slot, 2);
	CHECK_INT(c, "removed twice", command("remove 1", 3 * S), ERR_NOT_FOUND);
	CHECK_INT(c, "restored", command("restore 1", 4 * S), ERR_OK);
	CHECK_INT(c, "never there", command("restore 9", 4 * S), ERR_NOT_FOUND);
	err_status added = machine_add(&machine, "H100-SXM5-80GB", board_dir, 4 * S, &slot, &err);
	CHECK_INT(c, "added", added, ERR_OK);
	CHECK_INT(c, "added", slot, 3);
	CHECK_INT(c, "driver", command("driver 575.1", 5 * S), ERR_OK);
	CHECK_INT(c, "driver", ask(WIRE_GPU, 2, "", 7 * S), NVML_SUCCESS);
	CHECK_INT(c, "counts from zero", reply.body.gpu.energy_mj, 120000);
	CHECK_INT(c, "recovery", command("recovery 2 1", 5 * S), ERR_OK);
	CHECK_INT(c, "process", command("process 2 77 1000", 5 * S), ERR_OK);
	CHECK_INT(c, "too big", command("process 2 78 100000", 5 * S), ERR_LIMIT);
	CHECK_INT(c, "processes", ask(WIRE_PROCESSES, 2, "", 7 * S), NVML_SUCCESS);
	CHECK_INT(c, "processes", reply.count, 1);
	CHECK_INT(c, "process gone", command("process 2 77 0", 8 * S), ERR_OK);
	CHECK_INT(c, "initfail", command("initfail on", 8 * S), ERR_OK);
	CHECK_INT(c, "initfail", ask(WIRE_HELLO, 0, "", 8 * S), NVML_ERROR_DRIVER_NOT_LOADED);
	CHECK_INT(c, "system", ask(WIRE_SYSTEM, 0, "", 8 * S), NVML_SUCCESS);
	CHECK_STR(c, "system", str_of(reply.body.system.driver), "575.1");
	CHECK_INT(c, "count", reply.body.system.gpu_count, 4);
}

int main(void)
{
	struct check c = { 0 };

	board_dir = getenv("BOARDS");
	if (board_dir == NULL)
		board_dir = "emulator/boards";
	boards(&c);
	makes(&c);
	refuses(&c);
	lives(&c);
	return check_done(&c);
}

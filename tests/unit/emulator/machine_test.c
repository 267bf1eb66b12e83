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
		{ "T4", "Tesla T4", 15360, 70, 7, 5 },
		{ "A30", "NVIDIA A30", 24576, 165, 8, 0 },
		{ "A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", 40960, 400, 8, 0 },
		{ "H200", "NVIDIA H200", 143771, 700, 9, 0 },
		{ "B200", "NVIDIA B200", 183359, 1000, 10, 0 },
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

static void errors(struct check *c)
{
	const struct wire_errors *got = &reply.body.gpu.errors;

	CHECK_INT(c, "load", load("{\"gpus\":[{\"board\":\"T4\"},{\"board\":\"A30\"}]}", NULL),
		  ERR_OK);
	CHECK_INT(c, "ecc", command("ecc 1 corrected 3", S), ERR_OK);
	CHECK_INT(c, "ecc", command("ecc 1 uncorrected 1", S), ERR_OK);
	CHECK_INT(c, "rows", command("rows 1 2 1 1 1", S), ERR_OK);
	CHECK_INT(c, "Ampere has no pages", command("pages 1 2 1 1", S), ERR_INVALID);
	CHECK_INT(c, "Turing has no rows", command("rows 0 2 1 1 1", S), ERR_INVALID);
	CHECK_INT(c, "pages", command("pages 0 7 2 1", S), ERR_OK);
	CHECK_INT(c, "mode", command("ecc 0 off", S), ERR_OK);
	CHECK_INT(c, "T4", ask(WIRE_GPU, 0, "", S), NVML_SUCCESS);
	CHECK(c, "mode is pending", got->ecc_mode == 1 && got->ecc_mode_pending == 0);
	CHECK(c, "pages", got->pages[0] == 7 && got->pages[1] == 2 && got->pages_pending == 1);
	CHECK_INT(c, "A30", ask(WIRE_GPU, 1, "", S), NVML_SUCCESS);
	CHECK(c, "counts", got->ecc_volatile[0] == 3 && got->ecc_aggregate[1] == 1);
	CHECK(c, "rows", got->rows[0] == 2 && got->rows_pending == 1 && got->rows_failed == 1);
	CHECK_INT(c, "driver", command("driver 580.65.06", 2 * S), ERR_OK);
	CHECK_INT(c, "A30", ask(WIRE_GPU, 1, "", 2 * S), NVML_SUCCESS);
	CHECK(c, "volatile counts are gone",
	      got->ecc_volatile[0] == 0 && got->ecc_volatile[1] == 0);
	CHECK(c, "the others stay", got->ecc_aggregate[0] == 3 && got->rows[1] == 1);
	CHECK_INT(c, "nothing pending", got->rows_pending, 0);
	CHECK_INT(c, "T4", ask(WIRE_GPU, 0, "", 2 * S), NVML_SUCCESS);
	CHECK_INT(c, "mode in force", got->ecc_mode, 0);
	CHECK_INT(c, "no count while off", command("ecc 0 corrected 1", S), ERR_CONFLICT);
}

static void drivers(struct check *c)
{
	static const struct {
		const char *line;
		uint32_t cuda;
	} CASES[] = {
		{ "driver 535.129.03", 12020 }, { "driver 580.65.06", 13000 },
		{ "driver 999.1", 13000 },      { "driver 470.1 11.8", 11080 },
		{ "driver next", 11080 },
	};

	CHECK_INT(c, "load", load("{\"gpus\":[]}", NULL), ERR_OK);
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		CHECK_INT(c, CASES[i].line, command(CASES[i].line, S), ERR_OK);
		CHECK_INT(c, CASES[i].line, machine.cuda_version, CASES[i].cuda);
	}
}

static void bridges(struct check *c)
{
	CHECK_INT(c, "load",
		  load("{\"gpus\":[{\"board\":\"A30\"},{\"board\":\"A30\"},{\"board\":\"A30\"},"
		       "{\"board\":\"H200\"}]}",
		       NULL),
		  ERR_OK);
	CHECK_INT(c, "neighbours", machine_bridge_peer(&machine, 0), 1);
	CHECK_INT(c, "neighbours", machine_bridge_peer(&machine, 1), 0);
	CHECK_INT(c, "another board", machine_bridge_peer(&machine, 2), WIRE_NO_SLOT);
	CHECK_INT(c, "switches", machine_bridge_peer(&machine, 3), WIRE_NO_SLOT);
	CHECK_INT(c, "lost", command("lost 1", S), ERR_OK);
	CHECK_INT(c, "dark", machine_bridge_peer(&machine, 0), WIRE_NO_SLOT);
}

static uint32_t change(enum wire_op op, uint32_t slot, const uint32_t args[3], uint64_t now_ns)
{
	struct wire_request request = { .magic = WIRE_MAGIC, .op = op, .slot = slot };

	memcpy(request.args, args, 3 * sizeof(*args));
	size_t size_bytes = answer_request(&machine, &request, now_ns, &reply);
	return size_bytes >= WIRE_REPLY_HEAD_BYTES ? reply.status : UINT32_MAX;
}

#define ARGS(...) ((const uint32_t[3]){ __VA_ARGS__ })

static void migs(struct check *c)
{
	const struct wire_mig *got = &reply.body.mig;

	CHECK_INT(c, "load",
		  load("{\"gpus\":[{\"board\":\"A100-SXM4-80GB\"},{\"board\":\"H200\"},"
		       "{\"board\":\"L40S\"}]}",
		       NULL),
		  ERR_OK);
	CHECK_INT(c, "L40S", command("mig 2 on", S), ERR_INVALID);
	CHECK_INT(c, "L40S", change(WIRE_MIG_MODE, 2, ARGS(1), S), NVML_ERROR_NOT_SUPPORTED);
	CHECK_INT(c, "off", command("mig 0 create 1g.10gb", S), ERR_CONFLICT);
	CHECK_INT(c, "a process", command("process 0 77 1000", S), ERR_OK);
	CHECK_INT(c, "on", change(WIRE_MIG_MODE, 0, ARGS(1), S), NVML_SUCCESS);
	CHECK(c, "waits for it", got->mode == 0 && got->mode_pending == 1);
	CHECK_INT(c, "it ends", command("process 0 77 0", S), ERR_OK);
	CHECK_INT(c, "on", ask(WIRE_MIG, 0, "", S), NVML_SUCCESS);
	CHECK(c, "in force", got->mode == 1 && got->profile_count == 7);
	CHECK_INT(c, "whole GPU", command("process 0 77 1000", S), ERR_CONFLICT);
	CHECK_INT(c, "no mode", change(WIRE_MIG_MODE, 0, ARGS(2), S), NVML_ERROR_INVALID_ARGUMENT);
	CHECK_INT(c, "no profile", change(WIRE_GI_CREATE, 0, ARGS(99, WIRE_ANYWHERE), S),
		  NVML_ERROR_INVALID_ARGUMENT);
	CHECK_INT(c, "3g", change(WIRE_GI_CREATE, 0, ARGS(9, 4), S), NVML_SUCCESS);
	CHECK_INT(c, "3g", got->made, 2);
	CHECK_INT(c, "1c", change(WIRE_CI_CREATE, 0, ARGS(2, 0, WIRE_ANYWHERE), S), NVML_SUCCESS);
	CHECK_INT(c, "2c", change(WIRE_CI_CREATE, 0, ARGS(2, 1, WIRE_ANYWHERE), S),
		  NVML_ERROR_INSUFFICIENT_RESOURCES);
	CHECK_INT(c, "1c", change(WIRE_CI_CREATE, 0, ARGS(2, 0, 2), S), NVML_SUCCESS);
	CHECK(c, "two", got->gi_count == 1 && got->ci_count == 2 && got->cis[1].id == 1);
	CHECK_INT(c, "UUID", ask(WIRE_FIND_UUID, 0, machine.gpus[0].model.mig.cis[1].uuid, S),
		  NVML_SUCCESS);
	CHECK(c, "UUID", reply.body.gpu.gi == 2 && reply.body.gpu.ci == 1);
	CHECK_INT(c, "process", command("process 0 77 30000 2 0", S), ERR_OK);
	CHECK_INT(c, "memory is the instance's", command("process 0 78 20000 2 1", S), ERR_LIMIT);
	CHECK_INT(c, "process", command("process 0 78 10000 2 1", S), ERR_OK);
	CHECK_INT(c, "no such", command("process 0 78 1 2 2", S), ERR_NOT_FOUND);
	CHECK_INT(c, "used", change(WIRE_CI_DESTROY, 0, ARGS(2, 0), S), NVML_ERROR_IN_USE);
	CHECK_INT(c, "holds some", change(WIRE_GI_DESTROY, 0, ARGS(2), S), NVML_ERROR_IN_USE);
	CHECK_INT(c, "in use", command("mig 0 destroy all", S), ERR_CONFLICT);
	CHECK_INT(c, "in use", ask(WIRE_MIG, 0, "", S), NVML_SUCCESS);
	CHECK(c, "nothing changed", got->ci_count == 2 && got->gis[0].memory_used_mib == 40000);
	CHECK_INT(c, "others go", command("mig 0 create 1g.10gb", S), ERR_OK);
	CHECK_INT(c, "others go", command("mig 0 destroy 10", S), ERR_OK);
	CHECK_INT(c, "gone", command("mig 0 destroy 10", S), ERR_NOT_FOUND);
	CHECK_INT(c, "ends", command("process 0 77 0", S), ERR_OK);
	CHECK_INT(c, "off", command("mig 0 off", S), ERR_OK);
	CHECK_INT(c, "off", ask(WIRE_MIG, 0, "", S), NVML_SUCCESS);
	CHECK(c, "waits for the other", got->mode == 1 && got->mode_pending == 0);
	CHECK_INT(c, "ends", command("process 0 78 0", S), ERR_OK);
	CHECK_INT(c, "off", ask(WIRE_MIG, 0, "", S), NVML_SUCCESS);
	CHECK(c, "off", got->mode == 0 && got->gi_count == 0 && got->ci_count == 0);
}

static void mig_ends(struct check *c)
{
	const struct wire_mig *got = &reply.body.mig;

	for (uint32_t slot = 0; slot < 2; slot++) {
		char on[32], create[48];
		snprintf(on, sizeof(on), "mig %u on", slot);
		snprintf(create, sizeof(create), "mig %u create %s", slot,
			 slot == 0 ? "7g.80gb" : "7g.141gb");
		CHECK_INT(c, on, command(on, S), ERR_OK);
		CHECK_INT(c, create, command(create, S), ERR_OK);
		CHECK_INT(c, "full", command(create, S), ERR_LIMIT);
	}
	CHECK_INT(c, "process", command("process 0 5 100 0 0", S), ERR_OK);
	CHECK_INT(c, "driver", command("driver 580.65.06", S), ERR_OK);
	CHECK_INT(c, "A100", ask(WIRE_MIG, 0, "", S), NVML_SUCCESS);
	CHECK(c, "Ampere keeps the mode", got->mode == 1 && got->gi_count == 0);
	CHECK_INT(c, "H200", ask(WIRE_MIG, 1, "", S), NVML_SUCCESS);
	CHECK(c, "Hopper does not", got->mode == 0 && got->gi_count == 0);
	CHECK_INT(c, "processes", ask(WIRE_PROCESSES, 0, "", S), NVML_SUCCESS);
	CHECK_INT(c, "processes", reply.count, 0);
	CHECK_INT(c, "again", command("mig 0 create 7g.80gb", S), ERR_OK);
	CHECK_INT(c, "lost", command("lost 0", S), ERR_OK);
	CHECK_INT(c, "lost", change(WIRE_GI_DESTROY, 0, ARGS(0), S), NVML_ERROR_GPU_IS_LOST);
	CHECK_INT(c, "lost", command("mig 0 destroy all", S), ERR_UNAVAILABLE);
	CHECK_INT(c, "back", command("restore 0", S), ERR_OK);
	CHECK_INT(c, "back", ask(WIRE_MIG, 0, "", S), NVML_SUCCESS);
	CHECK(c, "a reset leaves no instance", got->mode == 1 && got->gi_count == 0);
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
	errors(&c);
	drivers(&c);
	bridges(&c);
	migs(&c);
	mig_ends(&c);
	return check_done(&c);
}

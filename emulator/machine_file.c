// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine.h"

#include "base/buf.h"
#include "emulator/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUSES_PER_DOMAIN = 8, BUS_FIRST = 0x1a, BUS_STEP = 0x18 };

static void identity(struct machine_gpu *gpu, const char *seed, uint32_t slot)
{
	identity_uuid("GPU", seed, slot, gpu->uuid);
	snprintf(gpu->serial, sizeof(gpu->serial), "1%012llu",
		 (unsigned long long)(identity_hash(seed, slot, 3) % UINT64_C(1000000000000)));
	gpu->minor = slot;
	gpu->pci_domain = slot / BUSES_PER_DOMAIN;
	gpu->pci_bus = BUS_FIRST + BUS_STEP * (slot % BUSES_PER_DOMAIN);
}

// The first half of the GPUs hangs off the first socket.
static uint32_t numa_of(uint32_t slot, uint32_t gpu_count, uint32_t numa_count)
{
	uint32_t per_node = (gpu_count + numa_count - 1) / numa_count;

	return per_node == 0 ? 0 : min_size(slot / per_node, numa_count - 1) & 0xff;
}

err_status machine_make(const struct machine_plan *plan, struct buf *out, struct err *err)
{
	enum { NUMA_COUNT = 2 };
	struct board board;
	json_t *board_json = NULL;
	uint32_t version = 0;

	if (plan->gpu_count == 0 || plan->gpu_count > WIRE_GPU_MAX)
		return err_set(err, ERR_INVALID, "count must be 1 to %d", WIRE_GPU_MAX);
	if (!control_cuda_version(str_of(plan->cuda), &version))
		return err_set(err, ERR_INVALID, "\"%s\" is no CUDA version such as 12.8",
			       plan->cuda);
	if (board_read_file(plan->board_path, &board, &board_json, err) != ERR_OK)
		return ERR_INVALID;
	json_t *gpus = json_array();
	for (uint32_t slot = 0; slot < plan->gpu_count; slot++) {
		struct machine_gpu gpu = { 0 };
		char bus_id[32];
		identity(&gpu, plan->seed, slot);
		machine_bus_id(&gpu, bus_id);
		json_array_append_new(
			gpus, json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:i}", "board", board.id,
					"uuid", gpu.uuid, "serial", gpu.serial, "index", (int)slot,
					"minor", (int)gpu.minor, "pci", bus_id, "numa",
					(int)numa_of(slot, plan->gpu_count, NUMA_COUNT)));
	}
	json_t *root = json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:{s:o}}", "driver", plan->driver,
				 "cuda", plan->cuda, "seed", plan->seed, "cpus",
				 (int)plan->cpu_count, "numa_nodes", NUMA_COUNT, "gpus", gpus,
				 "boards", board.id, board_json);
	char *text = root == NULL ? NULL : json_dumps(root, JSON_INDENT(1));
	json_decref(root);
	if (text == NULL)
		return err_set(err, ERR_INVALID, "seed and driver must be UTF-8");
	buf_put_c(out, text);
	buf_put_c(out, "\n");
	free(text);
	return buf_ok(out) ? ERR_OK : err_set(err, ERR_LIMIT, "no memory");
}

static struct board *board_known(struct machine *machine, const char *id)
{
	for (size_t i = 0; i < machine->board_count; i++)
		if (strcmp(machine->boards[i].id, id) == 0)
			return &machine->boards[i];
	return NULL;
}

static err_status board_get(struct machine *machine, const char *id, const char *board_dir,
			    struct board **ret_board, struct err *err)
{
	char path[512];

	*ret_board = board_known(machine, id);
	if (*ret_board != NULL)
		return ERR_OK;
	if (machine->board_count == MACHINE_BOARD_MAX)
		return err_set(err, ERR_LIMIT, "more than %d boards", MACHINE_BOARD_MAX);
	if (strchr(id, '/') != NULL || id[0] == '.' ||
	    snprintf(path, sizeof(path), "%s/%s.json", board_dir, id) >= (int)sizeof(path))
		return err_set(err, ERR_INVALID, "\"%.60s\" is no board's name", id);
	struct board *board = &machine->boards[machine->board_count];
	err_status status = board_read_file(path, board, NULL, err);
	if (status != ERR_OK)
		return status;
	machine->board_count++;
	*ret_board = board;
	return ERR_OK;
}

err_status machine_add(struct machine *machine, const char *board_id, const char *board_dir,
		       uint64_t now_ns, uint32_t *ret_slot, struct err *err)
{
	struct board *board = NULL;
	uint32_t slot = (uint32_t)machine->slot_count;

	if (slot == WIRE_GPU_MAX)
		return err_set(err, ERR_LIMIT, "all %d slots were used", WIRE_GPU_MAX);
	err_status status = board_get(machine, board_id, board_dir, &board, err);
	if (status != ERR_OK)
		return status;
	struct machine_gpu *gpu = &machine->gpus[slot];
	*gpu = (struct machine_gpu){ .is_present = true };
	identity(gpu, machine->seed, slot);
	gpu->numa = numa_of(slot, slot + 1, machine->numa_count);
	gpu->errors.ecc_mode = gpu->errors.ecc_mode_pending = board->has_ecc;
	model_init(&gpu->model, board, now_ns);
	machine->slot_count++;
	*ret_slot = slot;
	return ERR_OK;
}

static err_status get_text(const json_t *object, const char *key, char *ret, size_t size_bytes,
			   struct err *err)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (text == NULL)
		return ERR_OK; // the default that is there stays
	if (text[0] == 0 || strlen(text) >= size_bytes)
		return err_set(err, ERR_INVALID, "\"%s\" must have 1 to %zu bytes", key,
			       size_bytes - 1);
	memcpy(ret, text, strlen(text) + 1);
	return ERR_OK;
}

static err_status get_number(const json_t *object, const char *key, uint32_t max, uint32_t *ret,
			     struct err *err)
{
	const json_t *value = json_object_get(object, key);

	if (value == NULL)
		return ERR_OK;
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > max)
		return err_set(err, ERR_INVALID, "\"%s\" must be a number of 0 to %u", key, max);
	*ret = (uint32_t)json_integer_value(value);
	return ERR_OK;
}

// sscanf alone would take signs and blanks.
static bool is_pci(const char *text)
{
	static const char form[] = "xxxxxxxx:xx:xx.0";

	if (strlen(text) != strlen(form))
		return false;
	for (size_t i = 0; form[i] != 0; i++) {
		bool is_digit = strchr("0123456789abcdefABCDEF", text[i]) != NULL;
		if (form[i] == 'x' ? !is_digit : text[i] != form[i])
			return false;
	}
	return true;
}

static err_status read_pci(const json_t *object, struct machine_gpu *gpu, struct err *err)
{
	const char *text = json_string_value(json_object_get(object, "pci"));

	if (text == NULL)
		return ERR_OK;
	if (!is_pci(text) ||
	    sscanf(text, "%8x:%2x:%2x.0", &gpu->pci_domain, &gpu->pci_bus, &gpu->pci_device) != 3)
		return err_set(err, ERR_INVALID, "\"pci\" must be like 00000000:1A:00.0");
	return ERR_OK;
}

static err_status check_unique(const struct machine *machine, uint32_t slot, struct err *err)
{
	const struct machine_gpu *gpu = &machine->gpus[slot];

	for (uint32_t i = 0; i < slot; i++) {
		const struct machine_gpu *other = &machine->gpus[i];
		if (strcmp(other->uuid, gpu->uuid) == 0 || other->minor == gpu->minor)
			return err_set(err, ERR_CONFLICT, "has the UUID or minor number of GPU %u",
				       i);
		if (other->pci_domain == gpu->pci_domain && other->pci_bus == gpu->pci_bus &&
		    other->pci_device == gpu->pci_device)
			return err_set(err, ERR_CONFLICT, "has the PCI address of GPU %u", i);
	}
	return ERR_OK;
}

static err_status read_gpu(struct machine *machine, const json_t *object, const char *board_dir,
			   uint64_t now_ns, struct err *err)
{
	const char *id = json_string_value(json_object_get(object, "board"));
	uint32_t slot = 0, index = (uint32_t)machine->slot_count;

	if (id == NULL)
		return err_set(err, ERR_INVALID, "\"board\" is missing");
	if (get_number(object, "index", WIRE_GPU_MAX - 1, &index, err) != ERR_OK)
		return ERR_INVALID;
	if (index != machine->slot_count)
		return err_set(err, ERR_INVALID, "\"index\" must count from 0 in order");
	err_status status = machine_add(machine, id, board_dir, now_ns, &slot, err);
	if (status != ERR_OK)
		return status;
	struct machine_gpu *gpu = &machine->gpus[slot];
	if (get_text(object, "uuid", gpu->uuid, sizeof(gpu->uuid), err) != ERR_OK ||
	    get_text(object, "serial", gpu->serial, sizeof(gpu->serial), err) != ERR_OK ||
	    get_number(object, "minor", 254, &gpu->minor, err) != ERR_OK ||
	    get_number(object, "numa", machine->numa_count - 1, &gpu->numa, err) != ERR_OK ||
	    read_pci(object, gpu, err) != ERR_OK)
		return ERR_INVALID;
	return check_unique(machine, slot, err);
}

static err_status read_root(const json_t *root, struct machine *machine, struct err *err)
{
	char cuda[16] = "12.8";

	snprintf(machine->driver, sizeof(machine->driver), "570.86.15");
	snprintf(machine->seed, sizeof(machine->seed), "machine");
	machine->cpu_count = 96;
	machine->numa_count = 2;
	if (get_text(root, "driver", machine->driver, sizeof(machine->driver), err) != ERR_OK ||
	    get_text(root, "seed", machine->seed, sizeof(machine->seed), err) != ERR_OK ||
	    get_text(root, "cuda", cuda, sizeof(cuda), err) != ERR_OK ||
	    get_number(root, "cpus", 1024, &machine->cpu_count, err) != ERR_OK ||
	    get_number(root, "numa_nodes", 8, &machine->numa_count, err) != ERR_OK)
		return ERR_INVALID;
	if (machine->numa_count == 0 || machine->cpu_count < machine->numa_count)
		return err_set(err, ERR_INVALID, "\"cpus\" must not be below \"numa_nodes\" nor 0");
	if (!control_cuda_version(str_of(cuda), &machine->cuda_version))
		return err_set(err, ERR_INVALID, "\"cuda\" must be like 12.8");
	const char *id;
	json_t *object;
	json_object_foreach(json_object_get(root, "boards"), id, object)
	{
		if (machine->board_count == MACHINE_BOARD_MAX)
			return err_set(err, ERR_LIMIT, "more than %d boards", MACHINE_BOARD_MAX);
		if (board_read(object, &machine->boards[machine->board_count], err) != ERR_OK)
			return err_wrap(err, "board \"%.60s\"", id);
		machine->board_count++;
	}
	return ERR_OK;
}

err_status machine_read_json(const json_t *root, const char *board_dir, uint64_t now_ns,
			     struct machine *ret_machine, struct err *err)
{
	const json_t *gpus = json_object_get(root, "gpus");
	err_status status = ERR_OK;
	*ret_machine = (struct machine){ 0 };
	if (!json_is_array(gpus) || json_array_size(gpus) > WIRE_GPU_MAX)
		status = err_set(err, ERR_INVALID, "\"gpus\" must be a list of at most %d",
				 WIRE_GPU_MAX);
	if (status == ERR_OK)
		status = read_root(root, ret_machine, err);
	for (size_t i = 0; status == ERR_OK && i < json_array_size(gpus); i++) {
		status = read_gpu(ret_machine, json_array_get(gpus, i), board_dir, now_ns, err);
		if (status != ERR_OK)
			(void)err_wrap(err, "GPU %zu", i);
	}
	return status;
}

err_status machine_read(const char *path, const char *board_dir, uint64_t now_ns,
			struct machine *ret_machine, struct err *err)
{
	json_error_t where;
	json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &where);

	if (root == NULL)
		return err_set(err, ERR_INVALID, "%s line %d: %s", path, where.line, where.text);
	err_status status = machine_read_json(root, board_dir, now_ns, ret_machine, err);
	json_decref(root);
	return status == ERR_OK ? ERR_OK : err_wrap(err, "%s", path);
}

// SPDX-License-Identifier: Apache-2.0
// The parts of the driver of claims that ask nobody: messages, what a claim says, the file of
// prepared claims over restarts and damage, CDI files, the ResourceSlice against golden files.
// argv: folder of golden files.
#include "base/pb.h"
#include "check.h"
#include "daemons/agent/cdi.h"
#include "daemons/agent/dp_proto.h"
#include "daemons/agent/dra_cdi.h"
#include "daemons/agent/dra_claim.h"
#include "daemons/agent/dra_slice.h"
#include "sys/fs.h"

#include <stdlib.h>
#include <unistd.h>

enum { GPUS = 4, FILE_MAX_BYTES = 64 * 1024, ARENA_BYTES = 1 << 20 };
#define UID "0b6f6f3e-1111-4222-8333-444455556666"
#define GPU_A "GPU-aaaaaaaa-0000-4000-8000-000000000001"
#define GPU_B "GPU-bbbbbbbb-0000-4000-8000-000000000002"
#define NAME_A "gpu-aaaaaaaa-0000-4000-8000-000000000001"
#define NAME_B "gpu-bbbbbbbb-0000-4000-8000-000000000002"

static const struct dra_ref ref = { STR("team"), STR(UID), STR("one") };

static void put_ref(struct buf *out, const char *namespace_, const char *uid, const char *name)
{
	AUTO(buf_done) struct buf claim = { 0 };
	pb_put_bytes(&claim, 1, str_of(namespace_));
	pb_put_bytes(&claim, 2, str_of(uid));
	pb_put_bytes(&claim, 3, str_of(name));
	pb_put_bytes(out, 1, buf_str(&claim));
}

static void check_refs(struct check *c)
{
	AUTO(arena_freep) struct arena *arena = arena_new(ARENA_BYTES);
	AUTO(buf_done) struct buf two = { 0 };
	struct dra_refs refs = { 0 };
	put_ref(&two, "team", UID, "one");
	put_ref(&two, "other", "u2", "two.x");
	CHECK_INT(c, "two", dra_read_refs(arena, buf_str(&two), &refs, NULL), ERR_OK);
	CHECK_INT(c, "count", refs.count, 2);
	CHECK_STR(c, "uid", refs.items[0].uid, UID);
	CHECK_STR(c, "name", refs.items[1].name, "two.x");
	CHECK_INT(c, "none", dra_read_refs(arena, STR(""), &refs, NULL), ERR_OK);
	CHECK_INT(c, "none", refs.count, 0);
	static const struct {
		const char *name, *namespace_, *uid, *claim;
	} bad[] = {
		{ "path as UID", "team", "../../x", "one" }, { "no UID", "team", "", "one" },
		{ "slash in the name", "team", UID, "a/b" }, { "no namespace", "", UID, "one" },
		{ "capital letters", "Team", UID, "one" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		AUTO(buf_done) struct buf out = { 0 };
		put_ref(&out, bad[i].namespace_, bad[i].uid, bad[i].claim);
		CHECK_INT(c, bad[i].name, dra_read_refs(arena, buf_str(&out), &refs, NULL),
			  ERR_PROTOCOL);
	}
	for (size_t len = 1; len < two.len; len++) {
		struct dra_refs cut = { .count = 99 };
		err_status status =
			dra_read_refs(arena, str_slice(buf_str(&two), 0, len), &cut, NULL);
		CHECK(c, "cut", (status == ERR_OK) == (cut.count != 99));
	}
	AUTO(buf_done) struct buf many = { 0 };
	for (int i = 0; i <= DRA_REFS_MAX; i++)
		put_ref(&many, "team", UID, "one");
	CHECK_INT(c, "too many", dra_read_refs(arena, buf_str(&many), &refs, NULL), ERR_LIMIT);
}

static void check_status(struct check *c)
{
	bool is_registered = false;
	struct str error = STR("x");
	CHECK_INT(c, "good", dra_read_status(STR("\x08\x01"), &is_registered, &error, NULL),
		  ERR_OK);
	CHECK(c, "good", is_registered && error.len == 0);
	CHECK_INT(c, "bad", dra_read_status(STR("\x12\x02no"), &is_registered, &error, NULL),
		  ERR_OK);
	CHECK(c, "bad", !is_registered && str_eq_c(error, "no"));
	CHECK_INT(c, "broken", dra_read_status(STR("\x0a\x01x"), &is_registered, &error, NULL),
		  ERR_PROTOCOL);
}

static void check_answers(struct check *c)
{
	AUTO(buf_done) struct buf out = { 0 };
	const struct dra_given given = { "r", "n", "d", "k=v" };
	static const char want[] = "\x0a\x15\x0a\x01u\x12\x10\x0a\x0e"
				   "\x0a\x01r\x12\x01n\x1a\x01"
				   "d\x22\x03k=v";
	dra_put_prepared(&out, STR("u"), &given, 1, NULL);
	CHECK(c, "device", out.len == sizeof want - 1 && memcmp(out.data, want, out.len) == 0);
	buf_clear(&out);
	dra_put_prepared(&out, STR("u"), &given, 1, "no");
	CHECK(c, "error",
	      out.len == 11 && memcmp(out.data, "\x0a\x09\x0a\x01u\x12\x04\x12\x02no", 11) == 0);
	buf_clear(&out);
	dra_put_unprepared(&out, STR("u"), NULL);
	CHECK(c, "unprepared",
	      out.len == 7 && memcmp(out.data, "\x0a\x05\x0a\x01u\x12\x00", 7) == 0);
}

static void check_names(struct check *c)
{
	char name[GPU_UUID_BYTES], uuid[GPU_UUID_BYTES] = "";
	CHECK_STR(c, "name", str_of(dra_device_name(GPU_A, name)), NAME_A);
	CHECK(c, "back", dra_device_uuid(str_of(name), uuid));
	CHECK_STR(c, "back", str_of(uuid), GPU_A);
	static const char *const bad[] = { "gpu-",  "x",     "mig-", "MIG-1", "gpumig-1",
					   "GPU-1", "mig-/", "",     "mig",   "mig-gpu-1/7/0" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		CHECK(c, bad[i], !dra_device_uuid(str_of(bad[i]), uuid));
	CHECK_STR(c, "untouched", str_of(uuid), GPU_A);
	CHECK_STR(c, "of a MIG device", str_of(dra_device_name("MIG-1a", name)), "mig-1a");
	CHECK(c, "and back", dra_device_uuid(str_of(name), uuid));
	CHECK_STR(c, "and back", str_of(uuid), "MIG-1a");
}

static void on_row(void *arg, const struct podres_row *row)
{
	struct podres_row *last = arg;
	*last = *row;
}

static void nest(struct buf *out, uint32_t number, struct buf *part)
{
	pb_put_bytes(out, number, buf_str(part));
	buf_done(part);
	*part = (struct buf){ 0 };
}

static void check_pod_resources(struct check *c)
{
	AUTO(buf_done) struct buf list = { 0 };
	struct buf claimed = { 0 }, claim = { 0 }, container = { 0 }, pod = { 0 };
	struct podres_row row = { 0 };
	pb_put_bytes(&claimed, 2, STR(DRA_DRIVER));
	pb_put_bytes(&claimed, 3, STR("node1"));
	pb_put_bytes(&claimed, 4, STR(NAME_A));
	pb_put_bytes(&claim, 2, STR("one"));
	nest(&claim, 4, &claimed);
	pb_put_bytes(&container, 1, STR("main"));
	nest(&container, 5, &claim);
	pb_put_bytes(&pod, 1, STR("p"));
	pb_put_bytes(&pod, 2, STR("team"));
	nest(&pod, 3, &container);
	nest(&list, 1, &pod);
	CHECK_INT(c, "claim", podres_read_list(buf_str(&list), on_row, &row, NULL), ERR_OK);
	CHECK_STR(c, "driver", row.resource, DRA_DRIVER);
	CHECK_STR(c, "device", row.id, NAME_A);
	CHECK_STR(c, "pod", row.pod, "p");
	CHECK_STR(c, "container", row.container, "main");
}

#define META                                                                                       \
	"{\"metadata\":{\"uid\":\"" UID "\"},\"status\":{\"reservedFor\":["                        \
	"{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"pod-uid\"}],\"allocation\":{\"devices\":" \
	"{"
#define RESULT(more)                                                                               \
	"{\"driver\":\"gpu.gpuaas.io\",\"pool\":\"node1\",\"device\":\"" NAME_A                    \
	"\",\"request\":\"gpu/big\"" more "}"

static void check_claims(struct check *c)
{
	static const struct {
		const char *name, *text;
		err_status status;
	} rows[] = {
		{ "good", META "\"results\":[" RESULT("") "]}}}}", ERR_OK },
		{ "of two drivers",
		  META "\"results\":[{\"driver\":\"nic.example.com\",\"pool\":\"x\",\"device\":"
		       "\"y\",\"request\":\"nic\"}," RESULT("") "]}}}}",
		  ERR_OK },
		{ "twice", META "\"results\":[" RESULT("") "," RESULT("") "]}}}}", ERR_INVALID },
		{ "as an administrator",
		  META "\"results\":[" RESULT(",\"adminAccess\":true") "]}}}}", ERR_UNSUPPORTED },
		{ "a share", META "\"results\":[" RESULT(",\"shareID\":\"s\"") "]}}}}",
		  ERR_UNSUPPORTED },
		{ "of another driver alone",
		  META "\"results\":[{\"driver\":\"x\",\"request\":\"r\"}]}}}}", ERR_INVALID },
		{ "of another node",
		  META "\"results\":[{\"driver\":\"gpu.gpuaas.io\",\"pool\":\"node2\",\"device\":"
		       "\"" NAME_A "\"}]}}}}",
		  ERR_INVALID },
		{ "no device of ours",
		  META "\"results\":[{\"driver\":\"gpu.gpuaas.io\",\"pool\":\"node1\",\"device\":"
		       "\"../x\"}]}}}}",
		  ERR_INVALID },
		{ "with configuration",
		  META
		  "\"config\":[{\"opaque\":{\"driver\":\"gpu.gpuaas.io\"}}],\"results\":[" RESULT(
			  "") "]}}}}",
		  ERR_UNSUPPORTED },
		{ "not allocated", "{\"metadata\":{\"uid\":\"" UID "\"}}", ERR_CONFLICT },
		{ "another of that name", "{\"metadata\":{\"uid\":\"x\"}}", ERR_CONFLICT },
		{ "no object", "[", ERR_INVALID },
	};
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct dra_claim claim = { .count = 99 };
		CHECK_INT(c, rows[i].name,
			  dra_claim_read(str_of(rows[i].text), &ref, "node1", &claim, NULL),
			  rows[i].status);
		CHECK_INT(c, rows[i].name, claim.count, rows[i].status == ERR_OK ? 1 : 99);
		if (rows[i].status != ERR_OK)
			continue;
		CHECK_STR(c, rows[i].name, str_of(claim.devices[0].uuid), GPU_A);
		CHECK_STR(c, "without its alternative", str_of(claim.devices[0].request), "gpu");
		CHECK_STR(c, "pod", str_of(claim.pod_uid), "pod-uid");
		CHECK(c, "tolerates nothing", !claim.devices[0].tolerates);
	}
	struct dra_claim claim = { 0 };
	CHECK_INT(c, "tolerates",
		  dra_claim_read(
			  STR(META "\"results\":[" RESULT(
				  ",\"tolerations\":[{\"key\":\"gpu.gpuaas.io/unhealthy\","
				  "\"operator\":\"Exists\"}]") ",{\"driver\":"
							       "\"gpu.gpuaas.io\",\"pool\":"
							       "\"node1\",\"device\":\"" NAME_B
							       "\",\"request\":\"other\"}]}}}}"),
			  &ref, "node1", &claim, NULL),
		  ERR_OK);
	CHECK(c, "one request tolerates, the other does not",
	      claim.count == 2 && claim.devices[0].tolerates && !claim.devices[1].tolerates);
}

static struct dra_claim claim_of(const char *uid, const char *gpu)
{
	struct dra_claim claim = { .namespace_ = "team", .name = "one", .pod = "p", .count = 1 };
	(void)snprintf(claim.uid, sizeof claim.uid, "%s", uid);
	(void)snprintf(claim.pod_uid, sizeof claim.pod_uid, "pod-%s", uid);
	(void)snprintf(claim.devices[0].uuid, sizeof claim.devices[0].uuid, "%s", gpu);
	(void)snprintf(claim.devices[0].request, sizeof claim.devices[0].request, "gpu");
	return claim;
}

#define ENTRY(uid, gpu)                                                                            \
	"{\"uid\":\"" uid "\",\"namespace\":\"n\",\"name\":\"c\",\"podUid\":\"\",\"pod\":\"\","    \
	"\"devices\":[{\"uuid\":\"" gpu "\",\"request\":\"r\"}]}"
#define ENTRIES(entries) "{\"version\":1,\"claims\":[" entries "]}"

static void check_entries(struct check *c)
{
	static const struct {
		const char *name, *text;
		err_status status;
	} rows[] = {
		{ "two", ENTRIES(ENTRY("u1", GPU_A) "," ENTRY("u2", GPU_B)), ERR_OK },
		{ "a GPU in two", ENTRIES(ENTRY("u1", GPU_A) "," ENTRY("u2", GPU_A)), ERR_INVALID },
		{ "a claim twice", ENTRIES(ENTRY("u1", GPU_A) "," ENTRY("u1", GPU_B)),
		  ERR_INVALID },
		{ "path as UID", ENTRIES(ENTRY("../u1", GPU_A)), ERR_INVALID },
		{ "no GPU", ENTRIES(ENTRY("u1", "x")), ERR_INVALID },
	};
	static struct dra_claim claims[DRA_CLAIMS_MAX];
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		size_t count = 99;
		CHECK_INT(c, rows[i].name,
			  dra_table_read(str_of(rows[i].text), claims, &count, NULL),
			  rows[i].status);
		CHECK_INT(c, rows[i].name, count, rows[i].status == ERR_OK ? 2 : 99);
	}
}

static void check_damage(struct check *c, const char *path)
{
	struct dra_table *table = NULL;
	bool is_whole = true;
	char aside[210];
	AUTO(buf_done) struct buf text = { 0 };
	static struct dra_claim claims[DRA_CLAIMS_MAX];
	size_t count = 99;
	(void)snprintf(aside, sizeof aside, "%s.bad", path);
	CHECK_INT(c, "read", fs_read(path, FILE_MAX_BYTES, &text, NULL), ERR_OK);
	size_t lines = 0;
	for (size_t len = 0; len + 1 < text.len; len++) {
		err_status status =
			dra_table_read(str_slice(buf_str(&text), 0, len), claims, &count, NULL);
		lines += status == ERR_OK ? 1 : 0;
	}
	CHECK_INT(c, "no part of it is a whole", lines, 0);
	CHECK_INT(c, "untouched", count, 99);
	CHECK_INT(c, "damaged", fs_write_atomic(path, STR("{\"version\":1,"), 0600, NULL), ERR_OK);
	CHECK_INT(c, "starts", dra_table_new(path, &table, &is_whole, NULL), ERR_OK);
	CHECK(c, "set aside", !is_whole && dra_table_count(table) == 0 && access(aside, F_OK) == 0);
	dra_table_free(table);
	(void)unlink(aside);
}

static void check_table(struct check *c, const char *dir)
{
	char path[200];
	struct dra_table *table = NULL;
	bool is_whole = false;
	(void)snprintf(path, sizeof path, "%s/claims.json", dir);
	const struct dra_claim a = claim_of("u1", GPU_A), b = claim_of("u2", GPU_B);
	const struct dra_claim again = claim_of("u3", GPU_A);
	CHECK_INT(c, "new", dra_table_new(path, &table, &is_whole, NULL), ERR_OK);
	CHECK(c, "empty", is_whole && dra_table_count(table) == 0);
	CHECK_INT(c, "first", dra_table_add(table, &a, NULL), ERR_OK);
	CHECK_INT(c, "second", dra_table_add(table, &b, NULL), ERR_OK);
	CHECK_INT(c, "its GPU is held", dra_table_add(table, &again, NULL), ERR_CONFLICT);
	dra_table_free(table); // as killed: nothing is written at the end
	CHECK_INT(c, "again", dra_table_new(path, &table, &is_whole, NULL), ERR_OK);
	CHECK(c, "both are there", is_whole && dra_table_count(table) == 2);
	const struct dra_claim *found = dra_table_holder(table, GPU_B);
	CHECK(c, "holder", found != NULL && memcmp(found, &b, sizeof b) == 0);
	CHECK_INT(c, "removed", dra_table_remove(table, STR("u1"), NULL), ERR_OK);
	CHECK_INT(c, "twice", dra_table_remove(table, STR("u1"), NULL), ERR_OK);
	CHECK(c, "free", dra_table_holder(table, GPU_A) == NULL);
	CHECK_INT(c, "given anew", dra_table_add(table, &again, NULL), ERR_OK);
	struct dra_claim changed = claim_of("u3", GPU_B);
	CHECK_INT(c, "another's GPU", dra_table_add(table, &changed, NULL), ERR_CONFLICT);
	CHECK(c, "untouched", dra_table_holder(table, GPU_A) != NULL);
	CHECK_INT(c, "that one goes", dra_table_remove(table, STR("u2"), NULL), ERR_OK);
	changed.devices[0].tolerates = true;
	CHECK_INT(c, "in its own place", dra_table_add(table, &changed, NULL), ERR_OK);
	dra_table_free(table);
	CHECK_INT(c, "and again", dra_table_new(path, &table, &is_whole, NULL), ERR_OK);
	found = dra_table_holder(table, GPU_B);
	CHECK(c, "replaced",
	      dra_table_count(table) == 1 && found != NULL &&
		      memcmp(found, &changed, sizeof changed) == 0);
	dra_table_free(table);
	check_damage(c, path);
	CHECK_INT(c, "lost folder", dra_table_new("/nowhere/claims.json", &table, &is_whole, NULL),
		  ERR_OK);
	CHECK(c, "not on disk, not given",
	      dra_table_add(table, &a, NULL) != ERR_OK && dra_table_count(table) == 0);
	dra_table_free(table);
	(void)unlink(path);
}

static bool has_file(const char *dir, const char *uid, struct buf *text)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/" DRA_CDI_PREFIX "%s.json", dir, uid);
	buf_clear(text);
	return fs_read(path, FILE_MAX_BYTES, text, NULL) == ERR_OK;
}

static bool is_in_table(void *arg, struct str uid) { return dra_table_find(arg, uid) != NULL; }

static void check_cdi(struct check *c, const char *dir)
{
	char base[300], path[300];
	AUTO(buf_done) struct buf text = { 0 };
	struct dra_table *table = NULL;
	bool is_whole = false;
	const struct dra_claim claim = claim_of("u1", GPU_A);
	const char *const name = GPU_A, *const other = GPU_B;
	(void)snprintf(base, sizeof base, "%s/" CDI_FILE, dir);
	(void)snprintf(path, sizeof path, "%s/claims.json", dir);
	CHECK(c, "no base yet", dra_cdi_write(dir, &claim, &name, NULL) != ERR_OK);
	CHECK_INT(c, "base",
		  fs_write_atomic(
			  base,
			  STR("{\"cdiVersion\":\"0.5.0\",\"kind\":\"k\",\"devices\":[{\"name\":"
			      "\"" GPU_A "\",\"containerEdits\":{\"deviceNodes\":[{\"path\":"
			      "\"/dev/nvidia0\"}]}}],\"containerEdits\":{\"env\":[\"A=b\"]}}"),
			  0644, NULL),
		  ERR_OK);
	CHECK(c, "not in it", dra_cdi_write(dir, &claim, &other, NULL) == ERR_UNAVAILABLE);
	CHECK_INT(c, "written", dra_cdi_write(dir, &claim, &name, NULL), ERR_OK);
	CHECK(c, "there", has_file(dir, "u1", &text));
	static const char *const parts[] = { "\"kind\":\"gpuaas.io/claim\"",
					     "\"name\":\"u1-" NAME_A "\"", "/dev/nvidia0", "A=b" };
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		CHECK(c, parts[i], text.data != NULL && strstr(text.data, parts[i]) != NULL);
	char full[DRA_CDI_BYTES];
	CHECK_STR(c, "name", str_of(dra_cdi_name("u1", GPU_A, full)), "gpuaas.io/claim=u1-" NAME_A);
	CHECK_INT(c, "table", dra_table_new(path, &table, &is_whole, NULL), ERR_OK);
	CHECK_INT(c, "known", dra_table_add(table, &claim, NULL), ERR_OK);
	struct dra_claim read = { 0 };
	CHECK_INT(c, "read", dra_cdi_read(dir, STR("u1"), &read, NULL), ERR_OK);
	CHECK(c, "all that it says",
	      strcmp(read.uid, "u1") == 0 && read.count == 1 &&
		      strcmp(read.devices[0].uuid, GPU_A) == 0 && read.name[0] == '\0');
	read.count = 99;
	CHECK(c, "no such file", dra_cdi_read(dir, STR("u2"), &read, NULL) != ERR_OK);
	CHECK(c, "no UID", dra_cdi_read(dir, STR("../u1"), &read, NULL) == ERR_INVALID);
	CHECK_INT(c, "untouched", read.count, 99);
	cdi_sweep(dir, STR(DRA_CDI_PREFIX), is_in_table, table);
	CHECK(c, "kept", has_file(dir, "u1", &text));
	CHECK_INT(c, "gone", dra_table_remove(table, STR("u1"), NULL), ERR_OK);
	cdi_sweep(dir, STR(DRA_CDI_PREFIX), is_in_table, table);
	CHECK(c, "removed", !has_file(dir, "u1", &text));
	CHECK(c, "base stays", access(base, F_OK) == 0);
	dra_table_free(table);
	(void)unlink(base);
	(void)unlink(path);
}

static struct gpu_info infos[GPUS];
static struct dra_gpu gpus[GPUS];

static struct dra_view set_up_view(void)
{
	for (size_t i = 0; i < GPUS; i++) {
		infos[i] = (struct gpu_info){ .index = (uint32_t)i,
					      .minor = (uint32_t)i,
					      .compute_major = 8,
					      .memory_bytes = UINT64_C(81559) << 20,
					      .numa_node = i < 2 ? 0 : -1 };
		(void)snprintf(infos[i].uuid, sizeof infos[i].uuid,
			       "GPU-%zu0000000-0000-4000-8000-00000000000%zu", 9 - i, i);
		(void)snprintf(infos[i].model, sizeof infos[i].model, "NVIDIA A100-SXM4-80GB");
		(void)snprintf(infos[i].pci_bus_id, sizeof infos[i].pci_bus_id,
			       "00000000:%zuA:00.0", i + 1);
		gpus[i] = (struct dra_gpu){ .info = &infos[i] };
	}
	infos[3].memory_bytes = UINT64_C(80) << 30;
	// 0 - 1 - 2 by NVLink, 3 alone.
	infos[0].link_count = infos[2].link_count = 1;
	infos[0].links[0] = (struct gpu_link){ "00000000:2A:00.0", 2 };
	infos[2].links[0] = (struct gpu_link){ "00000000:2A:00.0", 4 };
	(void)snprintf(gpus[0].pcie_root, sizeof gpus[0].pcie_root, "pci0000:00");
	return (struct dra_view){ .node = "node1",
				  .node_uid = "node-uid",
				  .driver_version = "535.54.03",
				  .cuda_version = 12080,
				  .effect = "NoSchedule",
				  .generation = 7,
				  .gpus = gpus,
				  .count = GPUS };
}

static void check_golden(struct check *c, const char *dir, const char *name, struct str got)
{
	char path[400];
	AUTO(buf_done) struct buf want = { 0 };
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	if (getenv("GOLDEN_WRITE") != NULL)
		CHECK_INT(c, name, fs_write_atomic(path, got, 0644, NULL), ERR_OK);
	CHECK_INT(c, name, fs_read(path, FILE_MAX_BYTES, &want, NULL), ERR_OK);
	CHECK_STR(c, name, got, want.data == NULL ? "" : want.data);
}

static json_t *parse(struct str text)
{
	json_t *value = NULL;
	return json_parse(text, &value, NULL) == ERR_OK ? value : NULL;
}

static void check_slices(struct check *c, const char *golden)
{
	AUTO(buf_done) struct buf good = { 0 };
	AUTO(buf_done) struct buf bad = { 0 };
	AUTO(buf_done) struct buf left = { 0 };
	struct dra_view view = set_up_view();
	CHECK_INT(c, "good", dra_slice_put(&good, &view, NULL, NULL), ERR_OK);
	check_golden(c, golden, "slice.json", buf_str(&good));
	gpus[1].fault = "xid";
	gpus[2].held_back = "a process is left on it";
	view.effect = "NoExecute";
	CHECK_INT(c, "bad", dra_slice_put(&bad, &view, "4711", NULL), ERR_OK);
	check_golden(c, golden, "tainted.json", buf_str(&bad));
	view.has_no_taints = true;
	CHECK_INT(c, "left out", dra_slice_put(&left, &view, NULL, NULL), ERR_OK);
	CHECK(c, "left out",
	      strstr(left.data, "taints") == NULL && strstr(left.data, "gpu-80000000") == NULL &&
		      strstr(left.data, "gpu-90000000") != NULL);
	AUTO(json_decrefp) json_t *a = parse(buf_str(&good));
	AUTO(json_decrefp) json_t *b = parse(buf_str(&bad));
	AUTO(json_decrefp) json_t *timed = json_deep_copy(b);
	CHECK(c, "itself", dra_slice_is_same(a, a) && dra_slice_is_same(b, b));
	CHECK(c, "another", !dra_slice_is_same(a, b));
	CHECK(c, "taints", dra_slice_has_taints(b) && !dra_slice_has_taints(a));
	json_t *taint = json_array_get(
		json_at(json_array_get(json_at(timed, "spec.devices"), 1), "taints"), 0);
	CHECK(c, "a time",
	      json_object_set_new(taint, "timeAdded", json_string("now")) == 0 &&
		      json_object_set_new(json_at(timed, "spec.pool"), "generation",
					  json_integer(9)) == 0);
	CHECK(c, "generation and times do not count", dra_slice_is_same(b, timed));
}

// A GPU in MIG mode comes as its devices.
static void check_parts(struct check *c, const char *golden)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct dra_view view = set_up_view();
	const struct mig_instance instances[] = {
		{ .uuid = "MIG-1a000000-0000-4000-8000-000000000001",
		  .profile = "3g.40gb",
		  .size = 4,
		  .slices = 3,
		  .multiprocessors = 42,
		  .copy_engines = 3,
		  .decoders = 2,
		  .memory_mib = 40192 },
		{ .uuid = "MIG-1a000000-0000-4000-8000-000000000002",
		  .profile = "1g.10gb+me",
		  .start = 4,
		  .size = 1,
		  .slices = 1,
		  .jpegs = 1,
		  .ofas = 1,
		  .memory_mib = 9728 },
	};
	struct dra_gpu devices[3] = { gpus[1], gpus[0], gpus[1] };
	devices[0].mig = &instances[0];
	devices[2].mig = &instances[1];
	devices[2].fault = "xid";
	view.gpus = devices;
	view.count = ARRAY_COUNT(devices);
	CHECK_INT(c, "put", dra_slice_put(&text, &view, NULL, NULL), ERR_OK);
	check_golden(c, golden, "parts.json", buf_str(&text));
	CHECK(c, "no NVLink to what is in parts", strstr(text.data, "nvlinkGroup") == NULL);
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	char dir[] = "/tmp/dra-test-XXXXXX";
	if (argc != 2 || mkdtemp(dir) == NULL)
		return 1;
	check_refs(&c);
	check_status(&c);
	check_answers(&c);
	check_names(&c);
	check_pod_resources(&c);
	check_claims(&c);
	check_entries(&c);
	check_table(&c, dir);
	check_cdi(&c, dir);
	check_slices(&c, argv[1]);
	check_parts(&c, argv[1]);
	(void)rmdir(dir);
	return check_done(&c);
}

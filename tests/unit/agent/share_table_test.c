// SPDX-License-Identifier: Apache-2.0
// Sets of ids, who holds them by the kubelet's sources, and the table of allocations.
#include "daemons/agent/share_seen.h"

#include "base/pb.h"
#include "check.h"

#include <stdio.h>

static struct share_key key_of(share_kind kind, uint32_t from, uint32_t count)
{
	struct share_key key = { .kind = kind };
	for (uint32_t i = from; i < from + count; i++) {
		char id[SHARE_ID_BYTES];
		share_id_format(kind, i % 3, i, id);
		share_key_add(&key, str_of(id));
	}
	return key;
}

static void check_ids(struct check *c)
{
	static const char *const bad[] = { "",           "milli-",    "milli-1",
					   "milli-1-",   "milli-a-1", "memory-1-1",
					   "milli-32-1", "milli-1-x", "milli-1-4294967295" };
	uint32_t slot = 0, number = 0;
	char id[SHARE_ID_BYTES];
	share_id_format(SHARE_BY_MILLI, 7, 999, id);
	CHECK_STR(c, "form", str_of(id), "milli-7-999");
	CHECK(c, "back", share_id_parse(str_of(id), SHARE_BY_MILLI, &slot, &number));
	CHECK_INT(c, "slot", slot, 7);
	CHECK_INT(c, "number", number, 999);
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		CHECK(c, bad[i], !share_id_parse(str_of(bad[i]), SHARE_BY_MILLI, &slot, &number));
	struct share_key a = { .kind = SHARE_BY_MILLI }, b = a, other = a;
	share_key_add(&a, STR("milli-0-1"));
	share_key_add(&a, STR("milli-0-2"));
	share_key_add(&b, STR("milli-0-2"));
	share_key_add(&b, STR("milli-0-1"));
	share_key_add(&other, STR("milli-0-1"));
	CHECK(c, "in any order", share_key_is(&a, &b));
	CHECK(c, "a part is not the whole", !share_key_is(&a, &other));
	other.kind = SHARE_BY_MEMORY;
	CHECK(c, "kinds differ", !share_key_is(&b, &other));
}

static bool is_dead(void *arg, const char *uid) { return strcmp(uid, arg) == 0; }
static bool lives(void *arg, const char *uid) { return !is_dead(arg, uid); }

static void count_drop(void *arg, const struct share_grant *grant)
{
	(void)grant;
	++*(char *)arg;
}

static const char GPU0[] = "GPU-0", GPU1[] = "GPU-1";

static struct share_grant *give(struct share_table *table, const struct share_key *key,
				const char *uid, struct share share)
{
	char name[SHARE_NAME_BYTES];
	static unsigned no;
	struct share_holder holder = { .namespace_ = "team", .container = "main" };
	(void)snprintf(name, sizeof name, "name%u", no++);
	(void)snprintf(holder.uid, sizeof holder.uid, "%s", uid);
	(void)snprintf(holder.pod, sizeof holder.pod, "pod-of-%s", uid);
	struct share_grant *grant = share_table_allocate(table, key, name);
	ASSERT(grant != NULL);
	share_table_bind(grant, &holder, GPU0, &share);
	return grant;
}

static void check_table(struct check *c)
{
	char nobody[] = "", gone[] = "a";
	struct share_table *table = share_table_new();
	struct share_key first = key_of(SHARE_BY_MILLI, 0, 300);
	struct share_key second = key_of(SHARE_BY_MILLI, 300, 500);
	const struct share third = { 300, 24576 }, half = { 500, 40960 };
	(void)give(table, &first, "a", third);
	(void)give(table, &second, "b", half);
	CHECK_INT(c, "sum", share_table_used(table, GPU0, lives, nobody).milli, 800);
	CHECK_INT(c, "of another", share_table_used(table, GPU1, lives, nobody).milli, 0);
	share_table_list_begin(table);
	CHECK_INT(c, "the API knows it", share_table_used(table, GPU0, lives, nobody).milli, 800);
	CHECK_INT(c, "nobody knows it", share_table_used(table, GPU0, lives, gone).milli, 500);
	share_table_list(table, &first);
	CHECK_INT(c, "the kubelet does", share_table_used(table, GPU0, lives, gone).milli, 800);

	struct share_grant *again = share_table_allocate(table, &first, "fresh");
	CHECK(c, "given out again", again != NULL && !again->is_bound && again->name_count == 1);
	CHECK_INT(c, "the old one ends with its pod",
		  share_table_used(table, GPU0, lives, nobody).milli, 800);
	CHECK_INT(c, "and is over then", share_table_used(table, GPU0, lives, gone).milli, 500);
	again = share_table_allocate(table, &first, "more");
	CHECK_INT(c, "two containers, one set", again->name_count, 2);
	CHECK(c, "names", share_table_has_name(table, STR("fresh")));
	CHECK(c, "no name", !share_table_has_name(table, STR("fres")));
	for (int i = 0; i < 4; i++) {
		char name[SHARE_NAME_BYTES];
		(void)snprintf(name, sizeof name, "n%d", i);
		again = share_table_allocate(table, &first, name);
	}
	CHECK_INT(c, "bounded", again->name_count, SHARE_NAMES_MAX);
	CHECK(c, "the last stays", share_table_has_name(table, STR("n3")));

	struct share_holder holder = { .uid = "b", .container = "main" };
	CHECK(c, "has one", share_table_of(table, &holder, SHARE_BY_MILLI) != NULL);
	CHECK(c, "of this kind", share_table_of(table, &holder, SHARE_BY_MEMORY) == NULL);
	share_table_free(table);
}

static void check_prune(struct check *c)
{
	char state[] = { 0, 'a', 0 };
	struct share_table *table = share_table_new();
	struct share_key bound = key_of(SHARE_BY_MEMORY, 0, 4),
			 open = key_of(SHARE_BY_MEMORY, 9, 2);
	(void)give(table, &bound, "\1", (struct share){ 12, 1024 });
	CHECK(c, "open", share_table_allocate(table, &open, "o") != NULL);
	// The pod "\1" is dead once state says so, which then counts what is dropped.
	share_table_prune(table, 1000, lives, count_drop, state);
	CHECK_INT(c, "young", share_table_count(table), 2);
	share_table_list_begin(table);
	share_table_list(table, &open);
	state[0] = 1;
	state[1] = 0;
	share_table_prune(table, 1100, lives, count_drop, state);
	share_table_prune(table, 1110, lives, count_drop, state);
	CHECK_INT(c, "lost for a while", share_table_count(table), 2);
	share_table_prune(table, 1111, lives, count_drop, state);
	CHECK_INT(c, "gone", share_table_count(table), 1);
	CHECK_INT(c, "told", state[0], 2);
	CHECK(c, "who is listed stays", share_table_find(table, &open) != NULL);
	share_table_list_begin(table);
	share_table_prune(table, 1200, lives, count_drop, state);
	share_table_prune(table, 1260, lives, count_drop, state);
	CHECK_INT(c, "what is not bound may be slow", share_table_count(table), 1);
	share_table_prune(table, 1261, lives, count_drop, state);
	CHECK_INT(c, "not for ever", share_table_count(table), 0);
	share_table_free(table);
}

static void check_file(struct check *c)
{
	char nobody[] = "";
	AUTO(buf_done) struct buf text = { 0 };
	AUTO(buf_done) struct buf again = { 0 };
	struct share_table *table = share_table_new(), *loaded = share_table_new();
	struct share_key first = key_of(SHARE_BY_MILLI, 0, 300),
			 open = key_of(SHARE_BY_MEMORY, 0, 8);
	(void)give(table, &first, "uid \"1\"", (struct share){ 300, 24576 });
	(void)share_table_allocate(table, &first, "again");
	(void)share_table_allocate(table, &open, "open");
	share_table_save(table, &text);
	buf_put_c(&text, "{\"ids\":\"00\",\"count\":1}\nnonsense\n{}\n\n[]\n");
	buf_put_c(&text, "{\"ids\":\"00000000000000010000000000000002\",\"count\":1,\"resource\":"
			 "\"gpuaas.io/gpu-milli\",\"names\":[\"../x\"]}\n");
	share_table_load(loaded, buf_str(&text));
	CHECK_INT(c, "what is good", share_table_count(loaded), 3);
	share_table_save(loaded, &again);
	CHECK(c, "the same", again.len > 0 && memcmp(again.data, text.data, again.len) == 0);
	CHECK_INT(c, "held", share_table_used(loaded, GPU0, lives, nobody).memory_mib, 24576);
	CHECK_STR(c, "holder", str_of(share_table_at(loaded, 0)->holder.uid), "uid \"1\"");
	share_table_free(table);
	share_table_free(loaded);
}

// ---- the kubelet's sources

static void put_devices(struct buf *container, share_kind kind, uint32_t from, uint32_t to)
{
	AUTO(buf_done) struct buf devices = { 0 };
	pb_put_bytes(&devices, 1, str_of(share_resource(kind)));
	for (uint32_t i = from; i < to; i++) {
		char id[SHARE_ID_BYTES];
		share_id_format(kind, i % 3, i, id);
		pb_put_bytes(&devices, 2, str_of(id));
	}
	pb_put_bytes(container, 2, buf_str(&devices));
}

static void check_seen(struct check *c)
{
	AUTO(buf_done) struct buf container = { 0 }, pod = { 0 }, message = { 0 };
	struct share_seen_list list = { 0 };
	struct share_key milli = key_of(SHARE_BY_MILLI, 0, 30),
			 memory = key_of(SHARE_BY_MEMORY, 0, 8);
	size_t at = 0;
	pb_put_bytes(&container, 1, STR("main"));
	put_devices(&container, SHARE_BY_MILLI, 10, 30); // in parts, mixed with others
	put_devices(&container, SHARE_BY_MEMORY, 0, 8);
	put_devices(&container, SHARE_BY_MILLI, 0, 10);
	pb_put_bytes(&pod, 1, STR("p"));
	pb_put_bytes(&pod, 2, STR("team"));
	pb_put_bytes(&pod, 3, buf_str(&container));
	pb_put_bytes(&message, 1, buf_str(&pod));
	CHECK_INT(c, "answer", share_seen_answer(&list, buf_str(&message), NULL), ERR_OK);
	CHECK_INT(c, "two kinds", list.count, 2);
	const struct share_seen *seen = share_seen_next(&list, &milli, &at);
	CHECK(c, "all parts", seen != NULL && strcmp(seen->holder.pod, "p") == 0);
	CHECK(c, "once", share_seen_next(&list, &milli, &at) == NULL);
	at = 0;
	CHECK(c, "memory", share_seen_next(&list, &memory, &at) != NULL);
	CHECK(c, "broken", share_seen_answer(&list, STR("\x0a\x7f"), NULL) != ERR_OK);
	CHECK_INT(c, "stays", list.count, 2);
	CHECK_INT(c, "file",
		  share_seen_checkpoint(
			  &list,
			  STR("{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u\","
			      "\"ContainerName\":\"init\",\"ResourceName\":\"gpuaas.io/gpu-milli\","
			      "\"DeviceIDs\":{\"-1\":[\"milli-0-0\"]}},{\"PodUID\":\"v\","
			      "\"ContainerName\":\"a\",\"ResourceName\":\"nvidia.com/gpu\","
			      "\"DeviceIDs\":{\"0\":[\"GPU-1\"]}}]}}"),
			  NULL),
		  ERR_OK);
	CHECK_INT(c, "ours", list.count, 1);
	CHECK_STR(c, "UID", str_of(list.items[0].holder.uid), "u");
	CHECK(c, "no file", share_seen_checkpoint(&list, STR("{"), NULL) != ERR_OK);
	CHECK_INT(c, "stays", list.count, 1);
	share_seen_done(&list);
}

int main(void)
{
	struct check c = { 0 };
	check_ids(&c);
	check_table(&c);
	check_prune(&c);
	check_file(&c);
	check_seen(&c);
	return check_done(&c);
}

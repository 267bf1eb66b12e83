// SPDX-License-Identifier: Apache-2.0
#include "base/pb.h"
#include "k8s/kobj_node.h"

#include "check.h"

static const char POD_JSON[] =
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"a\","
	"\"uid\":\"u1\",\"creationTimestamp\":\"2026-02-10T00:00:00Z\",\"labels\":{\"b\":\"2\","
	"\"a\":\"1\"},\"managedFields\":[{}]},\"spec\":{\"schedulerName\":\"gpuaas\","
	"\"containers\":"
	"[{\"name\":\"main\",\"image\":\"x\",\"resources\":{\"requests\":{\"cpu\":1,\"memory\":"
	"\"1Gi\","
	"\"x.io/y\":0.5}},\"ports\":[{\"hostPort\":80,\"containerPort\":8080}]}],\"volumes\":["
	"{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}},{\"name\":\"w\","
	"\"emptyDir\":{}}],\"affinity\":{\"nodeAffinity\":{"
	"\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
	"\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\",\"values\":[\"v1\",\"v2\"]}]}]}},"
	"\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
	"\"labelSelector\":{},\"topologyKey\":\"zone\"}]}},\"hostUsers\":false,\"priority\":7},"
	"\"status\":{\"phase\":\"Pending\",\"futureField\":1}}";

static bool pod_from_json(struct arena *arena, const char *text, json_t **ret_json,
			  struct kobj_unknowns *ret_unknowns, struct kobj_pod *ret_pod,
			  struct err *err)
{
	return json_parse(str_of(text), ret_json, err) == ERR_OK &&
	       kobj_from_json(arena, &KOBJ_POD, *ret_json, ret_unknowns, ret_pod, err) == ERR_OK;
}

static void test_json(struct check *c, struct arena *arena)
{
	AUTO(json_decrefp) json_t *json = NULL;
	struct kobj_unknowns unknowns;
	struct kobj_pod pod;
	struct err err = { 0 };
	CHECK(c, "decodes", pod_from_json(arena, POD_JSON, &json, &unknowns, &pod, &err));
	CHECK_INT(c, "no unknowns", unknowns.count, 0);
	CHECK_STR(c, "name", pod.meta.name, "p");
	CHECK_INT(c, "created", pod.meta.created_s, 1770681600);
	CHECK_STR(c, "labels are sorted", pod.meta.labels.items[0].key, "a");
	CHECK_STR(c, "label", kobj_pairs_get(&pod.meta.labels, STR("b")), "2");
	CHECK_INT(c, "containers", pod.spec.containers.count, 1);
	const struct kobj_container *main_container = &pod.spec.containers.items[0];
	const struct kobj_pairs *requests = &main_container->resources.requests;
	CHECK_STR(c, "cpu as number", kobj_pairs_get(requests, STR("cpu")), "1");
	CHECK_STR(c, "real", kobj_pairs_get(requests, STR("x.io/y")), "0.5");
	CHECK_INT(c, "host port", main_container->ports.items[0].host_port, 80);
	CHECK_STR(c, "claim", pod.spec.volumes.items[0].source.claim->claim_name, "c");
	CHECK(c, "empty dir", pod.spec.volumes.items[1].source.claim == NULL);
	CHECK_STR(c, "volume", pod.spec.volumes.items[1].name, "w");
	const struct kobj_node_selector *required = pod.spec.affinity->node->required;
	CHECK_STR(c, "value", required->terms.items[0].expressions.items[0].values.items[1], "v2");
	CHECK(c, "absent", pod.spec.affinity->pod == NULL);
	CHECK(c, "empty selector", pod.spec.affinity->anti->required.items[0].selector != NULL);
	CHECK(c, "nil selector",
	      pod.spec.affinity->anti->required.items[0].namespace_selector == NULL);
	CHECK_INT(c, "host users", pod.spec.host_users, -1);
	CHECK_INT(c, "priority", pod.spec.priority, 7);
}

static void test_json_faults(struct check *c, struct arena *arena)
{
	static const struct {
		const char *name, *text, *error, *unknown;
	} cases[] = {
		{ "not an object", "[]", "Pod: must be an object", NULL },
		{ "spec is text", "{\"spec\":\"x\"}", "Pod: spec must be an object", NULL },
		{ "label is a number", "{\"metadata\":{\"labels\":{\"a\":1}}}",
		  "Pod: metadata.labels must hold texts only", NULL },
		{ "priority is text", "{\"spec\":{\"priority\":\"x\"}}",
		  "Pod: spec.priority must be an integer", NULL },
		{ "time is bad", "{\"metadata\":{\"creationTimestamp\":\"now\"}}",
		  "Pod: metadata.creationTimestamp must be a time of RFC 3339", NULL },
		{ "containers is an object", "{\"spec\":{\"containers\":{}}}",
		  "Pod: spec.containers must be an array", NULL },
		{ "null is absent", "{\"spec\":{\"affinity\":null,\"newField\":null}}", NULL, "" },
		{ "new field", "{\"spec\":{\"newField\":1}}", NULL, "spec.newField" },
		{ "deep new field", "{\"spec\":{\"containers\":[{},{\"newField\":1}]}}", NULL,
		  "spec.containers[1].newField" },
		{ "new volume", "{\"spec\":{\"volumes\":[{\"name\":\"a\",\"newKind\":{}}]}}", NULL,
		  "spec.volumes[0].newKind" },
		{ "new affinity", "{\"spec\":{\"affinity\":{\"nodeAffinity\":{\"x\":[]}}}}", NULL,
		  "spec.affinity.nodeAffinity.x" },
		{ "metadata is open", "{\"metadata\":{\"newField\":1}}", NULL, "" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		AUTO(json_decrefp) json_t *json = NULL;
		struct kobj_unknowns unknowns = { .count = 99 };
		struct kobj_pod pod;
		struct err err = { 0 };
		bool good = pod_from_json(arena, cases[i].text, &json, &unknowns, &pod, &err);
		CHECK_INT(c, cases[i].name, good, cases[i].error == NULL);
		if (cases[i].error != NULL) {
			CHECK_STR(c, cases[i].name, str_of(err.text), cases[i].error);
			CHECK_INT(c, cases[i].name, unknowns.count, 99);
			continue;
		}
		bool wants_unknown = cases[i].unknown[0] != 0;
		CHECK_INT(c, cases[i].name, unknowns.count, wants_unknown ? 1 : 0);
		if (wants_unknown)
			CHECK_STR(c, cases[i].name, unknowns.paths[0], cases[i].unknown);
	}
}

static void put_pair(struct buf *out, uint32_t number, const char *key, struct str value)
{
	AUTO(buf_done) struct buf pair = { .limit = 4096 };
	pb_put_bytes(&pair, 1, str_of(key));
	pb_put_bytes(&pair, 2, value);
	pb_put_bytes(out, number, buf_str(&pair));
}

static void put_quantity(struct buf *out, uint32_t number, const char *key, const char *value)
{
	AUTO(buf_done) struct buf quantity = { .limit = 4096 };
	pb_put_bytes(&quantity, 1, str_of(value));
	put_pair(out, number, key, buf_str(&quantity));
}

// A pod as the API server would encode it, with one field in the spec that no table knows.
static void encode_pod(struct buf *out)
{
	AUTO(buf_done) struct buf meta = { .limit = 4096 };
	AUTO(buf_done) struct buf created = { .limit = 4096 };
	AUTO(buf_done) struct buf resources = { .limit = 4096 };
	AUTO(buf_done) struct buf container = { .limit = 4096 };
	AUTO(buf_done) struct buf source = { .limit = 4096 };
	AUTO(buf_done) struct buf volume = { .limit = 4096 };
	AUTO(buf_done) struct buf spec = { .limit = 4096 };
	pb_put_varint(&created, 1, 1770681600);
	pb_put_bytes(&meta, 1, STR("p"));
	pb_put_bytes(&meta, 8, buf_str(&created));
	put_pair(&meta, 11, "b", STR("2"));
	put_pair(&meta, 11, "a", STR("0"));
	put_pair(&meta, 11, "a", STR("1"));
	put_quantity(&resources, 2, "nvidia.com/gpu", "2");
	pb_put_bytes(&container, 1, STR("main"));
	pb_put_bytes(&container, 8, buf_str(&resources));
	pb_put_bytes(&source, 10, STR(""));
	pb_put_bytes(&volume, 1, STR("v"));
	pb_put_bytes(&volume, 2, buf_str(&source));
	pb_put_bytes(&spec, 1, buf_str(&volume));
	pb_put_bytes(&spec, 2, buf_str(&container));
	pb_put_varint(&spec, 25, 7);
	pb_put_varint(&spec, 37, 0);
	pb_put_varint(&spec, 4242, 1);
	pb_put_bytes(out, 1, buf_str(&meta));
	pb_put_bytes(out, 2, buf_str(&spec));
}

static void test_protobuf(struct check *c, struct arena *arena)
{
	AUTO(buf_done) struct buf bytes = { .limit = 65536 };
	encode_pod(&bytes);
	struct kobj_unknowns unknowns;
	struct kobj_pod pod;
	struct err err = { 0 };
	err_status status =
		kobj_from_protobuf(arena, &KOBJ_POD, buf_str(&bytes), &unknowns, &pod, &err);
	CHECK_INT(c, "decodes", status, ERR_OK);
	CHECK_STR(c, "name", pod.meta.name, "p");
	CHECK_INT(c, "created", pod.meta.created_s, 1770681600);
	CHECK_INT(c, "labels", pod.meta.labels.count, 2);
	CHECK_STR(c, "the last of a key stays", kobj_pairs_get(&pod.meta.labels, STR("a")), "1");
	CHECK_STR(c, "quantity",
		  kobj_pairs_get(&pod.spec.containers.items[0].resources.requests,
				 STR("nvidia.com/gpu")),
		  "2");
	CHECK(c, "claim", pod.spec.volumes.items[0].source.claim != NULL);
	CHECK_INT(c, "priority", pod.spec.priority, 7);
	CHECK_INT(c, "host users", pod.spec.host_users, -1);
	CHECK_INT(c, "unknown", unknowns.count, 1);
	CHECK_STR(c, "unknown path", unknowns.paths[0], "spec.#4242");
}

static void test_protobuf_faults(struct check *c, struct arena *arena)
{
	static const struct {
		const char *name;
		struct str bytes;
	} cases[] = {
		{ "cut", STR("\x0a\x05\x0a") },
		{ "number where a message belongs", STR("\x08\x01") },
		{ "text where a number belongs", STR("\x12\x04\xca\x01\x01x") },
		{ "cut inside", STR("\x12\x03\x0a\x05\x0a") },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct kobj_pod pod = { .spec = { .priority = 42 } };
		struct err err = { 0 };
		CHECK_INT(c, cases[i].name,
			  kobj_from_protobuf(arena, &KOBJ_POD, cases[i].bytes, NULL, &pod, &err),
			  ERR_PROTOCOL);
		CHECK_INT(c, cases[i].name, pod.spec.priority, 42);
	}
}

static void test_unwrap(struct check *c)
{
	AUTO(buf_done) struct buf bytes = { .limit = 65536 };
	buf_put_bytes(&bytes, "k8s\0", 4);
	pb_put_bytes(&bytes, 1, STR("type"));
	pb_put_bytes(&bytes, 2, STR("inner"));
	struct str message;
	CHECK(c, "envelope", kobj_unwrap(buf_str(&bytes), &message));
	CHECK_STR(c, "inner", message, "inner");
	CHECK(c, "bare", kobj_unwrap(STR("bare"), &message));
	CHECK_STR(c, "bare", message, "bare");
	CHECK(c, "broken", !kobj_unwrap((struct str){ "k8s\0\x0a\x7f", 6 }, &message));
}

static void test_gpu_node(struct check *c, struct arena *arena)
{
	AUTO(json_decrefp) json_t *json = NULL;
	struct kobj_gpu_node node;
	struct err err = { 0 };
	err_status status = json_parse(
		STR("{\"metadata\":{\"name\":\"n\"},\"status\":{\"devices\":[{\"uuid\":\"GPU-1\","
		    "\"index\":3,\"model\":\"A100\",\"memoryMiB\":81920,\"healthy\":true}]}}"),
		&json, &err);
	CHECK_INT(c, "parses", status, ERR_OK);
	status = kobj_from_json(arena, &KOBJ_GPU_NODE, json, NULL, &node, &err);
	CHECK_INT(c, "decodes", status, ERR_OK);
	CHECK_STR(c, "uuid", node.devices.items[0].uuid, "GPU-1");
	CHECK_INT(c, "memory", node.devices.items[0].memory_mib, 81920);
	CHECK_INT(c, "index", node.devices.items[0].index, 3);
	CHECK_INT(c, "healthy", node.devices.items[0].healthy, 1);
}

static void test_limit(struct check *c)
{
	AUTO(arena_freep) struct arena *small = arena_new(1024);
	AUTO(json_decrefp) json_t *json = NULL;
	struct kobj_unknowns unknowns;
	struct kobj_pod pod;
	struct err err = { 0 };
	CHECK(c, "small arena", !pod_from_json(small, POD_JSON, &json, &unknowns, &pod, &err));
	CHECK_INT(c, "small arena", err.status, ERR_LIMIT);
	CHECK_INT(c, "and without a text", kobj_from_json(small, &KOBJ_POD, json, NULL, &pod, NULL),
		  ERR_LIMIT);
}

int main(void)
{
	struct check c = { 0 };
	AUTO(arena_freep) struct arena *arena = arena_new(1 << 20);
	test_json(&c, arena);
	test_json_faults(&c, arena);
	test_protobuf(&c, arena);
	test_protobuf_faults(&c, arena);
	test_unwrap(&c);
	test_gpu_node(&c, arena);
	test_limit(&c);
	return check_done(&c);
}

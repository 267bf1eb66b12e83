// SPDX-License-Identifier: Apache-2.0
// What the controllers make, member by member, the comparison that finds drift, and the
// configuration.
#include "check.h"
#include "daemons/server/config.h"
#include "daemons/server/manifests.h"

static json_t *parse(const char *text)
{
	json_t *value = NULL;
	struct err err;
	if (json_parse(str_of(text), &value, &err) != ERR_OK)
		printf("the test's own JSON: %s: %s\n", text, err.text);
	return value;
}

static struct str label(const json_t *object, const char *path, const char *key)
{
	const json_t *value = json_object_get(json_at(object, path), key);
	return (struct str){ json_string_value(value), json_string_length(value) };
}

static void check_tenant(struct check *c)
{
	AUTO(json_decrefp)
	json_t *tenant = parse("{\"metadata\":{\"name\":\"red\",\"uid\":\"u\"},\"spec\":{\"quota\":"
			       "{\"gpus\":4,\"cpu\":\"1500m\",\"memory\":\"1Gi\",\"pods\":5}}}");
	AUTO(json_decrefp) json_t *space = manifest_namespace(tenant);
	CHECK_STR(c, "label", label(space, "metadata.labels", LABEL_TENANT), "red");
	CHECK_STR(c, "level", label(space, "metadata.labels", "pod-security.kubernetes.io/enforce"),
		  "restricted");
	const json_t *owner = json_array_get(json_at(space, "metadata.ownerReferences"), 0);
	CHECK_STR(c, "owner", json_text(owner, "uid"), "u");
	struct manifest parts[MANIFEST_TENANT_PARTS];
	struct mig_names migs = { 0 };
	AUTO(json_decrefp)
	json_t *node =
		parse("{\"status\":{\"devices\":[{\"migProfiles\":[\"1g.10gb\",\"1g.10gb+me\","
		      "\"3g.40gb\",\"no name\",7]},{},{\"migProfiles\":[\"3g.40gb\"]}]}}");
	CHECK(c, "new ones", mig_names_learn(&migs, node));
	CHECK(c, "none new", !mig_names_learn(&migs, node));
	CHECK_INT(c, "names", migs.count, 3);
	manifest_tenant_parts(tenant, &migs, parts);
	CHECK_STR(c, "sevenths",
		  label(parts[0].body, "spec.hard", "requests.nvidia.com/mig-1g.10gb"), "28");
	CHECK_STR(c, "its name as a resource",
		  label(parts[0].body, "spec.hard", "requests.nvidia.com/mig-1g.10gb.me"), "28");
	CHECK_STR(c, "three sevenths",
		  label(parts[0].body, "spec.hard", "requests.nvidia.com/mig-3g.40gb"), "9");
	CHECK_STR(c, "gpus", label(parts[0].body, "spec.hard", "requests.nvidia.com/gpu"), "4");
	CHECK_STR(c, "by claims",
		  label(parts[0].body, "spec.hard",
			"gpu.gpuaas.io.deviceclass.resource.k8s.io/devices"),
		  "4");
	CHECK_STR(c, "MIG devices by claims",
		  label(parts[0].body, "spec.hard",
			"mig.gpuaas.io.deviceclass.resource.k8s.io/devices"),
		  "4");
	CHECK_STR(c, "shares", label(parts[0].body, "spec.hard", "requests.gpuaas.io/gpu-milli"),
		  "4k");
	CHECK_STR(c, "cpu", label(parts[0].body, "spec.hard", "requests.cpu"), "1500m");
	CHECK_STR(c, "memory", label(parts[0].body, "spec.hard", "requests.memory"), "1073741824");
	CHECK_STR(c, "no cpu limit", label(parts[0].body, "spec.hard", "limits.cpu"), "");
	CHECK_STR(c, "memory limit", label(parts[0].body, "spec.hard", "limits.memory"),
		  "1073741824");
	CHECK_STR(c, "node ports", label(parts[0].body, "spec.hard", "services.nodeports"), "0");
	CHECK_STR(c, "balancers", label(parts[0].body, "spec.hard", "services.loadbalancers"), "0");
	const json_t *each = json_array_get(json_at(parts[1].body, "spec.limits"), 0);
	CHECK_STR(c, "of memory", label(each, "default", "memory"), "512Mi");
	CHECK_STR(c, "of CPU none", label(each, "default", "cpu"), "");
	CHECK_STR(c, "what is counted", label(each, "defaultRequest", "cpu"), "100m");
	CHECK_STR(c, "what is counted", label(each, "defaultRequest", "memory"), "128Mi");
	const json_t *subject = json_array_get(json_at(parts[4].body, "subjects"), 0);
	CHECK_STR(c, "group", json_text(subject, "name"), "gpuaas:red:member");
	for (size_t i = 0; i < MANIFEST_TENANT_PARTS; i++) {
		CHECK_STR(c, parts[i].name, json_text(parts[i].body, "metadata.namespace"), "red");
		CHECK_STR(c, parts[i].name,
			  label(parts[i].body, "metadata.labels", LABEL_MANAGED_BY),
			  "gpuaas-server");
		json_decref(parts[i].body);
	}
}

// A share of one GPU in place of whole ones.
static void check_share(struct check *c)
{
	AUTO(json_decrefp)
	json_t *request =
		parse("{\"metadata\":{\"name\":\"j\",\"namespace\":\"red\",\"uid\":\"u\"},\"spec\":"
		      "{\"gpuMilli\":125,\"gpuMemory\":\"10000Mi\",\"image\":\"i\"}}");
	AUTO(json_decrefp) json_t *job = manifest_job(request);
	const json_t *containers = json_at(job, "spec.template.spec.containers");
	const json_t *container = json_array_get(containers, 0);
	CHECK_STR(c, "milli", label(container, "resources.limits", "gpuaas.io/gpu-milli"), "125");
	CHECK_STR(c, "asked", label(container, "resources.requests", "gpuaas.io/gpu-milli"), "125");
	CHECK_STR(c, "memory", label(container, "resources.limits", "gpuaas.io/gpu-memory"), "40");
	CHECK_STR(c, "none whole", label(container, "resources.limits", "nvidia.com/gpu"), "");
	CHECK_STR(c, "of any GPU",
		  label(job, "spec.template.metadata.annotations", "gpuaas.io/min-gpu-memory"), "");
}

// One MIG device in place of GPUs.
static void check_mig(struct check *c)
{
	AUTO(json_decrefp)
	json_t *request =
		parse("{\"metadata\":{\"name\":\"j\",\"namespace\":\"red\",\"uid\":\"u\"},\"spec\":"
		      "{\"migProfile\":\"1g.10gb+me\",\"image\":\"i\"}}");
	AUTO(json_decrefp) json_t *job = manifest_job(request);
	const json_t *containers = json_at(job, "spec.template.spec.containers");
	const json_t *container = json_array_get(containers, 0);
	static const char NAME[] = "nvidia.com/mig-1g.10gb.me";
	CHECK_STR(c, "limit", label(container, "resources.limits", NAME), "1");
	CHECK_STR(c, "asked", label(container, "resources.requests", NAME), "1");
	CHECK_STR(c, "no GPU", label(container, "resources.limits", "nvidia.com/gpu"), "");
	CHECK_STR(c, "no share", label(container, "resources.limits", "gpuaas.io/gpu-milli"), "");
}

// So many pods at once, members of one gang by the Job's own word.
static void check_gang(struct check *c)
{
	AUTO(json_decrefp)
	json_t *request =
		parse("{\"metadata\":{\"name\":\"j\",\"namespace\":\"red\",\"uid\":\"u\"},\"spec\":"
		      "{\"gpus\":8,\"gang\":4,\"image\":\"i\"}}");
	AUTO(json_decrefp) json_t *job = manifest_job(request);
	CHECK_STR(c, "gang", label(job, "spec.template.metadata.annotations", "gpuaas.io/gang"),
		  "j");
	CHECK_INT(c, "at once", json_int(job, "spec.parallelism", 0), 4);
	CHECK_INT(c, "in all", json_int(job, "spec.completions", 0), 4);
	CHECK_STR(c, "with numbers", json_text(job, "spec.completionMode"), "Indexed");
}

static void check_job(struct check *c)
{
	AUTO(json_decrefp)
	json_t *request =
		parse("{\"metadata\":{\"name\":\"j\",\"namespace\":\"red\",\"uid\":\"u\"},\"spec\":"
		      "{\"gpus\":2,"
		      "\"gpuModels\":[\"A\",\"B\"],\"gpuMemory\":\"40Gi\",\"cpu\":\"500m\","
		      "\"memory\":\"2Gi\","
		      "\"class\":\"training\",\"durationSeconds\":60,\"maxDurationSeconds\":120,"
		      "\"image\":"
		      "\"i\",\"args\":[\"-x\"],\"env\":[{\"name\":\"A\",\"value\":\"b\"}]}}");
	AUTO(json_decrefp) json_t *job = manifest_job(request);
	const char *pod = "spec.template.spec", *notes = "spec.template.metadata.annotations";
	const json_t *spec = json_at(job, pod);
	const json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
	CHECK_STR(c, "id", label(job, "spec.template.metadata.labels", LABEL_REQUEST), "red.j");
	CHECK_STR(c, "models", label(job, notes, "gpuaas.io/gpu-models"), "A,B");
	CHECK_STR(c, "memory", label(job, notes, "gpuaas.io/min-gpu-memory"), "40960Mi");
	CHECK_STR(c, "duration", label(job, notes, "gpuaas.io/duration"), "60");
	CHECK_STR(c, "scheduler", json_text(spec, "schedulerName"), "gpuaas");
	CHECK_STR(c, "class", json_text(spec, "priorityClassName"), "gpuaas-training");
	CHECK_INT(c, "end", json_int(spec, "activeDeadlineSeconds", 0), 120);
	CHECK_INT(c, "tries", json_int(job, "spec.backoffLimit", 9), 2);
	const json_t *rules = json_at(job, "spec.podFailurePolicy.rules");
	const json_t *own = json_array_get(rules, 1);
	CHECK_STR(c, "its own failure ends it", json_text(own, "action"), "FailJob");
	CHECK_STR(c, "with all codes", json_text(own, "onExitCodes.operator"), "NotIn");
	CHECK_INT(c, "but the runtime's",
		  json_integer_value(json_array_get(json_at(own, "onExitCodes.values"), 0)), 128);
	CHECK_STR(c, "restart", json_text(spec, "restartPolicy"), "Never");
	CHECK(c, "not root", json_bool(spec, "securityContext.runAsNonRoot", false));
	CHECK_STR(c, "seccomp", json_text(spec, "securityContext.seccompProfile.type"),
		  "RuntimeDefault");
	CHECK(c, "no token", !json_bool(spec, "automountServiceAccountToken", true));
	CHECK_STR(c, "gpus", label(container, "resources.limits", "nvidia.com/gpu"), "2");
	CHECK_STR(c, "cpu", label(container, "resources.requests", "cpu"), "500m");
	CHECK_STR(c, "a part of a CPU is a share", label(container, "resources.limits", "cpu"), "");
	CHECK(c, "no more rights",
	      !json_bool(container, "securityContext.allowPrivilegeEscalation", true));
	CHECK_STR(c, "env", json_text(json_array_get(json_object_get(container, "env"), 0), "name"),
		  "A");
	(void)json_object_set_new(json_object_get(request, "spec"), "cpu", json_string("2"));
	AUTO(json_decrefp) json_t *whole = manifest_job(request);
	container = json_array_get(json_at(whole, "spec.template.spec.containers"), 0);
	CHECK_STR(c, "CPUs of its own", label(container, "resources.limits", "cpu"), "2000m");
	(void)json_object_set_new(json_object_get(request, "spec"), "cpu", json_string("500m"));
	AUTO(json_decrefp) json_t *again = manifest_job(request);
	CHECK(c, "the same each time", json_equal(job, again) == 1);
}

static const struct {
	const char *name, *wanted, *actual;
	bool good;
} covers[] = {
	{ "same", "{\"a\":1}", "{\"a\":1}", true },
	{ "more in an object", "{\"a\":1}", "{\"a\":1,\"b\":2}", true },
	{ "other value", "{\"a\":1}", "{\"a\":2}", false },
	{ "missing", "{\"a\":1}", "{}", false },
	{ "more in an array", "{\"a\":[1]}", "{\"a\":[1,2]}", false },
	{ "inside an array", "{\"a\":[{\"x\":1}]}", "{\"a\":[{\"x\":1,\"y\":2}]}", true },
	{ "empty object", "{\"a\":{}}", "{\"a\":{\"b\":1}}", true },
	{ "absent empty object", "{\"a\":{}}", "{}", true },
	{ "other type", "{\"a\":{\"b\":1}}", "{\"a\":5}", false },
};

static const struct {
	const char *name, *text;
	bool good;
} configs[] = {
	{ "smallest", "tls: {cert: c, key: k}\nstore: sqlite:x\naudit: {dir: d}\n", true },
	{ "JSON",
	  "{\"tls\":{\"cert\":\"c\",\"key\":\"k\"},\"store\":\"sqlite:x\",\"audit\":{\"dir\":"
	  "\"d\"}}",
	  true },
	{ "unknown key", "tls: {cert: c, key: k}\nstore: sqlite:x\naudit: {dir: d}\nport: 5\n",
	  false },
	{ "unknown key inside",
	  "tls: {cert: c, key: k, keys: x}\nstore: sqlite:x\naudit: {dir: d}\n", false },
	{ "without TLS", "store: sqlite:x\naudit: {dir: d}\n", false },
	{ "without a store", "tls: {cert: c, key: k}\naudit: {dir: d}\n", false },
	{ "limit of zero",
	  "tls: {cert: c, key: k}\nstore: x\naudit: {dir: d}\nlimits: {burst: 0}\n", false },
	{ "no YAML", "tls: [", false },
	{ "empty", "", false },
};

static void check_config(struct check *c)
{
	for (size_t i = 0; i < ARRAY_COUNT(configs); i++) {
		AUTO(server_config_done) struct server_config config = { .listen = "untouched" };
		struct err err = { 0 };
		err_status status = server_config_parse(str_of(configs[i].text), &config, &err);
		CHECK(c, configs[i].name, (status == ERR_OK) == configs[i].good);
		CHECK_STR(c, configs[i].name, str_of(config.listen),
			  configs[i].good ? "0.0.0.0:8443" : "untouched");
		CHECK(c, configs[i].name, configs[i].good || err.text[0] != '\0');
		AUTO(buf_done) struct buf out = { .limit = 0 };
		if (configs[i].good)
			server_config_print(&config, &out);
		json_t *printed = NULL;
		if (configs[i].good)
			CHECK_INT(c, "print", json_parse(buf_str(&out), &printed, &err), ERR_OK);
		json_decref(printed);
	}
}

int main(void)
{
	struct check c = { 0, 0 };
	check_tenant(&c);
	check_job(&c);
	check_share(&c);
	check_mig(&c);
	check_gang(&c);
	for (size_t i = 0; i < ARRAY_COUNT(covers); i++) {
		AUTO(json_decrefp) json_t *wanted = parse(covers[i].wanted);
		AUTO(json_decrefp) json_t *actual = parse(covers[i].actual);
		CHECK(&c, covers[i].name, manifest_is_covered(wanted, actual) == covers[i].good);
	}
	check_config(&c);
	return check_done(&c);
}

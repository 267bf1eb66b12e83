// SPDX-License-Identifier: Apache-2.0
#include "feed/feed_claim.h"

#include "base/quantity.h"
#include "feed/spec_parts.h"
#include "sched/claim_cel.h"

enum { ARENA_MAX_BYTES = 4 * 1024 * 1024, TROUBLE_BYTES = 200, COUNT_MAX = 64 };
static const struct str DRIVER = { "gpu.gpuaas.io", 13 };

const struct feed_claim_kind FEED_CLAIM_KINDS[SCHED_CLAIM_KINDS] = {
	[SCHED_DEVICE_CLAIM] = { "/apis/" FEED_CLAIMS_VERSION "/resourceclaims", "ResourceClaim" },
	[SCHED_DEVICE_CLASS] = { "/apis/" FEED_CLAIMS_VERSION "/deviceclasses", "DeviceClass" },
	[SCHED_SLICE] = { "/apis/" FEED_CLAIMS_VERSION "/resourceslices", "ResourceSlice" },
};

struct reader {
	struct arena *arena;
	bool failed;
	char trouble[TROUBLE_BYTES]; // the first one
};

static struct str keep(struct reader *reader, struct str text)
{
	struct str copy = arena_dup(reader->arena, text);
	reader->failed = reader->failed || copy.data == NULL;
	return copy;
}

static void *list_of(struct reader *reader, size_t count, size_t size_bytes)
{
	void *memory = arena_alloc_array(reader->arena, count, size_bytes);
	reader->failed = reader->failed || memory == NULL;
	return memory;
}

static void object_to(struct reader *reader, const char *what)
{
	if (reader->trouble[0] == '\0')
		(void)snprintf(reader->trouble, sizeof reader->trouble, "%s", what);
}

// A name of an attribute is of the driver's domain unless it has its own.
static void split(struct reader *reader, struct str full, struct str *ret_domain,
		  struct str *ret_name)
{
	size_t slash = str_find_byte(full, '/', 0);
	bool has_domain = slash != SIZE_MAX;
	*ret_domain = has_domain ? keep(reader, str_slice(full, 0, slash)) : DRIVER;
	*ret_name = keep(reader, has_domain ? str_slice(full, slash + 1, full.len) : full);
}

static struct str *read_selectors(struct reader *reader, const json_t *list, size_t *ret_count)
{
	static const struct sched_pool_device NONE;
	size_t count = json_array_size(list);
	struct str *selectors = list_of(reader, count, sizeof *selectors);
	for (size_t i = 0; selectors != NULL && i < count; i++) {
		struct str text = json_text(json_array_get(list, i), "cel.expression");
		if (text.len == 0 || claim_cel_eval(text, DRIVER, &NONE) == CLAIM_CEL_UNSUPPORTED)
			object_to(reader, "an expression that this scheduler cannot evaluate");
		selectors[i] = keep(reader, text);
	}
	*ret_count = selectors == NULL ? 0 : count;
	return selectors;
}

static void read_tolerations(struct reader *reader, const json_t *list,
			     struct sched_claim_request *request)
{
	size_t count = json_array_size(list);
	request->tolerations = list_of(reader, count, sizeof *request->tolerations);
	for (size_t i = 0; request->tolerations != NULL && i < count; i++) {
		const json_t *from = json_array_get(list, i);
		request->tolerations[request->toleration_count++] = (struct sched_toleration){
			.key = keep(reader, json_text(from, "key")),
			.value = keep(reader, json_text(from, "value")),
			.any_value = str_eq_c(json_text(from, "operator"), "Exists"),
			.effect = keep(reader, json_text(from, "effect")),
		};
	}
}

static void read_request(struct reader *reader, const json_t *json, struct sched_claim_request *to)
{
	const json_t *exactly = json_at(json, "exactly");
	struct str mode = json_text(exactly, "allocationMode");
	bool is_all = str_eq_c(mode, "All");
	to->name = keep(reader, json_text(json, "name"));
	if (exactly == NULL || json_at(json, "firstAvailable") != NULL)
		object_to(reader, "firstAvailable");
	if (json_bool(exactly, "adminAccess", false))
		object_to(reader, "adminAccess");
	if (json_at(exactly, "capacity") != NULL)
		object_to(reader, "capacity of a request");
	if (!is_all && mode.len > 0 && !str_eq_c(mode, "ExactCount"))
		object_to(reader, "allocationMode");
	to->class_name = keep(reader, json_text(exactly, "deviceClassName"));
	to->count = is_all ? 0 : json_int(exactly, "count", 1);
	if (!is_all && (to->count < 1 || to->count > COUNT_MAX))
		object_to(reader, "count");
	to->selectors = read_selectors(reader, json_at(exactly, "selectors"), &to->selector_count);
	read_tolerations(reader, json_at(exactly, "tolerations"), to);
}

static void read_match(struct reader *reader, const json_t *json, struct sched_claim_match *to)
{
	const json_t *requests = json_at(json, "requests");
	struct str attribute = json_text(json, "matchAttribute");
	size_t count = json_array_size(requests);
	if (attribute.len == 0)
		object_to(reader, "distinctAttribute");
	split(reader, attribute, &to->domain, &to->name);
	to->requests = list_of(reader, count, sizeof *to->requests);
	for (size_t i = 0; to->requests != NULL && i < count; i++) {
		const json_t *name = json_array_get(requests, i);
		to->requests[to->request_count++] = keep(
			reader, (struct str){ json_string_value(name), json_string_length(name) });
	}
}

static void read_given(struct reader *reader, const json_t *json, struct sched_device_claim_in *to)
{
	const json_t *results = json_at(json, "status.allocation.devices.results");
	size_t count = json_array_size(results);
	to->is_allocated = json_is_object(json_at(json, "status.allocation"));
	to->given = list_of(reader, count, sizeof *to->given);
	for (size_t i = 0; to->given != NULL && i < count; i++) {
		const json_t *from = json_array_get(results, i);
		if (!str_eq(json_text(from, "driver"), DRIVER)) {
			object_to(reader, "a device of another driver");
			continue;
		}
		// With access as an administrator it is nobody's.
		if (json_bool(from, "adminAccess", false))
			continue;
		to->given[to->given_count++] =
			(struct sched_claim_given){ keep(reader, json_text(from, "pool")),
						    keep(reader, json_text(from, "device")) };
	}
}

static void read_reserved(struct reader *reader, const json_t *list,
			  struct sched_device_claim_in *to)
{
	size_t count = json_array_size(list);
	to->reserved = list_of(reader, count, sizeof *to->reserved);
	for (size_t i = 0; to->reserved != NULL && i < count; i++)
		to->reserved[to->reserved_count++] =
			keep(reader, json_text(json_array_get(list, i), "uid"));
}

static void read_claim(struct reader *reader, const json_t *json, struct sched_device_claim_in *to)
{
	const json_t *requests = json_at(json, "spec.devices.requests");
	const json_t *constraints = json_at(json, "spec.devices.constraints");
	size_t count = json_array_size(requests), matches = json_array_size(constraints);
	if (count > SCHED_CLAIM_REQUESTS_MAX)
		object_to(reader, "more than 16 requests");
	if (count == 0)
		object_to(reader, "no request");
	if (json_array_size(json_at(json, "spec.devices.config")) > 0)
		object_to(reader, "config");
	count = min_size(count, SCHED_CLAIM_REQUESTS_MAX);
	to->requests = list_of(reader, count, sizeof *to->requests);
	to->matches = list_of(reader, matches, sizeof *to->matches);
	for (size_t i = 0; to->requests != NULL && i < count; i++)
		read_request(reader, json_array_get(requests, i),
			     &to->requests[to->request_count++]);
	for (size_t i = 0; to->matches != NULL && i < matches; i++)
		read_match(reader, json_array_get(constraints, i), &to->matches[to->match_count++]);
	to->uid = keep(reader, json_text(json, "metadata.uid"));
	to->version = keep(reader, json_text(json, "metadata.resourceVersion"));
	to->is_deleting = json_text(json, "metadata.deletionTimestamp").len > 0;
	read_reserved(reader, json_at(json, "status.reservedFor"), to);
	read_given(reader, json, to);
	to->trouble = keep(reader, str_of(reader->trouble));
}

static void read_class(struct reader *reader, const json_t *json, struct sched_device_class_in *to)
{
	const json_t *selectors = json_at(json, "spec.selectors");
	if (json_array_size(json_at(json, "spec.config")) > 0)
		object_to(reader, "config of the class");
	to->selectors = read_selectors(reader, selectors, &to->selector_count);
	to->trouble = keep(reader, str_of(reader->trouble));
}

static void read_attribute(struct reader *reader, const char *name, const json_t *json,
			   struct sched_attribute *to)
{
	split(reader, str_of(name), &to->domain, &to->name);
	const json_t *number = json_object_get(json, "int"), *flag = json_object_get(json, "bool");
	struct str version = json_text(json, "version");
	to->text = keep(reader, json_text(json, "string"));
	if (number != NULL) {
		to->kind = SCHED_ATTRIBUTE_INT;
		to->number = json_integer_value(number);
	} else if (flag != NULL) {
		to->kind = SCHED_ATTRIBUTE_BOOL;
		to->number = json_is_true(flag);
	} else if (version.len > 0 && sched_version_parse(version, &to->version)) {
		to->kind = SCHED_ATTRIBUTE_VERSION;
	}
}

static void read_device(struct reader *reader, const json_t *json, struct sched_pool_device *to)
{
	json_t *attributes = json_at(json, "attributes"), *capacity = json_at(json, "capacity");
	const json_t *taints = json_at(json, "taints");
	const char *name;
	json_t *value;
	to->name = keep(reader, json_text(json, "name"));
	to->attributes = list_of(reader, json_object_size(attributes), sizeof *to->attributes);
	to->capacities = list_of(reader, json_object_size(capacity), sizeof *to->capacities);
	to->taints = list_of(reader, json_array_size(taints), sizeof *to->taints);
	if (reader->failed)
		return;
	json_object_foreach(attributes, name, value)
		read_attribute(reader, name, value, &to->attributes[to->attribute_count++]);
	json_object_foreach(capacity, name, value)
	{
		struct sched_capacity *item = &to->capacities[to->capacity_count++];
		split(reader, str_of(name), &item->domain, &item->name);
		if (!quantity_to_units(json_text(value, "value"), &item->amount))
			item->amount = 0;
	}
	for (size_t i = 0; i < json_array_size(taints); i++) {
		const json_t *taint = json_array_get(taints, i);
		to->taints[to->taint_count++] =
			(struct sched_device_taint){ keep(reader, json_text(taint, "key")),
						     keep(reader, json_text(taint, "value")),
						     keep(reader, json_text(taint, "effect")) };
	}
}

static bool read_slice(struct reader *reader, const json_t *json, struct sched_slice_in *to)
{
	const json_t *devices = json_at(json, "spec.devices");
	size_t count = min_size(json_array_size(devices), COUNT_MAX);
	to->node = keep(reader, json_text(json, "spec.nodeName"));
	// Our agents write one slice a node, whose pool has the node's name.
	if (!str_eq(json_text(json, "spec.driver"), DRIVER) || to->node.len == 0 ||
	    !str_eq(json_text(json, "spec.pool.name"), to->node) ||
	    json_int(json, "spec.pool.resourceSliceCount", 0) != 1)
		return false;
	to->devices = list_of(reader, count, sizeof *to->devices);
	for (size_t i = 0; to->devices != NULL && i < count; i++)
		read_device(reader, json_array_get(devices, i), &to->devices[to->device_count++]);
	return true;
}

struct str feed_claim_key(struct arena *arena, const json_t *json)
{
	struct str namespace_ = json_text(json, "metadata.namespace");
	struct str name = json_text(json, "metadata.name");
	if (namespace_.len == 0)
		return arena_dup(arena, name);
	return str_of(arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(namespace_), STR_ARG(name)));
}

struct sched_claim_object *feed_claim_object(sched_claim_kind kind, const json_t *json)
{
	struct reader reader = { .arena = arena_new(ARENA_MAX_BYTES) };
	struct sched_claim_object *object =
		reader.arena == NULL ? NULL : ARENA_NEW(reader.arena, struct sched_claim_object);
	bool is_used = object != NULL;
	if (object != NULL) {
		object->kind = kind;
		object->arena = reader.arena;
		object->key = feed_claim_key(reader.arena, json);
		if (kind == SCHED_DEVICE_CLAIM)
			read_claim(&reader, json, &object->claim);
		else if (kind == SCHED_DEVICE_CLASS)
			read_class(&reader, json, &object->class_);
		else
			is_used = read_slice(&reader, json, &object->slice);
	}
	if (is_used && !reader.failed && object->key.len > 0)
		return object;
	arena_free(reader.arena);
	return NULL;
}

// The claim of the name that was made from a template; empty: not yet.
static struct str made_for(const struct kobj_pod *pod, struct str name)
{
	for (size_t i = 0; i < pod->status.claims.count; i++) {
		if (str_eq(pod->status.claims.items[i].name, name))
			return pod->status.claims.items[i].claim;
	}
	return STR("");
}

void build_device_claims(struct build *build)
{
	const struct kobj_pod *pod = build->pod;
	struct sched_spec *spec = build->spec;
	size_t count = pod->spec.claims.count;
	if (count > SCHED_CLAIM_REQUESTS_MAX)
		build_refuse(build, SCHED_CODE_UNSUPPORTED_VALUE, "more than %d resource claims",
			     SCHED_CLAIM_REQUESTS_MAX);
	count = min_size(count, SCHED_CLAIM_REQUESTS_MAX);
	spec->device_claims = build_alloc(build, count, sizeof *spec->device_claims);
	for (size_t i = 0; spec->device_claims != NULL && i < count; i++) {
		const struct kobj_claim_ref *ref = &pod->spec.claims.items[i];
		struct str name = ref->claim.len > 0 ? ref->claim : made_for(pod, ref->name);
		char *key = arena_printf(build->arena, STR_FMT "/" STR_FMT,
					 STR_ARG(pod->meta.namespace_), STR_ARG(name));
		build->failed = build->failed || key == NULL;
		spec->device_claims[spec->device_claim_count++] = str_of(key);
	}
}

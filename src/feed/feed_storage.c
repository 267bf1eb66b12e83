// SPDX-License-Identifier: Apache-2.0
#include "feed/feed_storage.h"

#include "base/quantity.h"
#include "feed/spec_parts.h"

static const char CLASS_ANNOTATION[] = "volume.beta.kubernetes.io/storage-class";

static uint32_t read_modes(const struct kobj_texts *modes)
{
	static const struct {
		const char *name;
		uint32_t mode;
	} MODES[] = {
		{ "ReadWriteOnce", SCHED_MODE_RWO },
		{ "ReadOnlyMany", SCHED_MODE_ROX },
		{ "ReadWriteMany", SCHED_MODE_RWX },
		{ "ReadWriteOncePod", SCHED_MODE_RWOP },
	};
	uint32_t set = 0;
	for (size_t i = 0; i < modes->count; i++) {
		for (size_t k = 0; k < ARRAY_COUNT(MODES); k++)
			set |= str_eq_c(modes->items[i], MODES[k].name) ? MODES[k].mode : 0;
	}
	return set;
}

// The annotation is older than the field and goes before it.
static struct str class_of(const struct kobj_meta *meta, struct str class_name)
{
	struct str text = kobj_pairs_get(&meta->annotations, str_of(CLASS_ANNOTATION));
	return text.data != NULL ? text : class_name;
}

static struct str key_of(struct arena *arena, struct str namespace_, struct str name)
{
	return str_of(arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(namespace_), STR_ARG(name)));
}

// Selectors of storage objects go through the same code as those of pods; one with an operator
// that nobody knows matches nothing.
struct reader {
	struct build build;
	struct sched_spec spec;
	struct sched_refusal refusals[1];
};

static void reader_init(struct reader *reader, struct arena *arena)
{
	*reader = (struct reader){ .build = { .arena = arena } };
	reader->build.spec = &reader->spec;
	reader->spec.refusals = reader->refusals;
	reader->build.refusal_cap = ARRAY_COUNT(reader->refusals);
}

static bool reader_refused(struct reader *reader)
{
	bool refused = reader->spec.refusal_count > 0;
	reader->spec.refusal_count = 0;
	return refused;
}

static struct sched_selector read_selector(struct reader *reader,
					   const struct kobj_label_selector *source)
{
	struct sched_selector out = build_label_selector(&reader->build, source);
	out.is_nothing = out.is_nothing || reader_refused(reader);
	return out;
}

static bool read_claim(struct arena *arena, const void *object, struct sched_storage_in *ret_in)
{
	const struct kobj_claim *claim = object;
	struct reader reader;
	struct sched_claim_in in = {
		.uid = claim->meta.uid,
		.version = claim->meta.resource_version,
		.class_name = class_of(&claim->meta, claim->class_name),
		.volume_name = claim->volume_name,
		.attributes_class = claim->attributes_class,
		.selected_node = kobj_pairs_get(&claim->meta.annotations, STR(FEED_SELECTED_NODE)),
		.modes = read_modes(&claim->access_modes),
		.is_block = str_eq_c(claim->volume_mode, "Block"),
		.is_lost = str_eq_c(claim->phase, "Lost"),
		.is_deleting = claim->meta.deleted_s != 0,
	};
	struct str completed = kobj_pairs_get(&claim->meta.annotations, STR(FEED_BIND_COMPLETED));
	struct str size = kobj_pairs_get(&claim->requests, STR("storage"));
	in.is_complete = completed.data != NULL;
	if (size.data != NULL && !quantity_to_units(size, &in.size_bytes))
		in.size_bytes = INT64_MAX;
	for (size_t i = 0; i < claim->owners.count; i++) {
		if (claim->owners.items[i].is_controller)
			in.owner_uid = claim->owners.items[i].uid;
	}
	reader_init(&reader, arena);
	if (claim->selector != NULL)
		in.selector = read_selector(&reader, claim->selector);
	*ret_in = (struct sched_storage_in){
		.kind = SCHED_CLAIM,
		.key = key_of(arena, claim->meta.namespace_, claim->meta.name),
		.claim = in,
	};
	return !reader.build.failed && ret_in->key.data != NULL;
}

// A term that cannot be read matches no node: it stays in the list as an empty one.
static bool read_terms(struct arena *arena, const struct kobj_node_selector *source,
		       struct sched_volume_in *in)
{
	struct reader reader;
	reader_init(&reader, arena);
	in->has_terms = source != NULL;
	if (source == NULL)
		return true;
	in->term_count = source->terms.count;
	in->terms = build_alloc(&reader.build, in->term_count, sizeof *in->terms);
	for (size_t i = 0; in->terms != NULL && i < in->term_count; i++) {
		in->terms[i] = build_node_term(&reader.build, &source->terms.items[i]);
		if (reader_refused(&reader))
			in->terms[i] = (struct sched_node_term){ .labels = { .count = 0 } };
	}
	return !reader.build.failed;
}

static bool read_volume(struct arena *arena, const void *object, struct sched_storage_in *ret_in)
{
	const struct kobj_persistent *volume = object;
	struct sched_volume_in in = {
		.version = volume->meta.resource_version,
		.class_name = class_of(&volume->meta, volume->class_name),
		.attributes_class = volume->attributes_class,
		.labels = feed_labels(&volume->meta.labels),
		.modes = read_modes(&volume->access_modes),
		.is_block = str_eq_c(volume->volume_mode, "Block"),
		.is_available = str_eq_c(volume->phase, "Available"),
		.is_deleting = volume->meta.deleted_s != 0,
		.is_cloud = volume->is_cloud,
	};
	struct str size = kobj_pairs_get(&volume->capacity, STR("storage"));
	if (!quantity_to_units(size, &in.size_bytes))
		in.size_bytes = 0;
	if (volume->csi != NULL) {
		in.driver = volume->csi->driver;
		in.handle = volume->csi->handle;
	}
	if (volume->claim != NULL) {
		in.has_claim = true;
		in.claim_key = key_of(arena, volume->claim->namespace_, volume->claim->name);
		in.claim_uid = volume->claim->uid;
	}
	if (!read_terms(arena, volume->node_affinity, &in))
		return false;
	*ret_in = (struct sched_storage_in){ .kind = SCHED_VOLUME, .key = volume->meta.name };
	ret_in->volume = in;
	return true;
}

static bool read_class(struct arena *arena, const void *object, struct sched_storage_in *ret_in)
{
	const struct kobj_storage_class *class_ = object;
	struct sched_class_in in = {
		.provisioner = class_->provisioner,
		.is_delayed = str_eq_c(class_->binding_mode, "WaitForFirstConsumer"),
		.topology_count = class_->topologies.count,
	};
	in.topologies = ARENA_ARRAY(arena, struct sched_selector, in.topology_count);
	for (size_t i = 0; in.topologies != NULL && i < in.topology_count; i++) {
		const struct kobj_topology_term *term = &class_->topologies.items[i];
		struct sched_selector *out = &in.topologies[i];
		out->items = ARENA_ARRAY(arena, struct sched_requirement, term->labels.count);
		if (out->items == NULL)
			return false;
		for (size_t k = 0; k < term->labels.count; k++) {
			const struct kobj_topology_label *label = &term->labels.items[k];
			out->items[out->count++] = (struct sched_requirement){
				label->key, SCHED_IN, label->values.items, label->values.count
			};
		}
	}
	*ret_in = (struct sched_storage_in){ .kind = SCHED_CLASS, .key = class_->meta.name };
	ret_in->class_ = in;
	return in.topologies != NULL;
}

static bool read_csi_node(struct arena *arena, const void *object, struct sched_storage_in *ret_in)
{
	const struct kobj_csi_node *node = object;
	struct sched_csi_node_in in = { .limit_count = node->drivers.count };
	in.limits = ARENA_ARRAY(arena, struct sched_driver_limit, in.limit_count);
	for (size_t i = 0; in.limits != NULL && i < in.limit_count; i++) {
		const struct kobj_csi_node_driver *driver = &node->drivers.items[i];
		in.limits[i].driver = driver->name;
		in.limits[i].volumes_max = driver->allocatable == NULL ? SCHED_NO_VOLUME_LIMIT
								       : driver->allocatable->count;
	}
	*ret_in = (struct sched_storage_in){ .kind = SCHED_CSI_NODE, .key = node->meta.name };
	ret_in->csi_node = in;
	return in.limits != NULL;
}

static bool read_csi_driver(struct arena *arena, const void *object,
			    struct sched_storage_in *ret_in)
{
	const struct kobj_csi_driver *driver = object;
	(void)arena;
	*ret_in = (struct sched_storage_in){ .kind = SCHED_CSI_DRIVER,
					     .key = driver->meta.name,
					     .csi_driver = { driver->has_capacity } };
	return true;
}

static bool read_capacity(struct arena *arena, const void *object, struct sched_storage_in *ret_in)
{
	const struct kobj_csi_capacity *capacity = object;
	struct sched_capacity_in in = { .class_name = capacity->class_name };
	struct str size = capacity->volume_size_max.len > 0 ? capacity->volume_size_max
							    : capacity->capacity;
	struct reader reader;
	reader_init(&reader, arena);
	in.nodes = read_selector(&reader, capacity->topology);
	if (!quantity_to_units(size, &in.size_bytes))
		in.nodes.is_nothing = true;
	*ret_in = (struct sched_storage_in){
		.kind = SCHED_CAPACITY,
		.key = key_of(arena, capacity->meta.namespace_, capacity->meta.name),
		.capacity = in,
	};
	return !reader.build.failed && ret_in->key.data != NULL;
}

static bool read_attachment(struct arena *arena, const void *object,
			    struct sched_storage_in *ret_in)
{
	const struct kobj_attachment *attachment = object;
	(void)arena;
	*ret_in = (struct sched_storage_in){ .kind = SCHED_ATTACHMENT,
					     .key = attachment->meta.name,
					     .attachment = { attachment->attacher,
							     attachment->node_name,
							     attachment->volume_name } };
	return true;
}

const struct feed_storage FEED_STORAGES[SCHED_STORAGES] = {
	[SCHED_CLAIM] = { "PersistentVolumeClaim", "v1", "/api/v1/persistentvolumeclaims", true,
			  &KOBJ_CLAIM, read_claim },
	[SCHED_VOLUME] = { "PersistentVolume", "v1", "/api/v1/persistentvolumes", true,
			   &KOBJ_PERSISTENT, read_volume },
	[SCHED_CLASS] = { "StorageClass", "storage.k8s.io/v1",
			  "/apis/storage.k8s.io/v1/storageclasses", true, &KOBJ_STORAGE_CLASS,
			  read_class },
	[SCHED_CSI_NODE] = { "CSINode", "storage.k8s.io/v1", "/apis/storage.k8s.io/v1/csinodes",
			     true, &KOBJ_CSI_NODE, read_csi_node },
	[SCHED_CSI_DRIVER] = { "CSIDriver", "storage.k8s.io/v1",
			       "/apis/storage.k8s.io/v1/csidrivers", true, &KOBJ_CSI_DRIVER,
			       read_csi_driver },
	[SCHED_CAPACITY] = { "CSIStorageCapacity", "storage.k8s.io/v1",
			     "/apis/storage.k8s.io/v1/csistoragecapacities", false,
			     &KOBJ_CSI_CAPACITY, read_capacity },
	[SCHED_ATTACHMENT] = { "VolumeAttachment", "storage.k8s.io/v1",
			       "/apis/storage.k8s.io/v1/volumeattachments", true, &KOBJ_ATTACHMENT,
			       read_attachment },
};

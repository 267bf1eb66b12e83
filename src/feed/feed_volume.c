// SPDX-License-Identifier: Apache-2.0
// Volumes of a pod, as far as they decide where it may run.
#include "feed/spec_parts.h"

static void add_claim(struct build *build, const struct kobj_volume *volume)
{
	struct sched_spec *spec = build->spec;
	const struct kobj_meta *meta = &build->pod->meta;
	struct sched_claim_ref *claim = &spec->claims[spec->claim_count++];
	*claim = (struct sched_claim_ref){ .namespace_ = meta->namespace_ };
	if (volume->source.claim != NULL) {
		claim->name = volume->source.claim->claim_name;
		return;
	}
	claim->name = str_of(arena_printf(build->arena, STR_FMT "-" STR_FMT, STR_ARG(meta->name),
					  STR_ARG(volume->name)));
	claim->is_ephemeral = true;
	claim->owner_uid = meta->uid;
	build->failed = build->failed || claim->name.data == NULL;
}

static void add_disk(struct build *build, const struct kobj_volume_source *source)
{
	struct sched_spec *spec = build->spec;
	struct sched_disk *disk = &spec->disks[spec->disk_count++];
	if (source->iscsi != NULL) {
		*disk = (struct sched_disk){ .id = source->iscsi->iqn,
					     .is_read_only = source->iscsi->is_read_only };
		return;
	}
	const struct kobj_rbd_source *rbd = source->rbd;
	*disk = (struct sched_disk){ .is_rbd = true,
				     .monitors = rbd->monitors.items,
				     .monitor_count =
					     build_limit(build, rbd->monitors.count, "monitors"),
				     .is_read_only = rbd->is_read_only };
	disk->id = str_of(arena_printf(build->arena, STR_FMT "/" STR_FMT, STR_ARG(rbd->pool),
				       STR_ARG(rbd->image)));
	build->failed = build->failed || disk->id.data == NULL;
}

void build_volumes(struct build *build)
{
	const struct kobj_pod_spec *pod = &build->pod->spec;
	struct sched_spec *spec = build->spec;
	size_t count = build_limit(build, pod->volumes.count, "volumes");
	spec->claims = build_alloc(build, count, sizeof *spec->claims);
	spec->disks = build_alloc(build, count, sizeof *spec->disks);
	for (size_t i = 0; !build->failed && i < count; i++) {
		const struct kobj_volume *volume = &pod->volumes.items[i];
		const struct kobj_volume_source *source = &volume->source;
		if (source->is_cloud)
			build_refuse(build, SCHED_CODE_UNSUPPORTED_VOLUME, STR_FMT,
				     STR_ARG(volume->name));
		if (source->claim != NULL || source->is_ephemeral)
			add_claim(build, volume);
		if (source->iscsi != NULL || source->rbd != NULL)
			add_disk(build, source);
	}
}

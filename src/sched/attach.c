// SPDX-License-Identifier: Apache-2.0
// How many volumes of a CSI driver a node takes (kube-scheduler's plugin NodeVolumeLimits): those
// of its pods, each once, and those that are attached though no pod uses them any more.
#include "sched/parts.h"
#include "sched/stock.h"

struct tally { // of one driver on one node
	const struct stock *stock;
	struct str driver;
	struct map *ids; // of its volumes; values are not NULL and say who brought it
	const char *by;
};

static const char BY_PODS[] = "pods", BY_OTHERS[] = "others";

// Provisioners of clouds that CSI drivers have taken over.
static struct str driver_of(struct str provisioner)
{
	static const struct {
		const char *provisioner, *driver;
	} MOVED[] = {
		{ "kubernetes.io/aws-ebs", "ebs.csi.aws.com" },
		{ "kubernetes.io/gce-pd", "pd.csi.storage.gke.io" },
		{ "kubernetes.io/azure-disk", "disk.csi.azure.com" },
		{ "kubernetes.io/cinder", "cinder.csi.openstack.org" },
		{ "kubernetes.io/portworx-volume", "pxd.portworx.com" },
	};
	for (size_t i = 0; i < ARRAY_COUNT(MOVED); i++) {
		if (str_eq_c(provisioner, MOVED[i].provisioner))
			return str_of(MOVED[i].driver);
	}
	return provisioner;
}

static void put_id(const struct tally *tally, char kind, struct str text)
{
	AUTO(buf_done) struct buf id = { .limit = 4096 };
	buf_put_byte(&id, kind);
	buf_put(&id, text);
	if (map_find(tally->ids, buf_str(&id)) == NULL)
		(void)map_set(tally->ids, buf_str(&id), (void *)(uintptr_t)tally->by);
}

// A claim without a volume counts as the volume that will be made for it.
static void count_claim(const struct tally *tally, const struct sched_claim_ref *ref)
{
	AUTO(buf_done) struct buf text = { .limit = 1024 };
	const struct stored *claim =
		stock_find(tally->stock, SCHED_CLAIM, stock_claim_key(ref, &text));
	if (claim == NULL)
		return;
	const struct sched_claim_in *in = &claim->in.claim;
	const struct stored *volume = stock_find(tally->stock, SCHED_VOLUME, in->volume_name);
	if (volume != NULL) {
		if (str_eq(volume->in.volume.driver, tally->driver))
			put_id(tally, 'v', volume->in.volume.handle);
		return;
	}
	const struct stored *class_ = stock_find(tally->stock, SCHED_CLASS, in->class_name);
	if (class_ != NULL && str_eq(driver_of(class_->in.class_.provisioner), tally->driver))
		put_id(tally, 'c', claim->in.key);
}

static void count_spec(const struct tally *tally, const struct sched_spec *spec)
{
	for (size_t i = 0; i < spec->claim_count; i++)
		count_claim(tally, &spec->claims[i]);
}

static void count_attached(const struct tally *tally, const struct node *node)
{
	const struct stored *at = map_find(tally->stock->attached, node->name);
	for (; at != NULL; at = at->next_on_node) {
		const struct sched_attachment_in *in = &at->in.attachment;
		const struct stored *volume = stock_find(tally->stock, SCHED_VOLUME, in->volume);
		if (str_eq(in->driver, tally->driver) && volume != NULL &&
		    volume->in.volume.handle.len > 0)
			put_id(tally, 'v', volume->in.volume.handle);
	}
}

static size_t count_new(const struct map *own, const struct map *there)
{
	struct str id;
	void *by;
	size_t count = 0;
	for (size_t i = 0; map_next(own, &i, &id, &by);)
		count += map_find(there, id) != BY_PODS;
	return count;
}

// As kube-scheduler: what is attached already without a pod counts beside the pod that wants it.
static bool driver_fits(const struct sched *sched, const struct sched_spec *spec,
			const struct node *node, const struct sched_driver_limit *limit)
{
	struct tally own = { sched->stock, limit->driver, map_new(sched->seed), BY_PODS };
	struct tally there = { sched->stock, limit->driver, map_new(sched->seed), BY_PODS };
	count_spec(&own, spec);
	const struct link *head = &node->pods;
	for (const struct link *at = head->next; at != head && map_count(own.ids) > 0;
	     at = at->next)
		count_spec(&there, LINK_OF((uintptr_t)at, struct pod, on_node)->shape->spec);
	there.by = BY_OTHERS;
	count_attached(&there, node);
	size_t new_count = count_new(own.ids, there.ids), count = map_count(there.ids);
	map_free(own.ids);
	map_free(there.ids);
	return new_count == 0 || (int64_t)(count + new_count) <= limit->volumes_max;
}

bool attach_fits(const struct sched *sched, const struct sched_spec *spec, const struct node *node)
{
	const struct stored *csi_node = stock_find(sched->stock, SCHED_CSI_NODE, node->name);
	if (csi_node == NULL || spec->claim_count == 0)
		return true;
	const struct sched_csi_node_in *in = &csi_node->in.csi_node;
	for (size_t i = 0; i < in->limit_count; i++) {
		if (in->limits[i].volumes_max != SCHED_NO_VOLUME_LIMIT &&
		    !driver_fits(sched, spec, node, &in->limits[i]))
			return false;
	}
	return true;
}

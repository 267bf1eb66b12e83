// SPDX-License-Identifier: Apache-2.0
// Volumes of a pod: what its claims, the volumes and the nodes' drivers allow. Nodes a and b, each
// with its zone; a case is what storage there is, the pod's volumes, and the expected decision
// with what is to be written about claims ("c=pv", "c=new").
#include "rig.h"

#include "check.h"

#include <stdio.h>

#define CLASSES                                                                                    \
	"{kind: StorageClass, metadata: {name: local}, provisioner: "                              \
	"kubernetes.io/no-provisioner, "                                                           \
	"volumeBindingMode: WaitForFirstConsumer}\n---\n"                                          \
	"{kind: StorageClass, metadata: {name: fast}, provisioner: x.csi, "                        \
	"volumeBindingMode: WaitForFirstConsumer}\n---\n"                                          \
	"{kind: StorageClass, metadata: {name: only-b}, provisioner: x.csi, volumeBindingMode: "   \
	"WaitForFirstConsumer, allowedTopologies: [{matchLabelExpressions: [{key: "                \
	"topology.kubernetes.io/zone, values: [zb]}]}]}\n---\n"                                    \
	"{kind: StorageClass, metadata: {name: now}, provisioner: x.csi, volumeBindingMode: "      \
	"Immediate}\n---\n"
#define CLAIM(name, more)                                                                          \
	"{kind: PersistentVolumeClaim, metadata: {name: " name                                     \
	", namespace: default, uid: u-" name                                                       \
	"}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}, " more     \
	"}}\n---\n"
#define BOUND(name, volume, more)                                                                  \
	"{kind: PersistentVolumeClaim, metadata: {name: " name                                     \
	", namespace: default, uid: u-" name                                                       \
	", annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: " volume     \
	", accessModes: [" more "]}}\n---\n"
#define VOLUME(name, labels, more)                                                                 \
	"{kind: PersistentVolume, metadata: {name: " name ", labels: {" labels                     \
	"}}, spec: {accessModes: [ReadWriteOnce], " more "}, status: {phase: Available}}\n---\n"
#define ON(host)                                                                                   \
	"nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: host, "           \
	"operator: In, values: [" host "]}]}]}}"
#define MOUNT(claim) "{name: v-" claim ", persistentVolumeClaim: {claimName: " claim "}}"
#define RUNNING(name, node, volumes)                                                               \
	"{kind: Pod, metadata: {name: " name "}, spec: {nodeName: " node                           \
	", containers: [{name: c}], volumes: [" volumes "]}}\n---\n"

static const struct {
	const char *name, *storage, *volumes, *want;
} CASES[] = {
	{ "no such claim", "", MOUNT("c"), "wait p ClaimNotFound:2(c/)" },
	{ "bound, reached by b", BOUND("c", "pv", "ReadWriteOnce") VOLUME("pv", "", ON("b")),
	  MOUNT("c"), "bind p b []" },
	{ "bound, reached by none", BOUND("c", "pv", "ReadWriteOnce") VOLUME("pv", "", ON("z")),
	  MOUNT("c"), "wait p VolumeNodeConflict:2" },
	{ "bound, its volume is gone", BOUND("c", "pv", "ReadWriteOnce"), MOUNT("c"),
	  "wait p ClaimUnusable:2(c/)" },
	{ "a volume with the zone of b",
	  BOUND("c", "pv", "ReadWriteOnce") VOLUME("pv", "topology.kubernetes.io/zone: zb", ""),
	  MOUNT("c"), "bind p b []" },
	{ "two zones, by the old label",
	  BOUND("c", "pv", "ReadWriteOnce")
		  VOLUME("pv", "failure-domain.beta.kubernetes.io/zone: zx__zb", ""),
	  MOUNT("c"), "bind p b []" },
	{ "another zone",
	  BOUND("c", "pv", "ReadWriteOnce") VOLUME("pv", "topology.kubernetes.io/zone: zx", ""),
	  MOUNT("c"), "wait p VolumeZoneConflict:2" },
	{ "a zone that is empty says nothing",
	  BOUND("c", "pv", "ReadWriteOnce")
		  VOLUME("pv", "topology.kubernetes.io/zone: zx____zb", ""),
	  MOUNT("c"), "bind p a []" },
	{ "immediate and not bound yet", CLASSES CLAIM("c", "storageClassName: now"), MOUNT("c"),
	  "wait p ClaimUnbound:2(c/)" },
	{ "no class", CLAIM("c", ""), MOUNT("c"), "wait p ClaimUnbound:2(c/)" },
	{ "the smallest volume that is big enough",
	  CLASSES CLAIM("c", "storageClassName: local")
		  VOLUME("big", "", "capacity: {storage: 9Gi}, storageClassName: local") VOLUME(
			  "small", "", "capacity: {storage: 1Gi}, storageClassName: local")
			  VOLUME("right", "", "capacity: {storage: 3Gi}, storageClassName: local"),
	  MOUNT("c"), "bind p a [] c=right" },
	{ "the volume of b",
	  CLASSES CLAIM("c", "storageClassName: local")
		  VOLUME("pv", "", "capacity: {storage: 2Gi}, storageClassName: local, " ON("b")),
	  MOUNT("c"), "bind p b [] c=pv" },
	{ "a volume kept for the claim goes before a smaller one",
	  CLASSES CLAIM("c", "storageClassName: local") VOLUME(
		  "free", "", "capacity: {storage: 2Gi}, storageClassName: local")
		  VOLUME("kept", "",
			 "capacity: {storage: 4Gi}, storageClassName: local, claimRef: {namespace: "
			 "default, name: c}"),
	  MOUNT("c"), "bind p a [] c=kept" },
	{ "no volume, none can be made", CLASSES CLAIM("c", "storageClassName: local"), MOUNT("c"),
	  "wait p NoVolumeForClaim:2" },
	{ "one volume for two claims",
	  CLASSES CLAIM("c", "storageClassName: local") CLAIM("d", "storageClassName: local")
		  VOLUME("pv", "", "capacity: {storage: 2Gi}, storageClassName: local"),
	  MOUNT("c") ", " MOUNT("d"), "wait p NoVolumeForClaim:2" },
	{ "one is made", CLASSES CLAIM("c", "storageClassName: fast"), MOUNT("c"),
	  "bind p a [] c=new" },
	{ "one may be made in b only", CLASSES CLAIM("c", "storageClassName: only-b"), MOUNT("c"),
	  "bind p b [] c=new" },
	{ "by selector",
	  CLASSES CLAIM("c", "storageClassName: local, selector: {matchLabels: {k: v}}")
		  VOLUME("no", "", "capacity: {storage: 2Gi}, storageClassName: local") VOLUME(
			  "yes", "k: v", "capacity: {storage: 3Gi}, storageClassName: local"),
	  MOUNT("c"), "bind p a [] c=yes" },
	{ "a driver that tracks its space has too little",
	  CLASSES CLAIM("c",
			"storageClassName: fast") "{kind: CSIDriver, metadata: {name: x.csi}, "
						  "spec: {storageCapacity: true}}\n---\n"
						  "{kind: CSIStorageCapacity, metadata: {name: s, "
						  "namespace: k}, storageClassName: fast, "
						  "capacity: 1Gi, nodeTopology: {}}\n---\n",
	  MOUNT("c"), "wait p StorageShort:2" },
	{ "a driver that tracks its space has enough in b",
	  CLASSES CLAIM("c",
			"storageClassName: fast") "{kind: CSIDriver, metadata: {name: x.csi}, "
						  "spec: {storageCapacity: true}}\n---\n"
						  "{kind: CSIStorageCapacity, metadata: {name: s, "
						  "namespace: k}, storageClassName: fast, "
						  "capacity: 9Gi, nodeTopology: {matchLabels: "
						  "{host: b}}}\n---\n",
	  MOUNT("c"), "bind p b [] c=new" },
	{ "a pod alone holds it",
	  BOUND("c", "pv", "ReadWriteOncePod") VOLUME("pv", "", "") RUNNING("r", "a", MOUNT("c")),
	  MOUNT("c"), "wait p VolumeInUse:2(c/)" },
	{ "many may hold it",
	  BOUND("c", "pv", "ReadWriteOnce") VOLUME("pv", "", "") RUNNING("r", "a", MOUNT("c")),
	  MOUNT("c"), "bind p a []" },
	{ "the node's driver takes no more",
	  BOUND("c", "pv", "ReadWriteOnce")
		  VOLUME("pv", "", "csi: {driver: x.csi, volumeHandle: h1}") BOUND("d", "pw",
										   "ReadWriteOnce")
			  VOLUME("pw", "", "csi: {driver: x.csi, volumeHandle: h2}")
				  RUNNING("r", "a",
					  MOUNT("d")) "{kind: CSINode, metadata: {name: a}, spec: "
						      "{drivers: [{name: x.csi, allocatable: "
						      "{count: 1}}]}}\n---\n"
						      "{kind: CSINode, metadata: {name: b}, spec: "
						      "{drivers: [{name: x.csi, allocatable: "
						      "{count: 0}}]}}\n---\n",
	  MOUNT("c"), "wait p VolumeLimitReached:2" },
	{ "a volume that is there already is counted once",
	  BOUND("c", "pv", "ReadWriteOnce") VOLUME("pv", "",
						   "csi: {driver: x.csi, volumeHandle: h1}")
		  RUNNING("r", "a", MOUNT("c")) "{kind: CSINode, metadata: {name: a}, spec: "
						"{drivers: [{name: x.csi, allocatable: "
						"{count: 1}}]}}\n---\n",
	  MOUNT("c"), "bind p a []" },
	{ "what is attached without a pod counts",
	  BOUND("c", "pv", "ReadWriteOnce") VOLUME("pv", "",
						   "csi: {driver: x.csi, volumeHandle: h1}")
		  VOLUME("pw", "",
			 "csi: {driver: x.csi, volumeHandle: h2}") "{kind: CSINode, metadata: "
								   "{name: a}, spec: {drivers: "
								   "[{name: x.csi, allocatable: "
								   "{count: 1}}]}}\n---\n"
								   "{kind: VolumeAttachment, "
								   "metadata: {name: t}, spec: "
								   "{attacher: x.csi, nodeName: a, "
								   "source: {persistentVolumeName: "
								   "pw}}}\n---\n",
	  MOUNT("c"), "bind p b []" },
	{ "an iSCSI disk is written by one pod a node",
	  RUNNING("r", "a", "{name: v, iscsi: {iqn: i}}")
		  RUNNING("s", "b", "{name: v, iscsi: {iqn: i}}"),
	  "{name: v, iscsi: {iqn: i}}", "wait p VolumeInUse:2" },
	{ "an RBD image is read by many",
	  RUNNING("r", "a", "{name: v, rbd: {monitors: [m], image: i, readOnly: true}}"),
	  "{name: v, rbd: {monitors: [m], image: i, readOnly: true}}", "bind p a []" },
	{ "an ephemeral claim of another pod",
	  "{kind: PersistentVolumeClaim, metadata: {name: p-v, namespace: default, "
	  "ownerReferences: [{uid: other, controller: true}]}}\n---\n",
	  "{name: v, ephemeral: {}}", "wait p ClaimUnusable:2(p-v/)" },
	{ "an ephemeral claim of its own",
	  CLASSES
	  "{kind: PersistentVolumeClaim, metadata: {name: p-v, namespace: default, "
	  "ownerReferences: [{uid: p, controller: true}]}, spec: {storageClassName: fast}}\n---\n",
	  "{name: v, ephemeral: {}}", "bind p a [] p-v=new" },
	{ "inline CSI and NFS go anywhere", "",
	  "{name: v, csi: {driver: x.csi}}, {name: w, nfs: {}}", "bind p a []" },
};

#define NODES                                                                                      \
	"{kind: Node, metadata: {name: a, labels: {host: a, topology.kubernetes.io/zone: za}}, "   \
	"status: {allocatable: {cpu: 8, pods: 9}}}\n---\n"                                         \
	"{kind: Node, metadata: {name: b, labels: {host: b, topology.kubernetes.io/zone: zb}}, "   \
	"status: {allocatable: {cpu: 8, pods: 9}}}\n---\n"

static const char *next_with_claims(struct rig *rig, char *out, size_t out_bytes)
{
	AUTO(buf_done) struct buf line = { .limit = out_bytes };
	buf_put_c(&line, rig_next(rig));
	for (size_t i = 0; i < rig->decision.claim_bind_count; i++) {
		const struct sched_claim_bind *bind = &rig->decision.claim_binds[i];
		struct str name = str_slice(bind->claim_key, sizeof "default", SIZE_MAX);
		buf_printf(&line, " " STR_FMT "=", STR_ARG(name));
		buf_put(&line, bind->volume.len == 0 ? STR("new") : bind->volume);
	}
	(void)snprintf(out, out_bytes, "%.*s", (int)line.len, line.data);
	return out;
}

static void put_pod(struct rig *rig, const char *name, const char *volumes)
{
	char yaml[2048];
	(void)snprintf(yaml, sizeof yaml,
		       "{kind: Pod, metadata: {name: %s}, spec: {containers: [{name: c}], volumes: "
		       "[%s]}}\n",
		       name, volumes);
	rig_put(rig, yaml);
}

static void check_cases(struct check *c)
{
	char line[1024];
	for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
		struct rig rig;
		rig_init(&rig);
		rig_put(&rig, NODES);
		rig_put(&rig, CASES[i].storage);
		put_pod(&rig, "p", CASES[i].volumes);
		CHECK_STR(c, CASES[i].name, str_of(next_with_claims(&rig, line, sizeof line)),
			  CASES[i].want);
		CHECK_STR(c, CASES[i].name, str_of(rig_next(&rig)), "-");
		rig_done(&rig);
	}
}

// What one decision has taken is not given to the next, and comes back when the bind fails.
static void check_assumed(struct check *c)
{
	char line[1024];
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig,
		NODES CLASSES CLAIM("c", "storageClassName: local") CLAIM("d",
									  "storageClassName: local")
			VOLUME("pv", "",
			       "capacity: {storage: 2Gi}, storageClassName: local, " ON("b")));
	put_pod(&rig, "p", MOUNT("c"));
	CHECK_STR(c, "first", str_of(next_with_claims(&rig, line, sizeof line)),
		  "bind p b [] c=pv");
	put_pod(&rig, "q", MOUNT("d"));
	CHECK_STR(c, "taken", str_of(rig_next(&rig)), "wait q NoVolumeForClaim:2");
	put_pod(&rig, "r", MOUNT("c"));
	CHECK_STR(c, "shared", str_of(next_with_claims(&rig, line, sizeof line)),
		  "bind r b [] c=pv");
	rig_put(&rig, VOLUME("pv", "k: changed",
			     "capacity: {storage: 2Gi}, storageClassName: local, " ON("b")));
	CHECK_STR(c, "still taken", str_of(rig_next(&rig)), "-");
	sched_bind_failed(rig.sched, STR("p"), rig.now_ms);
	CHECK_STR(c, "given back", str_of(next_with_claims(&rig, line, sizeof line)),
		  "bind q b [] d=pv");
	rig_done(&rig);
}

static void check_wakes(struct check *c)
{
	struct rig rig;
	rig_init(&rig);
	rig_put(&rig, NODES);
	put_pod(&rig, "p", MOUNT("c"));
	CHECK_STR(c, "no claim", str_of(rig_next(&rig)), "wait p ClaimNotFound:2(c/)");
	rig_put(&rig, BOUND("c", "pv", "ReadWriteOncePod"));
	CHECK_STR(c, "no volume", str_of(rig_next(&rig)), "wait p ClaimUnusable:2(c/)");
	rig_put(&rig, VOLUME("pv", "", ON("b")) RUNNING("r", "a", MOUNT("c")));
	CHECK_STR(c, "in use", str_of(rig_next(&rig)),
		  "wait p VolumeNodeConflict:1 VolumeInUse:2(c/)");
	rig_remove_pod(&rig, "r");
	CHECK_STR(c, "free", str_of(rig_next(&rig)), "bind p b []");
	rig_done(&rig);
}

int main(void)
{
	struct check c = { 0 };
	check_cases(&c);
	check_assumed(&c);
	check_wakes(&c);
	return check_done(&c);
}

"""Random nodes, pods and storage for the differential test of filters: the same seed, the same objects.

Names are few on purpose: labels, taints, ports, claims and volumes have to meet often.
"""
NODES, RUNNING, CLAIMS, VOLUMES = 40, 80, 40, 60
NAMESPACES = {"a": {"team": "one"}, "b": {}}
KEYS = {"zone": ["a", "b", "c"], "disk": ["ssd", "hdd"], "rank": ["1", "5", "9", "x"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
DRIVERS = ["csi.example.com", "space.example.com"]


def chance(r, percent):
    return r.random() * 100 < percent


def requirement(r, label_only=False):
    key = r.choice([*KEYS, "missing"])
    op = r.choice(["In", "NotIn", "Exists", "DoesNotExist"] + ([] if label_only else ["Gt", "Lt"]))
    values = {"Exists": [], "DoesNotExist": [], "Gt": ["4"], "Lt": ["6"]}.get(
        op, r.sample(KEYS.get(key, ["v", "w"]), r.randint(1, 2)))
    return {"key": key, "operator": op, **({"values": values} if values else {})}


def node_term(r):
    term = {}
    if chance(r, 80):
        term["matchExpressions"] = [requirement(r) for _ in range(r.randint(1, 2))]
    if chance(r, 25):
        term["matchFields"] = [{"key": "metadata.name", "operator": r.choice(["In", "NotIn"]),
                                "values": [f"n{r.randrange(NODES)}"]}]
    return term


def selector(r):
    made = {}
    if chance(r, 70):
        made["matchLabels"] = {"app": r.choice("xyz")}
    if chance(r, 30):
        made["matchExpressions"] = [{"key": "tier", "operator": r.choice(["In", "NotIn"]),
                                     "values": r.sample(["1", "2", "3"], r.randint(1, 2))}]
    if chance(r, 10):
        made["matchExpressions"] = [{"key": r.choice(["tier", "no"]), "operator": r.choice(["Exists", "DoesNotExist"])}]
    return made


def pod_term(r):
    term = {"topologyKey": r.choice(["zone", "disk", "kubernetes.io/hostname", "rank"])}
    if chance(r, 95):
        term["labelSelector"] = selector(r)
    if chance(r, 15) and "labelSelector" in term:
        term[r.choice(["matchLabelKeys", "mismatchLabelKeys"])] = ["rev"]
    if chance(r, 20):
        term["namespaces"] = r.sample(["a", "b"], r.randint(1, 2))
    if chance(r, 20):
        term["namespaceSelector"] = r.choice([{}, {"matchLabels": {"team": "one"}},
                                              {"matchExpressions": [{"key": "team", "operator": "Exists"}]}])
    return term


def affinity(r):
    made = {}
    if chance(r, 45):
        made["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": [node_term(r) for _ in range(r.randint(1, 2))]}}
    if chance(r, 30):
        made["podAffinity"] = {REQUIRED: [pod_term(r) for _ in range(r.randint(1, 2))]}
    if chance(r, 25):
        made["podAntiAffinity"] = {REQUIRED: [pod_term(r)]}
    return made


def spread(r):
    made = {"maxSkew": r.randint(1, 3), "topologyKey": r.choice(["zone", "disk", "kubernetes.io/hostname"]),
            "whenUnsatisfiable": r.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])}
    if chance(r, 95):
        made["labelSelector"] = selector(r)
    if made["whenUnsatisfiable"] == "DoNotSchedule" and chance(r, 25):
        made["minDomains"] = r.randint(1, 4)
    if chance(r, 25):
        made["nodeAffinityPolicy"] = r.choice(["Honor", "Ignore"])
    if chance(r, 25):
        made["nodeTaintsPolicy"] = r.choice(["Honor", "Ignore"])
    if chance(r, 15) and "labelSelector" in made:
        made["matchLabelKeys"] = ["rev"]
    return made


def toleration(r):
    made = {"operator": r.choice(["Exists", "Equal"])}
    if made["operator"] == "Equal" or chance(r, 80):
        made["key"] = r.choice(["team", "gpu", "node.kubernetes.io/unschedulable"])
    if made["operator"] == "Equal":
        made["value"] = r.choice(["one", "two", ""])
    if chance(r, 60):
        made["effect"] = r.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
    return made


def requests(r):
    made = {}
    if chance(r, 40):
        made["cpu"] = r.choice(["100m", "1", "2500m", "7"])
    if chance(r, 50):
        made["memory"] = r.choice(["1Gi", "10G", "30Gi", "1e9"])
    if chance(r, 20):
        made["nvidia.com/gpu"] = str(r.choice([1, 2, 4, 8]))
    if chance(r, 5):
        made[r.choice(["ephemeral-storage", "example.com/widget"])] = str(r.choice([1, 3]))
    if chance(r, 4):
        made.setdefault("cpu", "1")
        made["hugepages-2Mi"] = r.choice(["4Mi", "64Mi"])
    return made


def container(r, name, sidecar=False):
    asked = requests(r)
    made = {"name": name, "image": "x", "resources": {"requests": asked, "limits": {
        k: v for k, v in asked.items() if "/" in k or k.startswith("huge")}}}
    if chance(r, 8):
        made["ports"] = [{"containerPort": 80, "hostPort": r.choice([80, 81]), "protocol": r.choice(["TCP", "UDP"]),
                          **({"hostIP": r.choice(["10.0.0.1", "10.0.0.2", "0.0.0.0"])} if chance(r, 50) else {})}]
    if sidecar:
        made["restartPolicy"] = "Always"
    return made


def volume(r, name):
    kind = r.choice(["claim"] * 14 + ["ephemeral", "iscsi", "rbd", "csi", "nfs", "cloud"])
    made = {"name": name}
    if kind == "claim":
        claim = "absent" if chance(r, 2) else f"c{r.randrange(CLAIMS)}"
        made["persistentVolumeClaim"] = {"claimName": claim}
    elif kind == "ephemeral":
        made["ephemeral"] = {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": r.choice(["local", "fast", "space"]),
            "resources": {"requests": {"storage": "5Gi"}}}}}
    elif kind == "iscsi":
        made["iscsi"] = {"targetPortal": "10.0.0.1:3260", "iqn": f"iqn.2001-04.com.example:{r.choice('xy')}",
                         "lun": 0, "readOnly": chance(r, 50)}
    elif kind == "rbd":
        made["rbd"] = {"monitors": r.sample(["10.0.0.1:6789", "10.0.0.2:6789", "10.0.0.3:6789"], 2),
                       "image": r.choice("xy"), "pool": "p", "readOnly": chance(r, 50)}
    elif kind == "csi":
        made["csi"] = {"driver": r.choice(DRIVERS)}
    elif kind == "nfs":
        made["nfs"] = {"server": "10.0.0.1", "path": "/"}
    else:
        made["gcePersistentDisk"] = {"pdName": "disk"}
    return made


def pod_of(r, name, namespace, spec):
    return {"metadata": {"name": name, "namespace": namespace,
                         "labels": {"app": r.choice("xyz"), "tier": r.choice("123"), "rev": r.choice("12")}},
            "spec": spec}


def make_pod(r, name, namespace):
    spec = {"containers": [container(r, f"c{i}") for i in range(r.randint(1, 2))], "terminationGracePeriodSeconds": 0}
    for later in spec["containers"][1:]:
        later.pop("ports", None)  # two containers may not ask for the same port
    if chance(r, 3):
        spec["schedulingGates"] = [{"name": "example.com/later"}]
    if chance(r, 35):
        spec["volumes"] = [volume(r, f"v{i}") for i in range(r.choice([1, 1, 2, 3]))]
        if chance(r, 60):  # little else, so that volumes decide
            spec["tolerations"] = [{"operator": "Exists"}]
            return pod_of(r, name, namespace, spec)
    if chance(r, 25):
        spec["initContainers"] = [container(r, f"i{i}", chance(r, 50)) for i in range(r.randint(1, 2))]
    if chance(r, 12):
        key = r.choice(list(KEYS))
        spec["nodeSelector"] = {key: r.choice(KEYS[key])}
    if chance(r, 35):
        spec["affinity"] = affinity(r)
    if chance(r, 30):
        keys = set()
        spec["topologySpreadConstraints"] = [
            s for s in (spread(r) for _ in range(r.randint(1, 2)))
            if not ((s["topologyKey"], s["whenUnsatisfiable"]) in keys
                    or keys.add((s["topologyKey"], s["whenUnsatisfiable"])))]
    if chance(r, 50):
        spec["tolerations"] = [toleration(r) for _ in range(r.randint(1, 2))]
    if chance(r, 8):
        spec["resources"] = r.choice([{"requests": {"cpu": "32"}}, {"requests": {"memory": "31Gi"}},
                                      {"limits": {"cpu": "16"}}, {"limits": {"memory": "40Gi"}}])
    if chance(r, 6) and "nodeSelector" not in spec:
        spec["runtimeClassName"] = "vm"
    return pod_of(r, name, namespace, spec)


def make_node(r, name):
    labels = {k: r.choice(v) for k, v in KEYS.items() if chance(r, 85)}
    if chance(r, 80):
        labels[ZONE] = r.choice("ab")
    if chance(r, 30):
        labels[REGION] = r.choice("rs")
    if chance(r, 10):
        labels[OLD_ZONE] = r.choice("ab")
    taints = [t for t in ({"key": "team", "value": r.choice(["one", "two"]), "effect": "NoSchedule"},
                          {"key": "gpu", "value": "", "effect": r.choice(["NoExecute", "PreferNoSchedule"])})
              if chance(r, 12)]
    node = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "spec": {"taints": taints, "unschedulable": chance(r, 6)}}
    amounts = {"cpu": str(r.choice([2, 8, 16, 32])), "memory": r.choice(["4Gi", "32Gi", "64Gi"]),
               "pods": str(r.choice([4, 20, 110])), "ephemeral-storage": "2"}
    if chance(r, 60):
        amounts["nvidia.com/gpu"] = str(r.choice([1, 2, 4, 8]))
    if chance(r, 20):
        amounts["example.com/widget"] = "2"
    if chance(r, 40):
        amounts["hugepages-2Mi"] = "64Mi"
    return node, amounts


def make_classes():
    def row(name, provisioner, mode, zones=None):
        return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode,
                **({"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}]} if zones
                   else {})}
    late = "WaitForFirstConsumer"
    return [row("local", "kubernetes.io/no-provisioner", late), row("fast", DRIVERS[0], late),
            row("zoned", DRIVERS[0], late, ["a"]), row("space", DRIVERS[1], late), row("now", DRIVERS[0], "Immediate")]


def make_capacities(r):
    made = []
    for i in range(4):
        size = {"capacity": r.choice(["3Gi", "20Gi"])}
        if chance(r, 50):
            size["maximumVolumeSize"] = r.choice(["3Gi", "8Gi"])
        topology = r.choice([{"matchLabels": {ZONE: "a"}}, {"matchLabels": {"disk": "ssd"}}, {},
                             {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["a"]}]}])
        made.append({"metadata": {"name": f"space{i}"}, "storageClassName": "space", **size,
                     **({"nodeTopology": topology} if chance(r, 80) else {})})
    return made


def make_csi_node(r, name):
    return {"metadata": {"name": name}, "spec": {"drivers": [
        {"name": d, "nodeID": name, "topologyKeys": [ZONE],
         **({"allocatable": {"count": r.choice([0, 1, 2, 3])}} if chance(r, 70) else {})} for d in DRIVERS]}}


def make_claim(r, name):
    """Some have their volume; which one the caller says."""
    spec = {"accessModes": r.choice([["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOnce", "ReadOnlyMany"],
                                     ["ReadWriteOncePod"]]),
            "resources": {"requests": {"storage": r.choice(["1Gi", "5Gi", "9Gi"])}}}
    if chance(r, 96):
        spec["storageClassName"] = r.choice(["local"] * 3 + ["fast", "zoned", "space", "now", "gone"])
    if chance(r, 10):
        spec["selector"] = {"matchLabels": {"tier": "1"}}
    if chance(r, 8):
        spec["volumeMode"] = "Block"
    meta = {"name": name, "annotations": {}}
    if chance(r, 8):
        meta["annotations"]["volume.kubernetes.io/selected-node"] = f"n{r.randrange(NODES)}"
    return {"metadata": meta, "spec": spec}


def make_volume(r, number):
    """Sizes differ, so that which of two volumes is the better one is never left to chance."""
    spec = {"capacity": {"storage": f"{2048 * r.randint(1, 5) + number}Mi"}, "persistentVolumeReclaimPolicy": "Retain",
            "accessModes": r.choice([["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"],
                                     ["ReadWriteOncePod"]]),
            "storageClassName": r.choice(["local", "local", "fast", "space"])}
    if chance(r, 50):
        spec["csi"] = {"driver": r.choice(DRIVERS), "volumeHandle": f"handle{number}"}
    else:
        spec["nfs"] = {"server": "10.0.0.1", "path": f"/{number}"}
    if chance(r, 8):
        spec["volumeMode"] = "Block"
    if chance(r, 70):
        names = [f"n{i}" for i in r.sample(range(NODES), r.randint(1, 20))]
        hosts = {"key": "kubernetes.io/hostname", "operator": "In", "values": names}
        terms = r.choice([[{"matchExpressions": [hosts]}],
                          [{"matchExpressions": [requirement(r)]}],
                          [{"matchExpressions": [requirement(r)]}, {"matchExpressions": [requirement(r)]}]])
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    labels = {"tier": r.choice("12")}
    if chance(r, 25):
        labels[r.choice([ZONE, OLD_ZONE, REGION])] = r.choice(["a", "b", "a__b", "r", "a____b", "a___b"])
    return {"metadata": {"name": f"pv{number}", "labels": labels}, "spec": spec}


def make_attachment(r, number):
    return {"metadata": {"name": f"at{number}"}, "spec": {
        "attacher": r.choice(DRIVERS), "nodeName": f"n{r.randrange(NODES)}",
        "source": {"persistentVolumeName": f"pv{r.randrange(VOLUMES)}"}}}

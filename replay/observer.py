"""Recomputes the bill from what the server did not make.

Times come from the pods alone (PodScheduled, finishedAt of their containers, else deletion);
devices, energy, assets, prices and pools come from the ledger. The rating is done by the
independent rater in oracle.py, with fractions. Whatever differs from the server's bill by a
single nano is an error.
"""
import datetime
import json
import subprocess

import oracle


def seconds_of(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def text_of(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def pods_of(kubectl):
    """uid -> (namespace/name, tenant, bound, released) of every pod of a request that was bound."""
    done = subprocess.run([kubectl, "get", "pods", "-A", "-l", "gpuaas.io/request", "-o", "json"],
                          check=True, capture_output=True)
    pods = {}
    for pod in json.loads(done.stdout)["items"]:
        bound = [c["lastTransitionTime"] for c in pod["status"].get("conditions", [])
                 if c["type"] == "PodScheduled" and c["status"] == "True"]
        if not bound:
            continue
        meta = pod["metadata"]
        pods[meta["uid"]] = (f"{meta['namespace']}/{meta['name']}", meta["namespace"],
                             seconds_of(bound[0]), released_of(pod))
    return pods


def released_of(pod):
    """The last finish of its containers, else its deletion; None while it runs."""
    states = [c.get("state", {}).get("terminated") for kind in ("containerStatuses", "initContainerStatuses")
              for c in pod["status"].get(kind, [])]
    finished = [seconds_of(s["finishedAt"]) for s in states if s and s.get("finishedAt")]
    if states and len(finished) == len(states):
        return max(finished)
    deleted = pod["metadata"].get("deletionTimestamp")
    return seconds_of(deleted) if deleted else None


def compare_times(pods, events):
    """What the ledger says of a pod against what the pod says of itself."""
    wrong, seen = [], {}
    for event in events:
        if event["type"] not in ("bound", "released") or event["pod_uid"] not in pods:
            continue
        key = (event["gpu"], event["pod_uid"], event.get("container"), event["type"])
        if key in seen and seen[key] != event["t"]:
            wrong.append(f"{event['pod']}: {event['type']} of {event['gpu']} twice: {seen[key]} and {event['t']}")
        seen[key] = event["t"]
        name, _, bound, released = pods[event["pod_uid"]]
        truth = bound if event["type"] == "bound" else released
        if truth is None or seconds_of(event["t"]) != truth:
            wrong.append(f"{name}: {event['type']} in the ledger at {event['t']}, by the pod "
                         f"{text_of(truth) if truth is not None else 'not yet'}")
    told = {uid for (_, uid, _, _) in seen}
    wrong += [f"{pods[uid][0]}: ran, but the ledger has nothing of it" for uid in pods if uid not in told]
    return wrong


def own_events(pods, events, start_s):
    """bound and released made anew from the pods' times; energy as the ledger has it, and so what
    pods that are gone used before the period: amounts are rounded cumulatively from an asset's
    begin on, so that it moves a nano within the period. Use by such pods inside it is an error."""
    mine, allocations = [e for e in events if e["type"] == "energy"], {}
    mine += [e for e in events if e["type"] in ("bound", "released") and e["pod_uid"] not in pods
             and seconds_of(e["t"]) <= start_s]
    for event in events:
        if event["type"] == "bound" and event["pod_uid"] in pods:
            allocations[(event["gpu"], event["pod_uid"], event.get("container"))] = event
    for sequence, ((gpu, uid, container), event) in enumerate(sorted(allocations.items(), key=str)):
        _, tenant, bound, released = pods[uid]
        row = {"source": "observer", "boot": "0", "gpu": gpu, "pod_uid": uid, "container": container,
               "tenant": tenant, "share": event.get("share", {"num": 1, "den": 1})}
        mine.append(dict(row, seq=2 * sequence, type="bound", t=text_of(bound)))
        if released is not None:
            mine.append(dict(row, seq=2 * sequence + 1, type="released", t=text_of(released)))
    return mine, allocations


def gpu_seconds(pods, allocations, start, end):
    total = 0
    for (_, uid, _) in allocations:
        _, _, bound, released = pods[uid]
        total += max(0, min(end, released if released is not None else end) - max(start, bound))
    return total


def differences(mine, theirs):
    """Both as tenant -> kind -> nano; a kind that is absent is 0."""
    found = []
    for tenant in sorted(set(mine) | set(theirs)):
        for kind in ("capacity", "energy", "shared", "total"):
            ours, other = mine.get(tenant, {}).get(kind, 0), theirs.get(tenant, {}).get(kind, 0)
            if ours != other:
                found.append(f"{tenant} {kind}: the observer has {ours}, the bill {other} nano")
    return found


def observe(admin, kubectl, start, end, bill):
    """Returns (list of what is wrong, GPU-seconds of pods inside the period)."""
    lines = admin.call("GET", "/v1/events", accept="application/jsonl").splitlines()
    events = [json.loads(line) for line in lines]
    pods = pods_of(kubectl)
    wrong = compare_times(pods, events)
    mine, allocations = own_events(pods, events, seconds_of(start))
    documents = [admin.get(path) for path in ("/v1/assets", "/v1/prices", "/v1/pools")]
    rated = oracle.rate(mine, *documents, start=seconds_of(start), end=seconds_of(end))
    wrong += differences(rated["by_tenant"], bill["by_tenant"])
    if rated["tco_nano"] != bill["tco_nano"]:
        wrong.append(f"total cost: the observer has {rated['tco_nano']}, the bill {bill['tco_nano']} nano")
    return wrong, gpu_seconds(pods, allocations, seconds_of(start), seconds_of(end))

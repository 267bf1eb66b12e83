"""Measured loads on a real cluster: of two shared GPUs at 80 % and 10 % the next share goes to the second, whether agents
or Prometheus say so; a source that falls silent is ignored with LoadStale."""
import base64
import contextlib
import hmac
import json
import os
import re
import signal
import urllib.request

import pytest
from conftest import NUMBER, WORK, installed, wait_for

NAMESPACE, SYSTEM, NODE = "load", "gpuaas-system", "node3"
MILLI = "gpuaas.io/gpu-milli"
CONFIGS = {"whole": "version: v1\n", "shares": "version: v1\nsharing: {shares: {devices: [4, 5]}}\n"}
PERIOD_S = 2
PROMETHEUS = f"10.99.{NUMBER}.1:{9590 + int(NUMBER)}"  # as pods reach it


def values(load):
    return {"agent": {"devicePlugin": {"configs": CONFIGS, "default": "whole"}, "config": {"usage": {"sampleS": 2, "readMs": 500}}},
            "scheduler": {"load": {"period": f"{PERIOD_S}s", **load}}}


@pytest.fixture(scope="module")
def shared(cluster):
    with installed(cluster, values({"source": "agents"}), NAMESPACE) as undo:
        undo.callback(cluster.kubectl, "label", "node", NODE, "nvidia.com/device-plugin.config-")
        cluster.kubectl("label", "node", NODE, "nvidia.com/device-plugin.config=shares")
        wait_for("two GPUs in shares", lambda: len(gpus(cluster)) == 2, 90)
        yield cluster


def gpus(cluster):
    devices = cluster.json("get", "gpunode", NODE)["status"].get("devices", [])
    return {d["uuid"] for d in devices if d.get("milli")}


def start(cluster, name, milli, load_milli):
    """A pod with a share that loads its GPU so much; returns the GPU."""
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {
        "schedulerName": "gpuaas", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "containers": [{"name": "main", "image": "testbed.local/gpuaas-workload:dev",
                        "args": ["--seconds", "900", "--memory-mib", "200", "--util-milli", str(load_milli), "--gpus", "1"],
                        "resources": {"limits": {MILLI: str(milli), "cpu": "10m"}}}]}}))

    def plan():
        found = cluster.json("-n", NAMESPACE, "get", "pod", name)["metadata"].get("annotations", {})
        return json.loads(found.get("gpuaas.io/devices", "[]"))

    return wait_for(f"a plan of {name}", plan, 60)[0]["uuid"]


def ask(cluster, path):
    """The scheduler's own answer."""
    pod = next(p for p in cluster.json("-n", SYSTEM, "get", "pods", "-l", "app.kubernetes.io/name=gpuaas-scheduler")["items"]
               if p["status"].get("phase") == "Running" and not p["metadata"].get("deletionTimestamp"))
    key = base64.b64decode(cluster.json("-n", SYSTEM, "get", "secret", "gpuaas-plan-key")["data"]["key"])
    token = hmac.new(key, b"explain", "sha256").hexdigest()
    request = urllib.request.Request(f"http://{pod['status']['podIP']}:9401{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def samples(cluster, result):
    page = ask(cluster, "/metrics")
    found = re.search(r'gpuaas_scheduler_load_samples_total\{result="%s"\} (\d+)' % result, page)
    return int(found.group(1)) if found else 0


def measured(cluster):
    """GPU -> its utilization, as the node's agent measures it."""
    with urllib.request.urlopen(f"http://{cluster.agent(NODE)['status']['podIP']}:9400/metrics", timeout=10) as answer:
        page = answer.read().decode()
    return {u: int(v) for u, v in re.findall(r'DCGM_FI_DEV_GPU_UTIL\{[^}]*UUID="([^"]+)"[^}]*\} (\d+)', page)}


def after_samples(cluster):
    """Two rounds of samples that were asked for from now on."""
    before = samples(cluster, "taken")
    wait_for("samples", lambda: samples(cluster, "taken") >= before + 2 * 24, 60)


def explained(cluster, name):
    return json.loads(ask(cluster, f"/explain/{NAMESPACE}/{name}"))


def check_choice(cluster, busy, calm, prefix):
    after_samples(cluster)
    for i in range(3):
        assert start(cluster, f"{prefix}-{i}", 50, 0) == calm
        why = explained(cluster, f"{prefix}-{i}")
        (load,) = why["load"]
        assert load["gpu"] == calm and load["percent"] < 30 and load["age_s"] <= 3 * PERIOD_S, why
        assert [r["code"] for r in why["reasons"]] == []
    assert busy != calm


def test_the_next_share_goes_where_less_is_done(shared):
    cluster = shared
    busy = start(cluster, "busy", 100, 800)
    wait_for("it is busy", lambda: measured(cluster).get(busy, 0) >= 70, 60)
    after_samples(cluster)
    calm = start(cluster, "calm", 100, 100)
    assert calm != busy, "the fit alone would have it beside the busy one"
    wait_for("and the other a little", lambda: measured(cluster).get(calm, 0) >= 5, 60)
    check_choice(cluster, busy, calm, "agents")
    page = ask(cluster, "/metrics")
    assert 'gpuaas_scheduler_load_gpus{state="fresh"} 24' in page and "gpuaas_scheduler_load_agents 3" in page
    age = float(re.search(r"gpuaas_scheduler_load_age_seconds ([0-9.]+)", page).group(1))
    assert age <= 3 * PERIOD_S


def test_who_may_not_read_a_load_view(shared):
    cluster = shared
    address = f"https://{cluster.agent(NODE)['status']['podIP']}:9402/load"
    status = cluster.shell(f"curl -sk -o /dev/null -w '%{{http_code}}' {address}").stdout
    assert status.strip() == "401"


@contextlib.contextmanager
def silent_agent(cluster):
    pid = cluster.processes("gpuaas-agent")[cluster.agent(NODE)["metadata"]["name"]]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_silent_agent_is_told(shared):
    cluster = shared
    with silent_agent(cluster):
        wait_for("loads are too old", lambda: 'gpuaas_scheduler_load_gpus{state="stale"} 8' in ask(cluster, "/metrics"), 40)
        start(cluster, "blind", 50, 0)
        why = explained(cluster, "blind")
        (reason,) = why["reasons"]
        assert (reason["code"], reason["nodes"]) == ("LoadStale", 1) and why["load"][0]["percent"] is None, why
    wait_for("fresh again", lambda: 'gpuaas_scheduler_load_gpus{state="fresh"} 24' in ask(cluster, "/metrics"), 60)


def test_prometheus_leads_to_the_same(shared):
    cluster = shared
    load = measured(cluster)
    busy, calm = sorted(gpus(cluster), key=lambda u: -load[u])
    cluster.install(values({"source": "prometheus", "url": f"http://{PROMETHEUS}"}))
    wait_for("it is measured", lambda: measured(cluster).get(busy, 0) >= 70, 60)
    (WORK / "load.yaml").unlink(missing_ok=True)
    cluster.shell(f"""
cat >"$work/load.yaml" <<Y
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: dcgm
    static_configs: [{{targets: $(pod_targets gpuaas-agent 9400)}}]
Y
rm -rf "$work/load-data"
process_start load-prometheus prometheus --config.file="$work/load.yaml" --storage.tsdb.path="$work/load-data" \\
    --web.listen-address={PROMETHEUS} --log.level=warn""")
    try:
        check_choice(cluster, busy, calm, "prometheus")
    finally:
        cluster.shell("process_stop load-prometheus")
    wait_for("without it they grow too old", lambda: 'load_gpus{state="fresh"} 0' in ask(cluster, "/metrics"), 40)
    start(cluster, "alone", 50, 0)
    assert [r["code"] for r in explained(cluster, "alone")["reasons"]] == ["LoadStale"]

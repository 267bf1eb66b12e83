"""Two replicas of gpuaas-scheduler against a real API server; the leading one dies, freezes or loses
its network in the middle of its work. FAILOVERS of each kind (1), FREEZE_S seconds frozen (15)."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
from apiserver import PROGRAMS, ApiServer, free_port
from scheduler_test import GPUS, Scheduler, bound, check_no_double, prepare, wait_for

FAILOVERS = int(os.environ.get("FAILOVERS", "1"))
FREEZE_S = float(os.environ.get("FREEZE_S", "15"))
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEDULER = "system:serviceaccount:gpuaas-system:gpuaas-scheduler"
NODES, GPUS_OF_POD = 4, 2
ROOM = NODES * GPUS // GPUS_OF_POD


class Wire:
    """A network between a scheduler and the API server that can be cut: what is sent stays on its
    way, and nothing is closed, as when a cable is pulled."""

    def __init__(self, port):
        self.target, self.is_cut, self.is_over = port, threading.Event(), False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.is_over:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source, sink):
        try:
            while data := source.recv(65536):
                while self.is_cut.is_set() and not self.is_over:
                    time.sleep(0.05)
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            end.close()

    def close(self):
        self.is_over = True
        self.listener.close()


class Replica(Scheduler):
    """A scheduler behind a wire of its own."""

    def __init__(self, server, folder, identity):
        self.wire = Wire(server.port)
        config = json.loads(server.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.wire.port}"
        config["users"][0]["user"]["token"] = "scheduler-token"
        behind = folder / f"{identity}.kubeconfig"
        behind.write_text(json.dumps(config))
        super().__init__(type("Behind", (), {"kubeconfig": behind}), folder, identity)

    def close(self):
        self.end()
        self.wire.close()


def fence(api):
    """The chart's guard of bindings, and none of its others."""
    chart = subprocess.run([PROGRAMS / "helm", "template", "gpuaas", ROOT / "deploy/chart/gpuaas", "-n", "gpuaas-system",
                            "--show-only=templates/admission.yaml"], check=True, capture_output=True, text=True).stdout
    for text in chart.split("\n---\n"):
        if "name: gpuaas-bindings" in text:
            subprocess.run([PROGRAMS / "kubectl", "--kubeconfig", api.server.kubeconfig, "apply", "-f", "-"], check=True,
                           input=text, text=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    server = ApiServer(tmp_path_factory.mktemp("api"))
    with open(server.folder / "tokens.csv", "a", encoding="utf-8") as tokens:
        tokens.write(f'scheduler-token,{SCHEDULER},3,"system:masters"\n')
    with server:
        made = prepare(server)
        fence(made)
        yield made


def other(replicas, leader):
    return next(r for r in replicas if r is not leader)


def kill(leader):
    leader.end()
    return lambda: None


def freeze(leader):
    leader.process.send_signal(signal.SIGSTOP)
    since = time.monotonic()

    def heal():
        time.sleep(max(0.0, since + FREEZE_S - time.monotonic()))
        leader.process.send_signal(signal.SIGCONT)
    return heal


def cut(leader):
    leader.wire.is_cut.set()
    return leader.wire.is_cut.clear


def bind(api, name, term):
    api.call("POST", f"/api/v1/namespaces/a/pods/{name}/binding", {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "annotations": {"gpuaas.io/term": term}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n0"}})


def test_others_bind_before_anybody_has_led(api):
    """Else the scheduler's own pod could never start."""
    api.add_pod("early", 1)
    bind(api, "early", "7")
    assert [pod["metadata"]["name"] for pod in bound(api)] == ["early"]
    api.delete_pods()


@pytest.fixture
def replicas(api):
    made = []
    yield made
    for replica in made:
        replica.close()
    api.delete_pods()


def as_scheduler(api, path, body):
    """What a scheduler of ours says, whoever leads: None, or why it is refused."""
    request = urllib.request.Request(f"https://127.0.0.1:{api.server.port}{path}", method="POST",
                                     data=json.dumps(body).encode(), headers={
                                         "Authorization": "Bearer scheduler-token", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, context=api.context, timeout=30):
            return None
    except urllib.error.HTTPError as error:
        return error.read().decode()


def word(kind, version, name, term=None):
    notes = {} if term is None else {"gpuaas.io/term": str(term)}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "a", "annotations": notes},
            **({"target": {"kind": "Node", "name": "n0"}} if kind == "Binding" else {})}


def test_what_an_earlier_leader_says_is_refused(api, tmp_path, replicas):
    replicas.append(Replica(api.server, tmp_path, "only"))
    wait_for("it leads", replicas[0].is_leading)
    term = api.call("GET", "/apis/coordination.k8s.io/v1/namespaces/gpuaas-system/leases/gpuaas-scheduler")[
        "spec"]["leaseTransitions"]
    api.add_pod("late", 1, schedulerName="nobody")  # else it would be bound at once
    api.add_pod("late2", 1)
    wait_for("one is bound", lambda: len(bound(api)) == 1)
    pods = "/api/v1/namespaces/a/pods"
    # The API server takes up a policy and the objects that it looks at some time after they were made.
    wait_for("the guard is in force", lambda: as_scheduler(
        api, f"{pods}/late/binding?dryRun=All", word("Binding", "v1", "late")))
    for old in (term - 1, term + 1, None):
        for kind, version, name in (("Binding", "v1", "late"), ("Eviction", "policy/v1", "late2")):
            why = as_scheduler(api, f"{pods}/{name}/{kind.lower()}", word(kind, version, name, old))
            assert why is not None and "earlier term" in why, (kind, old, why)
    assert as_scheduler(api, f"{pods}/late2/eviction", word("Eviction", "policy/v1", "late2", term)) is None


@pytest.mark.parametrize("fault", [kill, freeze, cut])
def test_the_other_replica_takes_over(api, tmp_path, replicas, fault):
    took = []
    for number in range(FAILOVERS):
        while len(replicas) < 2:
            replicas.append(Replica(api.server, tmp_path, f"{fault.__name__}-{number}-{len(replicas)}-{free_port()}"))
        leader = wait_for("one leads", lambda: next((r for r in replicas if r.is_leading()), None))
        standby = other(replicas, leader)
        # As many pods as there is room for, and some more: the fault comes while they are bound.
        for i in range(ROOM + 4):
            api.add_pod(f"p{number}-{i}", GPUS_OF_POD)
            if i == ROOM // 2:
                heal, start = fault(leader), time.monotonic()
        wait_for("the other binds what there is room for", lambda: len(bound(api)) == ROOM)
        took.append(time.monotonic() - start)
        check_no_double(api.pods())
        heal()
        # The old leader, back with what it knew, finds room made anew and must not take it.
        for pod in bound(api)[:ROOM // 2]:
            api.delete_pod(pod["metadata"]["name"])
        for i in range(ROOM // 2 - 4):
            api.add_pod(f"q{number}-{i}", GPUS_OF_POD)
        wait_for("all are bound", lambda: len(bound(api)) == ROOM)
        check_no_double(api.pods())
        wait_for("one leads, the other one", lambda: standby.is_leading() and (
            leader.process.poll() is not None or not leader.is_leading()))
        if leader.process.poll() is not None:
            leader.close()
            replicas.remove(leader)
        api.delete_pods()
    print(f"{fault.__name__}: {FAILOVERS} failovers, {min(took):.1f} to {max(took):.1f} s until all that fits is bound")

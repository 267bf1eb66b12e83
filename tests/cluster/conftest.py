"""One real cluster for all tests of this folder, with GPUaaS installed as the demo installs it."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))
NUMBER = os.environ.get("GPUAAS_TESTBED", "0")  # of the testbed, as testbed/lib.sh has it
NAME = "gpuaas-testbed" if NUMBER == "0" else f"gpuaas{NUMBER}-testbed"
STATE = pathlib.Path(os.environ.get("GPUAAS_STATE", f"/var/tmp/{NAME}"))
WORK = ROOT / "build" / f"cluster-state-{NUMBER}"
PROMETHEUS = f"http://127.0.0.1:{9490 + int(NUMBER)}"
PROGRAMS = pathlib.Path(os.environ.get("GPUAAS_CACHE", pathlib.Path.home() / ".cache" / "gpuaas")) / "programs" / "bin"
sys.path.insert(0, str(ROOT / "replay"))
import gateway  # noqa: E402


def run(*command, check=True, **options):
    done = subprocess.run([str(c) for c in command], check=False, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL if "input" not in options else None, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done


def wait_for(what, probe, patience_s=60, pause_s=0.5):
    """The first true value of probe(); fails with its last value after patience_s."""
    deadline = time.monotonic() + patience_s
    while True:
        value = probe()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not within {patience_s} s"
        time.sleep(pause_s)


class Cluster:
    """What tests do to the cluster from outside."""

    url = f"https://10.99.{NUMBER}.11:30443"
    api_url = f"https://10.99.{NUMBER}.1:{6443 + int(NUMBER)}"

    def __init__(self, kubeconfig):
        self.kubeconfig = kubeconfig
        self.environment = dict(os.environ, KUBECONFIG=str(kubeconfig))

    def kubectl(self, *arguments, **options):
        return run(PROGRAMS / "kubectl", *arguments, env=self.environment, **options).stdout

    def kubectl_try(self, *arguments, **options):
        """The finished process, whatever its exit code."""
        return run(PROGRAMS / "kubectl", *arguments, env=self.environment, check=False, **options)

    def json(self, *arguments):
        return json.loads(self.kubectl(*arguments, "-o", "json"))

    def apply(self, text):
        return self.kubectl("apply", "-f", "-", input=text)

    def shell(self, text):
        """Steps of deploy/lib.sh with its variables set."""
        head = f'set -euo pipefail; root="{ROOT}"; programs="{PROGRAMS}"; work="{WORK}"; . "$root/deploy/lib.sh"\n'
        return run("bash", "-c", head + text, env=self.environment)

    def exec_node(self, node, *command, **options):
        return run(ROOT / "testbed" / "exec", node, *command, **options)

    def control(self, node, line):
        """A line to the node's emulator."""
        self.exec_node(node, "sh", "-c", f"echo '{line}' >> /run/gpuaas-emu/control")

    @contextlib.contextmanager
    def dead_gpu(self, node, index):
        """The GPU is dead until the end."""
        try:
            self.control(node, f"recovery {index} 1")  # else it would heal by itself
            self.control(node, f"xid {index} 79")
            yield
        finally:
            self.control(node, f"restore {index}")

    def install(self, values=None, is_ready=True):
        """The demo's chart with these values on top; is_ready: waits until its parts are."""
        file = WORK / "values.json"
        file.write_text(json.dumps(values or {}))
        self.shell(f"testbed_install -f {file}" + ("; parts_ready" if is_ready else ""))

    def agents(self):
        """Node -> the pod of its agent."""
        pods = self.json("-n", "gpuaas-system", "get", "pods", "-l", "app.kubernetes.io/name=gpuaas-agent")["items"]
        return {p["spec"].get("nodeName"): p for p in pods if not p["metadata"].get("deletionTimestamp")}

    def agent(self, node):
        return self.agents()[node]

    def events(self, namespace, *kinds):
        """What the agents told the server of these kinds, in order."""
        lines = self.admin().call("GET", "/v1/events", accept="application/jsonl").splitlines()
        return [e for e in map(json.loads, lines) if e["type"] in kinds and e.get("namespace") == namespace]

    def restart(self, *what):
        return run(ROOT / "testbed" / "restart", *what)

    def admin(self):
        return gateway.Gateway(self.url, WORK / "ca.crt", (WORK / "admin.token").read_text().strip())

    def phase(self, namespace, pod):
        return self.json("-n", namespace, "get", "pod", pod)["status"].get("phase")

    def wait_phase(self, namespace, pod, phases, patience_s=90):
        return wait_for(f"{namespace}/{pod} in {phases}",
                        lambda: self.phase(namespace, pod) in phases and self.phase(namespace, pod), patience_s)

    def processes(self, part):
        """Host pids of the containers' first processes of a part, by pod uid in their cgroup."""
        pods = self.json("-n", "gpuaas-system", "get", "pods", "-l", f"app.kubernetes.io/name={part}")["items"]
        found = {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                cgroup, command = (folder / "cgroup").read_text(), (folder / "cmdline").read_bytes()
                parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
                parent_command = pathlib.Path(f"/proc/{parent}/cmdline").read_bytes()
            except OSError:
                continue
            for pod in pods:
                if pod["metadata"]["uid"] in cgroup and part.encode() in command.split(b"\0")[0] \
                        and part.encode() not in parent_command.split(b"\0")[0]:
                    found[pod["metadata"]["name"]] = int(folder.name)
        return found

    def kill(self, part, which=0):
        """kill -9 of one process of a part; returns the name of its pod."""
        found = wait_for(f"a process of {part}", lambda: self.processes(part))
        name = sorted(found)[which % len(found)]
        os.kill(found[name], signal.SIGKILL)
        return name

    def kill_agent(self, node):
        """kill -9 of the agent of a node."""
        name = self.agent(node)["metadata"]["name"]
        os.kill(wait_for(f"the agent of {node}", lambda: self.processes("gpuaas-agent").get(name)), signal.SIGKILL)


@contextlib.contextmanager
def installed(cluster, values, namespace=None):
    """The chart with these values, and a namespace; yields a stack of what else to undo. Whatever fails meanwhile or while
    it is undone, the others find the cluster as before: first the namespace goes, then what is on the stack, then the values."""
    with contextlib.ExitStack() as undo:
        undo.callback(cluster.install)
        try:
            if namespace:
                cluster.kubectl("create", "namespace", namespace)
            cluster.install(values)
            yield undo
        finally:
            if namespace:
                cluster.kubectl("delete", "namespace", namespace, "--ignore-not-found")


@pytest.fixture(scope="session")
def testbed():
    """A running testbed with nothing of ours on it."""
    environment = dict(os.environ, GPUAAS_PROGRAMS=str(PROGRAMS), GPUAAS_EMUD=str(BUILD / "emulator" / "gpuaas-emud"),
                       GPUAAS_EMU_LIB=str(BUILD / "emulator" / "libnvidia-ml.so.1"))
    run(ROOT / "testbed" / "down", "--state", STATE)
    kubeconfig = run(ROOT / "testbed" / "up", "--state", STATE, env=environment).stdout.strip().splitlines()[-1]
    WORK.mkdir(parents=True, exist_ok=True)
    run(ROOT / "deploy" / "images", BUILD, WORK / "images")
    run(ROOT / "testbed" / "mkimage.py", "--name", "testbed.local/busybox:1", "--out", WORK / "images" / "busybox.tar",
        "--entrypoint", "/bin/busybox", "--dir", "/tmp",
        *(f"--symlink=/bin/{applet}=/bin/busybox" for applet in ("sh", "mknod", "cat", "nc", "sleep", "stat")),
        "/bin/busybox=/bin/busybox")
    run(ROOT / "testbed" / "image-load", *sorted((WORK / "images").glob("*.tar")))
    yield Cluster(kubeconfig)
    if not os.environ.get("GPUAAS_KEEP"):
        run(ROOT / "testbed" / "down", "--state", STATE)


@pytest.fixture(scope="session")
def cluster(testbed):
    """The testbed with GPUaaS installed and ready."""
    (WORK / "admin.token").unlink(missing_ok=True)
    testbed.exec_node("node1", "mkdir", "-p", "/var/lib/gpuaas/server")
    testbed.shell("""
        ground_make node1 /var/lib/gpuaas/server
        testbed_install
        parts_ready
    """)
    wait_for("three nodes with GPUs", lambda: sum(
        bool(n.get("devices")) for n in testbed.admin().pages("/v1/nodes")) == 3)
    return testbed

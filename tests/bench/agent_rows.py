"""The agent on eight emulated GPUs under a kubelet of our own, beside another device plugin."""
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

from harness import ROOT, Figure, Group, Process, Skip, free_port, ms

BOARD, GPUS = "A100-SXM4-80GB", 8
DRIVER_LIBRARY = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
RECORDED = ("recorded of nvidia-device-plugin 0.20.0 on 2 cores with a fake NVML: exec to Register 30-90 ms, "
            "Allocate p50 0.17-0.24 ms and p99 0.9-1.3 ms, GetPreferredAllocation p50 4-12 ms, "
            "re-registration 3-6 ms, RSS 27 MB and 50 MB more for its discovery program; not measured in this run")


class Machine:
    """Eight emulated GPUs with a driver's files, in a folder of its own."""

    def __init__(self, bench):
        self.bench = bench
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuaas-bench-"))
        self.emulator = self.folder / "emu"
        self.emulator.mkdir()
        emud = bench.program("gpuaas-emud")
        boards = ROOT / "emulator" / "boards"
        made = subprocess.run([emud, "--make", boards / f"{BOARD}.json", "--count", str(GPUS), "--seed", "bench"],
                              check=True, capture_output=True)
        (self.emulator / "boards.json").write_bytes(made.stdout)
        self.library = bench.program("nvidia-ml")
        self.make_driver()
        self.daemon = Process(self.folder / "emud.log", [emud, "--dir", self.emulator, "--boards", boards])
        self.daemon.require("ready", (self.emulator / "emu.sock").exists)

    def make_driver(self):
        self.driver = self.folder / "driver"
        library = self.driver / DRIVER_LIBRARY
        library.parent.mkdir(parents=True)
        shutil.copy(self.library, library)
        (self.driver / "dev").mkdir()
        for name, minor in [("nvidiactl", 255), *((f"nvidia{index}", index) for index in range(GPUS))]:
            try:
                os.mknod(self.driver / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(195, minor))
            except PermissionError as error:
                raise Skip("making device nodes needs root") from error

    def path(self, name):
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def close(self):
        self.daemon.stop()
        shutil.rmtree(self.folder)


def agent_command(machine, port):
    config = machine.folder / "agent.yaml"
    config.write_text("{}\n")
    pod_resources = machine.folder / "pod-resources.sock"
    command = [machine.bench.program("gpuaas-agent"), "--node-name=bench", f"--device-plugin-dir={machine.path('dp')}",
               f"--pod-resources-socket={pod_resources}", f"--plugin-registry-dir={machine.path('registry')}",
               f"--cdi-dir={machine.path('cdi')}", f"--state-dir={machine.path('state')}",
               f"--driver-root={machine.driver}", f"--nvml-library={machine.driver / DRIVER_LIBRARY}",
               f"--listen=127.0.0.1:{port}", f"--config={config}", "--kubeconfig=none", "--log-level=warn"]
    return pod_resources, command


def measure_agent(machine, replicas=0, **counts):
    """replicas: of each GPU by time-slicing; counts: allocate, prefer, scrape, reborn."""
    port = free_port()
    pod_resources, command = agent_command(machine, port)
    if replicas:
        shares = machine.folder / "shares.yaml"
        shares.write_text("version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, "
                          f"replicas: {replicas}}}]}}}}\n")
        command.append(f"--config-file={shares}")
    faults = () if replicas else ("--control", machine.emulator / "control")  # they count GPUs
    options = [part for name, value in counts.items() for part in (f"--{name}", value)]
    return machine.bench.measure("kubelet-bench", "--dir", machine.path("dp"), "--pod-resources", pod_resources,
                         *faults, "--metrics", f"http://127.0.0.1:{port}", *options, "--", *command, environment={"GPUAAS_EMU": str(machine.emulator)})


def measure_peer(machine):
    """The same steps with the program of PEER_DEVICE_PLUGIN, whose folder is fixed; None without it."""
    peer = os.environ.get("PEER_DEVICE_PLUGIN")
    if not peer:
        return None
    fixed = "/var/lib/kubelet/device-plugins"
    script = f'mkdir -p {fixed} && mount --bind "$1" {fixed} && shift && exec "$@"'
    return machine.bench.measure(
        "kubelet-bench", "--dir", fixed, "--control", machine.emulator / "control", "--", peer,
        prefix=["unshare", "--mount", "sh", "-euc", script, "sh", machine.path("peer")],
        environment={"GPUAAS_EMU": str(machine.emulator), "PASS_DEVICE_SPECS": "true",
                     "LD_LIBRARY_PATH": str((machine.driver / DRIVER_LIBRARY).parent)})


ROWS = {  # row: (field, divisor, unit, to reach)
    "agent_rss": ("used_rss_kib", 1024, "MiB", "<= 16"),
    "agent_rss_own": ("used_own_kib", 1024, "MiB", ""),
    "agent_register_p50": ("register_p50", 1e6, "ms wall", "<= 50"),
    "agent_register_max": ("register_max", 1e6, "ms wall", ""),
    "agent_allocate_p50": ("allocate_p50", 1e6, "ms wall", "<= 0.15"),
    "agent_allocate_p99": ("allocate_p99", 1e6, "ms wall", "<= 1"),
    "agent_prefer_p50": ("prefer_p50", 1e6, "ms wall", ""),
    "agent_prefer_p99": ("prefer_p99", 1e6, "ms wall", "<= 1"),
    "agent_xid": ("xid_max", 1e6, "ms wall", "<= 100"),
    "agent_reborn": ("reborn_max", 1e6, "ms wall", "<= 1000"),
    "agent_scrape_p50": ("scrape_p50", 1e6, "ms wall", ""),
    "agent_scrape_p99": ("scrape_p99", 1e6, "ms wall", "<= 5"),
    "agent_scrape_hang_p99": ("hang_p99", 1e6, "ms wall", "<= 5"),
}


def agent(bench):
    machine = Machine(bench)
    try:
        ours = measure_agent(machine)
    finally:
        machine.close()
    machine = Machine(bench)
    try:
        theirs = measure_peer(machine)
    finally:
        machine.close()
    first = True
    for row, (field, divisor, unit, _) in ROWS.items():
        figure = Figure(row, ours[field] / divisor, unit, cpu_s=ours["cpu_ns"] / 1e9)
        if theirs and field in theirs:
            figure.peer, figure.peer_value = "device plugin", theirs[field] / divisor
        if first:
            figure.note = (f"{ours['devices']} GPUs, {ours['used_processes']} processes with the one that holds NVML; "
                           f"{ours['scrape_bytes']} bytes a scrape" + ("" if theirs else f"; {RECORDED}"))
            first = False
        yield figure


SHARES = 1000  # of each GPU


def shares(bench):
    machine = Machine(bench)
    try:
        ours = measure_agent(machine, replicas=SHARES, allocate=500, prefer=500, scrape=50, reborn=1)
    finally:
        machine.close()
    assert ours["devices"] == SHARES * GPUS
    for row in ("allocate", "prefer"):
        yield Figure(f"agent_shares_{row}_p99", ms(ours[f"{row}_p99"]), "ms wall", cpu_s=ours["cpu_ns"] / 1e9)
    yield Figure("agent_shares_rss", ours["used_rss_kib"] / 1024, "MiB")


GROUPS = [Group("agent", "the agent with 8 emulated GPUs under a kubelet of our own (PEER_DEVICE_PLUGIN)",
                {row: reach for row, (_, _, _, reach) in ROWS.items()}, agent),
          Group("agent_shares", f"the same GPUs in {SHARES} shares each",
                {"agent_shares_allocate_p99": "<= 1", "agent_shares_prefer_p99": "<= 5", "agent_shares_rss": ""}, shares)]

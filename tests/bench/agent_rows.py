"""The agent on eight emulated GPUs under a kubelet of our own, beside another device plugin."""
import json
import os
import pathlib
import re
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
    """Emulated GPUs with a driver's files, in a folder of its own; commands: what the emulator does first."""

    def __init__(self, bench, board=BOARD, gpus=GPUS, commands=()):
        self.bench, self.gpus = bench, gpus
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuaas-bench-"))
        self.emulator = self.folder / "emu"
        self.emulator.mkdir()
        emud = bench.program("gpuaas-emud")
        boards = ROOT / "emulator" / "boards"
        made = subprocess.run([emud, "--make", boards / f"{board}.json", "--count", str(gpus), "--seed", "bench"],
                              check=True, capture_output=True)
        (self.emulator / "boards.json").write_bytes(made.stdout)
        (self.emulator / "control").write_text("".join(f"{command}\n" for command in commands))
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
        for name, minor in [("nvidiactl", 255), *((f"nvidia{index}", index) for index in range(self.gpus))]:
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


def agent_command(machine, port, own):
    config = machine.folder / "agent.yaml"
    config.write_text(json.dumps(own))
    pod_resources = machine.folder / "pod-resources.sock"
    command = [machine.bench.program("gpuaas-agent"), "--node-name=bench", f"--device-plugin-dir={machine.path('dp')}",
               f"--pod-resources-socket={pod_resources}", f"--plugin-registry-dir={machine.path('registry')}",
               f"--cdi-dir={machine.path('cdi')}", f"--state-dir={machine.path('state')}",
               f"--driver-root={machine.driver}", f"--nvml-library={machine.driver / DRIVER_LIBRARY}",
               f"--listen=127.0.0.1:{port}", f"--config={config}", "--kubeconfig=none", "--log-level=warn"]
    return pod_resources, command


def measure_agent(machine, upstream=None, own=None, faults=True, **counts):
    """upstream: a device plugin's configuration, own: the agent's; counts: allocate, prefer, scrape, reborn, idle."""
    port = free_port()
    pod_resources, command = agent_command(machine, port, own or {})
    if upstream is not None:
        (machine.folder / "plugin.yaml").write_text(json.dumps({"version": "v1", **upstream}))
        command.append(f"--config-file={machine.folder / 'plugin.yaml'}")
    control = ("--control", machine.emulator / "control") if faults else ()
    options = [part for name, value in counts.items() for part in (f"--{name}", value)]
    return machine.bench.measure("kubelet-bench", "--dir", machine.path("dp"), "--pod-resources", pod_resources,
                                 *control, "--metrics", f"http://127.0.0.1:{port}", *options, "--", *command,
                                 environment={"GPUAAS_EMU": str(machine.emulator)})


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


def measure_on(bench, measure=measure_agent, machine=None, **more):
    made = Machine(bench, **(machine or {}))
    try:
        return measure(made, **more)
    finally:
        made.close()


SCRAPES = 2000
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
    "agent_scrape_cpu": ("scrapes_cpu_ns", SCRAPES * 1e6, "ms CPU", "<= 0.5"),
    "agent_scrape_hang_p99": ("hang_p99", 1e6, "ms wall", "<= 5"),
}


def agent(bench):
    ours = measure_on(bench, scrape=SCRAPES)
    theirs = measure_on(bench, measure_peer)
    first = True
    for row, (field, divisor, unit, _) in ROWS.items():
        figure = Figure(row, ours[field] / divisor, unit, cpu_s=ours["cpu_ns"] / 1e9)
        if theirs and field in theirs and field != "scrapes_cpu_ns":
            figure.peer, figure.peer_value = "device plugin", theirs[field] / divisor
        if first:
            figure.note = (f"{ours['devices']} GPUs, {ours['used_processes']} processes with the one that holds NVML; "
                           f"{ours['scrape_bytes']} bytes a scrape" + ("" if theirs else f"; {RECORDED}"))
            first = False
        yield figure


IDLE_MS = 45000
READS = {"agent_idle_cpu": 15000, "agent_idle_default_cpu": 2000}  # row: usage.readMs


def idle(bench):
    for row, read_ms in READS.items():
        ours = measure_on(bench, own={"usage": {"readMs": read_ms}}, faults=False, allocate=1, prefer=1, scrape=1, reborn=1,
                          idle=IDLE_MS)
        yield Figure(row, 100 * ours["idle_cpu_ns"] / ours["idle_ns"], "% of a core",
                     note=f"{GPUS} GPUs read each {read_ms // 1000} s, XIDs waited for; the emulator's library asks by a socket")


MANY = 16


def many(bench):
    ours = measure_on(bench, machine={"gpus": MANY}, faults=False, scrape=50, reborn=1)
    assert ours["devices"] == MANY
    yield Figure("agent_16_prefer_p99", ms(ours["prefer_p99"]), "ms wall", cpu_s=ours["cpu_ns"] / 1e9)
    yield Figure("agent_16_rss", ours["used_rss_kib"] / 1024, "MiB")


SHARES = 1000  # of each GPU


def shares(bench):
    sharing = {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": SHARES}]}}
    ours = measure_on(bench, upstream={"sharing": sharing}, faults=False,  # they count GPUs
                      allocate=500, prefer=500, scrape=50, reborn=1)
    assert ours["devices"] == SHARES * GPUS
    for row in ("allocate", "prefer"):
        yield Figure(f"agent_shares_{row}_p99", ms(ours[f"{row}_p99"]), "ms wall", cpu_s=ours["cpu_ns"] / 1e9)
    yield Figure("agent_shares_rss", ours["used_rss_kib"] / 1024, "MiB")


MIG_BOARD, MIG_PROFILE, INSTANCES = "H100-SXM5-80GB", "1g.10gb", 7
MIG_SCRAPES = 1000


def all_counters(machine):
    """A file with every counter that the agent can show."""
    known = re.findall(r'"(DCGM_FI_\w+)", "(\w+)"', (ROOT / "src" / "gpu" / "field.h").read_text())
    path = machine.folder / "counters.csv"
    path.write_text("".join(f"{name}, {kind}, {name}\n" for name, kind in known))
    return len(known), {"metrics": {"countersFile": str(path)}}


def measure_mig(machine):
    counters, own = all_counters(machine)
    got = measure_agent(machine, upstream={"flags": {"migStrategy": "single"}}, own=own, faults=False,
                        scrape=MIG_SCRAPES, reborn=1)
    return {**got, "counters": counters}


def mig(bench):
    layout = ["on", *[f"create {MIG_PROFILE}"] * INSTANCES]
    commands = [f"mig {index} {step}" for index in range(GPUS) for step in layout]
    ours = measure_on(bench, measure_mig, machine={"board": MIG_BOARD, "commands": commands})
    assert ours["devices"] == GPUS * INSTANCES
    yield Figure("agent_mig_rss", ours["used_rss_kib"] / 1024, "MiB", cpu_s=ours["cpu_ns"] / 1e9,
                 note=f"{GPUS} GPUs of {INSTANCES} instances, all {ours['counters']} counters; {ours['scrape_bytes']} bytes "
                      "a scrape: what is known of a GPU alone is told once, not of each instance")
    yield Figure("agent_mig_scrape_p50", ms(ours["scrape_p50"]), "ms wall")
    yield Figure("agent_mig_scrape_p99", ms(ours["scrape_p99"]), "ms wall")
    yield Figure("agent_mig_scrape_cpu", ms(ours["scrapes_cpu_ns"]) / MIG_SCRAPES, "ms CPU")
    yield Figure("agent_mig_prefer_p99", ms(ours["prefer_p99"]), "ms wall")


GROUPS = [Group("agent", "the agent with 8 emulated GPUs under a kubelet of our own (PEER_DEVICE_PLUGIN)",
                {row: reach for row, (_, _, _, reach) in ROWS.items()}, agent),
          Group("agent_idle", "what the agent uses while nobody asks it anything",
                {row: "<= 0.3" if read_ms >= 15000 else "" for row, read_ms in READS.items()}, idle),
          Group("agent_16", "sixteen GPUs", {"agent_16_prefer_p99": "<= 1", "agent_16_rss": ""}, many),
          Group("agent_shares", f"the same GPUs in {SHARES} shares each",
                {"agent_shares_allocate_p99": "<= 1", "agent_shares_prefer_p99": "<= 5", "agent_shares_rss": ""}, shares),
          Group("agent_mig", f"8 GPUs of {INSTANCES} MIG devices, all counters",
                {"agent_mig_rss": "<= 16", "agent_mig_scrape_p50": "", "agent_mig_scrape_p99": "<= 20",
                 "agent_mig_scrape_cpu": "<= 5", "agent_mig_prefer_p99": ""}, mig)]

"""What the rows of ./bench share: the build, programs and their CPU time, figures, output."""
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024
PROGRAMS = pathlib.Path(os.environ.get("GPUAAS_CACHE", pathlib.Path.home() / ".cache" / "gpuaas")) / "programs" / "bin"


class Skip(Exception):
    """The row's input is not here; the text says what is missing."""


@dataclasses.dataclass
class Figure:
    row: str
    value: float | None
    unit: str
    peer: str = ""
    peer_value: float | None = None
    cpu_s: float | None = None
    note: str = ""
    load1: float = dataclasses.field(default_factory=lambda: os.getloadavg()[0])

    def ratio(self):
        return self.value / self.peer_value if self.value is not None and self.peer_value else None


@dataclasses.dataclass
class Group:
    """Rows that are measured together: run(bench) yields their figures."""
    name: str
    about: str
    rows: dict  # row: what is to be reached
    run: object


class Bench:
    """Programs of one build folder and a folder for data that can be made again."""

    def __init__(self, build, data):
        self.build, self.data = build, data
        self.targets = None

    def configure(self):
        if not (self.build / "build.ninja").exists():
            subprocess.run(["nice", "meson", "setup", str(self.build), "--buildtype=release", "-Db_ndebug=false"],
                           cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["nice", "ninja", "-C", str(self.build), "--quiet", "build.ninja"], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        text = subprocess.run(["meson", "introspect", str(self.build), "--targets"], cwd=ROOT, check=True,
                              capture_output=True, text=True).stdout
        self.targets = {target["name"]: pathlib.Path(target["filename"][0]) for target in json.loads(text)}

    def program(self, name):
        """Path of the built program or library of that name."""
        if self.targets is None:
            self.configure()
        if name not in self.targets:
            raise Skip(f"{name} is not part of this build")
        path = self.targets[name]
        subprocess.run(["nice", "ninja", "-C", str(self.build), "--quiet", str(path.relative_to(self.build))],
                       cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return path

    def measure(self, name, *arguments, prefix=(), environment=None):
        """The JSON object that one of our measuring programs prints."""
        command = [*map(str, prefix), str(self.program(name)), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              env=dict(os.environ, **(environment or {})))
        if done.returncode != 0:
            raise RuntimeError(f"{name}: exit {done.returncode}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def run(self, command, repeat=1, output="/dev/null"):
        return self.measure("run-bench", "--repeat", repeat, "--output", output, "--", *command)


def input_file(variable, *parts):
    """A file below the folder that the environment names."""
    folder = os.environ.get(variable)
    if not folder:
        raise Skip(f"{variable} names no folder")
    path = pathlib.Path(folder).joinpath(*parts)
    if not path.exists():
        raise Skip(f"{path} is not there")
    return path


def program_of(variable, name):
    """A program named by the environment, else from the cache of the test cluster's programs."""
    path = pathlib.Path(os.environ.get(variable, PROGRAMS / name))
    if not path.exists():
        raise Skip(f"{name} is not there: {variable}=FILE, or testbed/programs/build")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what, probe, patience_s=30, pause_s=0.05):
    deadline = time.monotonic() + patience_s
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {patience_s} s")
        time.sleep(pause_s)


class Process:
    """A program in the background, with its log, its CPU time and its end."""

    def __init__(self, log, command, **environment):
        self.log = log
        self.name = pathlib.Path(command[0]).name
        with open(log, "wb") as file:
            self.child = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=file,
                                          stderr=subprocess.STDOUT, env=dict(os.environ, **environment),
                                          start_new_session=True)

    def cpu_s(self):
        """Of the process and the children that it waited for and still has."""
        return sum(cpu_of(pid) for pid in family(self.child.pid))

    def rss_kib(self):
        total = 0
        for pid in family(self.child.pid):
            with contextlib.suppress(OSError):
                total += int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_KIB
        return total

    def is_running(self):
        return self.child.poll() is None

    def require(self, what, probe, patience_s=30):
        def probe_or_fail():
            if not self.is_running():
                raise RuntimeError(f"{self.name} ended: {self.tail()}")
            return probe()
        return wait_until(f"{self.name}: {what}", probe_or_fail, patience_s)

    def tail(self):
        return self.log.read_text(errors="replace")[-1500:]

    def stop(self):
        if self.is_running():
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.child.kill()
        self.child.wait()


def cpu_of(pid):
    """CPU seconds: of its threads to the nanosecond, where the kernel counts so, of children it waited for in ticks."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        own, waited = (sum(map(int, part)) / TICKS for part in (fields[11:13], fields[13:15]))
        exact = sum(int((task / "schedstat").read_text().split()[0])
                    for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9
    except OSError:
        return 0
    # Threads that ended are missing in the exact sum: then the ticks know more.
    return waited + (exact if abs(exact - own) < 0.05 + own / 50 else own)


def family(pid):
    """The process and all below it."""
    pids = [pid]
    for member in pids:
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{member}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
    return pids


def ms(ns):
    return ns / 1e6


def number(value):
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def table(figures, targets):
    head = ("ROW", "VALUE", "UNIT", "PEER", "PEER VALUE", "RATIO", "CPU S", "LOAD", "TO REACH")
    rows = [head] + [(f.row, number(f.value), f.unit, f.peer or "-", number(f.peer_value), number(f.ratio()),
                      number(f.cpu_s), f"{f.load1:.1f}", targets.get(f.row, "")) for f in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row, figure, after in zip(rows, [None, *figures], [*figures, None]):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
        if figure is not None and figure.note and (after is None or after.note != figure.note):
            print(f"    {figure.note}")


def write_json(path, figures, targets):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"row": f.row, "value": f.value, "unit": f.unit, "peer": f.peer or None, "peer_value": f.peer_value,
             "ratio": f.ratio(), "cpu_s": f.cpu_s, "load1": f.load1, "target": targets.get(f.row), "note": f.note}
            for f in figures]
    path.write_text(json.dumps(rows, indent=1) + "\n")

"""The node agent's program from outside: command line, pages, TLS, a full disk under its journal,
a server that takes usage, all without a kubelet."""
import collections
import contextlib
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))
AGENT = BUILD / "src" / "daemons" / "agent" / "gpuaas-agent"
BOARD = ROOT / "emulator" / "boards" / "L40S.json"


def wait_until(is_true, what, limit_s=20):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if is_true():
                return
        time.sleep(0.05)
    raise AssertionError(f"not within {limit_s} s: {what}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Rig:
    """Emulated GPUs and an agent; state may lie elsewhere."""

    def __init__(self, folder, config=None, state=None, flags=None):
        self.folder, self.config, self.port, self.flags = folder, {}, free_port(), flags or {}
        for name in ("emu", "dp", "driver"):
            (folder / name).mkdir()
        self.state = state or folder / "state"
        self.config = {"usage": {"sampleS": 1, "readMs": 100}, **(config or {})}
        made = subprocess.run([BUILD / "emulator" / "gpuaas-emud", "--make", BOARD, "--count", "2", "--seed", "s"],
                              check=True, capture_output=True)
        (folder / "emu" / "boards.json").write_bytes(made.stdout)
        self.log = open(folder / "agent.log", "ab")
        self.emud = subprocess.Popen([BUILD / "emulator" / "gpuaas-emud", "--dir", folder / "emu"], stderr=self.log)
        wait_until((folder / "emu" / "emu.sock").exists, "the emulator is ready")
        self.start()

    def start(self):
        (self.folder / "agent.yaml").write_text(json.dumps(self.config))
        options = {"node-name": "node1", "device-plugin-dir": self.folder / "dp", "cdi-dir": self.folder / "cdi",
                   "pod-resources-socket": self.folder / "pods.sock", "state-dir": self.state,
                   "driver-root": self.folder / "driver", "nvml-library": BUILD / "emulator" / "libnvidia-ml.so.1",
                   "listen": f"127.0.0.1:{self.port}", "config": self.folder / "agent.yaml", "kubeconfig": "none",
                   **self.flags}
        self.agent = subprocess.Popen([AGENT, *(f"--{name}={value}" for name, value in options.items())],
                                      stderr=self.log, env={**os.environ, "GPUAAS_EMU": str(self.folder / "emu")})

    def stop(self, how=signal.SIGTERM):
        self.agent.send_signal(how)
        return self.agent.wait(timeout=10)

    def close(self):
        for process in (self.agent, self.emud):
            if process.poll() is None:
                process.kill()
                process.wait()
        self.log.close()

    def get(self, path, scheme="http", context=None):
        with urllib.request.urlopen(f"{scheme}://127.0.0.1:{self.port}{path}", context=context, timeout=5) as answer:
            return answer.read().decode()

    def metric(self, name):
        found = re.findall(rf"^gpuaas_agent_{name} (\S+)$", self.get("/metrics"), re.M)
        return float(found[0]) if found else None

    def journal(self):
        run = subprocess.run([AGENT, "journal", self.state / "journal"], capture_output=True, text=True, check=True)
        return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.fixture
def rig(tmp_path):
    with contextlib.closing(Rig(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("arguments, code, text", [
    (["--help"], 0, "usage: gpuaas-agent"),
    (["--version"], 0, "gpuaas-agent "),
    (["--check-config", "--node-name=n"], 0, "health.probeMs: 1000"),
    (["--listne=x"], 2, "--listne"),
    (["--node-name", "n", "--config", "/nonexistent"], 2, "/nonexistent"),
    (["--node-name", "n", "--log-level", "loud"], 2, "loud"),
    (["journal"], 2, "usage"),
    (["journal", "/nonexistent"], 3, "/nonexistent"),
    (["journal", "/etc/passwd"], 1, "no line of a journal"),
])
def test_command_line(arguments, code, text):
    run = subprocess.run([AGENT, *arguments], capture_output=True, text=True, timeout=10)
    assert (run.returncode, text in run.stdout + run.stderr) == (code, True), run
    assert (code == 0) == bool(run.stdout)


@pytest.mark.parametrize("text, said", [
    ("health:\n  probeMs: soon\n", "line 2: health.probeMs must be a whole number"),
    ("resource: a/b\nhealth:\n  probems: 1\n", 'line 3: health: unknown field "probems"; known are '),
    ("\nresorce: a/b\n", 'line 2: unknown field "resorce"; known are '),
    ("extraDeviceMounts:\n- {hostPath: /a, containerPath: /b}\n- {hostPath: /a, path: /b}\n",
     'line 3: extraDeviceMounts[1]: unknown field "path"'),
    ("usage: [\n", "line 2: "),
    ("\nmode: both\n", "line 2: mode must be device-plugin or dra"),
    ("mode: dra\ndra:\n  unhealthyEffect: Never\n", "line 3: dra.unhealthyEffect must be NoSchedule or NoExecute"),
])
def test_bad_configuration_says_where(tmp_path, text, said):
    (tmp_path / "agent.yaml").write_text(text)
    run = subprocess.run([AGENT, "--node-name=n", f"--config={tmp_path}/agent.yaml"], capture_output=True, text=True)
    assert run.returncode == 2 and f"{tmp_path}/agent.yaml: {said}" in run.stderr


@pytest.mark.parametrize("text, code, said", [
    ("version: v1\nflags: {migStrategy: none, plugin: {deviceListStrategy: [envvar, cdi-cri]}}\n", 0, "resource: nvidia.com/gpu"),
    ("version: v1\nflags:\n  plugin:\n    passDeviceSpec: true\n", 2, "dp.yaml: line 4: flags.plugin.passDeviceSpec: is no key"),
    ("version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: gpu, replicas: 1}\n", 2,
     "dp.yaml: line 5: sharing.timeSlicing.resources[0].replicas: must be a whole number of at least 2"),
    ("version: v1\nsharing: [\n", 2, "dp.yaml: line 3: "),
])
def test_configuration_of_upstream(tmp_path, text, code, said):
    (tmp_path / "dp.yaml").write_text(text)
    run = subprocess.run([AGENT, "--node-name=n", "--check-config", "--pass-device-specs", f"--config-file={tmp_path}/dp.yaml"],
                         capture_output=True, text=True)
    assert (run.returncode, said in run.stdout + run.stderr) == (code, True), run


def test_configuration_of_environment(tmp_path):
    run = subprocess.run([AGENT, "--node-name=n", "--check-config"], capture_output=True, text=True,
                         env={**os.environ, "DEVICE_LIST_STRATEGY": "all"})
    assert run.returncode == 2 and "$DEVICE_LIST_STRATEGY: \"all\" is not known here" in run.stderr


def test_configurations_of_a_folder(tmp_path):
    """Without a label: the default, else a file `default`, else the only one; replaced as a config map is."""
    folder = tmp_path / "configs"
    (folder / "..one").mkdir(parents=True)
    (folder / "..one" / "only").write_text("version: v1\n")
    (folder / "..data").symlink_to("..one")
    (folder / "only").symlink_to("..data/only")
    with contextlib.closing(Rig(tmp_path, flags={"config-file-srcdir": folder})) as rig:
        wait_until(lambda: 'plugin_config_info{name="only"} 1' in rig.get("/metrics"), "the only one is taken")
        (folder / "..two").mkdir()
        (folder / "..two" / "only").write_text("version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n")
        (folder / "next").symlink_to("..two")
        (folder / "next").rename(folder / "..data")
        wait_until(lambda: rig.metric("plugin_config_failing") == 1, "a broken one is stated")
        assert "sharing.mps needs flags.mpsRoot" in (tmp_path / "agent.log").read_text()
        (folder / "default").write_text("version: v1\n")
        wait_until(lambda: 'plugin_config_info{name="default"} 1' in rig.get("/metrics"), "default comes first")
        assert rig.metric("plugin_config_failing") == 0
        assert rig.stop() == 0


def test_a_configuration_that_comes_back_as_it_was(tmp_path):
    """It was away for a moment, as while a config map is swapped: nothing is wrong any more."""
    file, away = tmp_path / "dp.yaml", tmp_path / "away.yaml"
    file.write_text("version: v1\n")
    with contextlib.closing(Rig(tmp_path, flags={"config-file": file})) as rig:
        wait_until(lambda: rig.metric("plugin_config_loads_total") == 1, "it is taken")
        file.rename(away)
        wait_until(lambda: rig.metric("plugin_config_failing") == 1, "its absence is stated")
        away.rename(file)
        wait_until(lambda: rig.metric("plugin_config_failing") == 0, "it is good again")
        assert rig.stop() == 0


@pytest.mark.parametrize("mode, text, said", [
    ({"mode": "dra"}, "version: v1\n", "mode dra needs an API server"),
    ({"dra": {"nodes": "m, n"}}, "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 2}\n",
     "mode dra gives whole GPUs and MIG devices to claims"),
    ({"mode": "dra"}, "version: v1\nflags: {migStrategy: single}\n", "leave out sharing and migStrategy single"),
])
def test_what_mode_dra_cannot_do(tmp_path, mode, text, said):
    (tmp_path / "dp.yaml").write_text(text)
    (tmp_path / "agent.yaml").write_text(json.dumps(mode))
    run = subprocess.run([AGENT, "--node-name=n", f"--config={tmp_path}/agent.yaml", f"--config-file={tmp_path}/dp.yaml", "--kubeconfig=none",
                          f"--state-dir={tmp_path}/state"], capture_output=True, text=True, timeout=30)
    assert run.returncode != 0 and said in run.stderr, run


def test_broken_configuration_at_start(tmp_path):
    (tmp_path / "dp.yaml").write_text("version: v1\nflag: {}\n")
    with contextlib.closing(Rig(tmp_path, flags={"config-file": tmp_path / "dp.yaml"})) as rig:
        assert rig.agent.wait(timeout=10) == 1
        assert "line 2: flag: is no key of file v1" in (tmp_path / "agent.log").read_text()


def test_pages(rig):
    wait_until(lambda: "DCGM_FI_DEV_POWER_USAGE{" in rig.get("/metrics"), "readings")
    page = rig.get("/metrics")
    sample = re.compile(r'[a-zA-Z_:][\w:]*(\{([a-zA-Z_]\w*="([^"\\\n]|\\["\\n])*",?)*\})? -?[0-9.e+-]+')
    types, seen = {}, collections.Counter()
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, "a family stands in one place"
            types[name] = kind
        elif not line.startswith("# HELP "):
            assert sample.fullmatch(line), line
            seen[line.rsplit(" ", 1)[0]] += 1
            assert line.split("{")[0].split(" ")[0] in types
    assert max(seen.values()) == 1, "a series stands once"
    label = r'gpu="0",UUID="GPU-[^"]+",pci_bus_id="[^"]+",device="nvidia0",modelName="NVIDIA L40S",Hostname="node1",'
    assert re.search(r"^DCGM_FI_DEV_POWER_USAGE\{" + label + r'DCGM_FI_DRIVER_VERSION="[^"]+"\} \d+\.\d{6}$', page, re.M)
    assert rig.get("/healthz") == "ok\n"
    with pytest.raises(urllib.error.HTTPError) as refused:
        rig.get("/readyz")
    assert refused.value.code == 503 and "kubelet" in refused.value.read().decode()
    with pytest.raises(urllib.error.HTTPError) as refused:
        rig.get("/secrets")
    assert refused.value.code == 404
    assert rig.stop() == 0


def ask(rig, token=None, **headers):
    """Status, type and text of /metrics."""
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"http://127.0.0.1:{rig.port}/metrics", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Content-Type"], refused.read().decode()


def promtool(page):
    return subprocess.run(["promtool", "check", "metrics"], input=page, check=False, capture_output=True, text=True)


def test_promtool_and_openmetrics(rig):
    wait_until(lambda: "DCGM_FI_DEV_POWER_USAGE{" in rig.get("/metrics"), "readings")
    page = rig.get("/metrics")
    whole = promtool(page)
    # The classic names break rules of naming that promtool knows; the text itself is right.
    assert whole.returncode in (0, 3), whole.stderr
    ours = re.sub(r"^(# (HELP|TYPE) )?DCGM_.*\n", "", page, flags=re.M)
    done = promtool(ours)
    assert (done.returncode, done.stdout + done.stderr) == (0, ""), done
    assert 'gpuaas_agent_gpu_up{UUID="GPU-' in page and "gpuaas_agent_gpu_reading_age_seconds{" in page
    status, kind, text = ask(rig, Accept="application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3")
    assert status == 200 and kind.startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    families = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name = re.match(r"[a-zA-Z_:][\w:]*", line).group()
        kind = families.get(name) or families.get(re.sub(r"_(total|bucket|sum|count)$", "", name))
        assert kind, line
        assert (kind == "counter") == (name.endswith("_total") and name not in families), line
    assert ask(rig, Accept="text/plain")[1].startswith("text/plain; version=0.0.4")
    assert ask(rig, Accept="application/openmetrics-text;q=0")[1].startswith("text/plain")


def test_counters_from_a_file(tmp_path):
    path = tmp_path / "counters.csv"
    path.write_text("# mine\nDCGM_FI_DEV_GPU_UTIL, gauge, busy\nDCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, x\n")
    families = lambda rig: set(re.findall(r"^# TYPE (DCGM\S+)", rig.get("/metrics"), re.M))  # noqa: E731
    with contextlib.closing(Rig(tmp_path, {"metrics": {"countersFile": str(path)}})) as rig:
        wait_until(lambda: families(rig) == {"DCGM_FI_DEV_GPU_UTIL"}, "one counter")
        assert rig.metric("counters") == 1 and rig.metric("counters_unserved") == 1
        path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, busy\nDCGM_FI_DEV_GPU_TEMPERATURE, gauge, x\n")
        rig.agent.send_signal(signal.SIGHUP)
        wait_until(lambda: rig.metric("counters_failing") == 1, "the broken file is stated")
        assert families(rig) == {"DCGM_FI_DEV_GPU_UTIL"}, "what was in force stays"
        log = (tmp_path / "agent.log").read_text()
        assert f'{path}: line 2: \\"DCGM_FI_DEV_GPU_TEMPERATURE\\" is no counter known here; correct the name' in log
        path.write_text("DCGM_FI_DEV_GPU_TEMP, gauge, heat\n")
        wait_until(lambda: families(rig) == {"DCGM_FI_DEV_GPU_TEMP"}, "it is looked at again", 20)
        assert rig.metric("counters_failing") == 0
        assert rig.stop() == 0
        path.write_text("DCGM_FI_DEV_GPU_TEMP gauge heat\n")
        rig.start()
        assert rig.agent.wait(timeout=10) == 1
        assert f"{path}: line 1: there are 1 cells; write NAME, type, help" in (tmp_path / "agent.log").read_text()


@pytest.mark.parametrize("hangs", [False, True])
def test_counters_of_dcgm(tmp_path, monkeypatch, hangs):
    """Boards without counters of their own get DCGM's; a DCGM that hangs costs nothing but those."""
    library = BUILD / "tests" / "unit" / "agent" / "libfake_dcgm.so"
    if hangs:
        monkeypatch.setenv("FAKE_DCGM_HANGS", "1")
    config = {"metrics": {"dcgmLibrary": str(library)}, "health": {"probeMs": 100, "deadlineMs": 1000}}
    with contextlib.closing(Rig(tmp_path, config)) as rig:
        wait_until(lambda: "DCGM_FI_DEV_GPU_UTIL{" in rig.get("/metrics"), "values")
        uuids = sorted(set(re.findall(r'UUID="(GPU-[^"]{36})"', rig.get("/metrics"))))
        rig.stop()
        monkeypatch.setenv("FAKE_DCGM_UUIDS", "".join(uuids))
        rig.start()
        wait_until(lambda: "DCGM_FI_DEV_GPU_UTIL{" in rig.get("/metrics"), "values")
        if hangs:
            time.sleep(2)  # longer than an answer of the driver may take
        else:
            wait_until(lambda: len(re.findall(r"^DCGM_FI_PROF_GR_ENGINE_ACTIVE.* 0\.500000$", rig.get("/metrics"), re.M)) == 2,
                       "half of the time active")
        page = rig.get("/metrics")
        assert len(re.findall(r"^gpuaas_agent_gpu_healthy.* 1$", page, re.M)) == 2
        assert ("DCGM_FI_PROF_GR_ENGINE_ACTIVE{" in page) == (not hangs)


def test_tokens_of_metrics(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("* 0123456789abcdef-all\nred 0123456789abcdef-red\n")
    with contextlib.closing(Rig(tmp_path, {"metrics": {"tokensFile": str(path)}})) as rig:
        wait_until(lambda: rig.get("/healthz") == "ok\n", "health needs no token")
        wait_until(lambda: "DCGM_FI_DEV_POWER_USAGE{" in ask(rig, "0123456789abcdef-all")[2], "readings")
        assert ask(rig)[0] == 401 and ask(rig, "0123456789abcdef-xyz")[0] == 401
        status, _, page = ask(rig, "0123456789abcdef-red")
        assert status == 200 and "GPU-" not in page and "gpuaas_agent_build_info" not in page
        path.write_text("* 0123456789abcdef-new\n")
        rig.agent.send_signal(signal.SIGHUP)
        wait_until(lambda: ask(rig, "0123456789abcdef-new")[0] == 200, "the new token")
        assert ask(rig, "0123456789abcdef-all")[0] == 401
        path.write_text("all short\n")
        rig.agent.send_signal(signal.SIGHUP)
        wait_until(lambda: "gpuaas_agent_metrics_tokens_failing 1" in ask(rig, "0123456789abcdef-new")[2], "stated")
        assert rig.stop() == 0


def test_cdi_file_is_made_again(rig):
    spec = rig.folder / "cdi" / "k8s.device-plugin.nvidia.com-gpu.json"
    wait_until(spec.exists, "the CDI file")
    before = spec.read_text()
    json.loads(before)
    spec.unlink()
    wait_until(spec.exists, "the CDI file after its removal", 15)
    assert spec.read_text() == before


def test_tls(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                    "2", "-subj", "/CN=agent", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key",
                    "-out", tmp_path / "crt"], check=True, capture_output=True)
    tls = {"certFile": str(tmp_path / "crt"), "keyFile": str(tmp_path / "key")}
    with contextlib.closing(Rig(tmp_path, {"tls": tls})) as rig:
        context = ssl.create_default_context(cafile=tmp_path / "crt")
        wait_until(lambda: rig.get("/healthz", "https", context) == "ok\n", "TLS")
        with pytest.raises(OSError):
            rig.get("/healthz")


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", place], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("cannot mount a small file system here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_full_disk_is_stated_and_left_behind(tmp_path, small_disk):
    with contextlib.closing(Rig(tmp_path, state=small_disk / "state")) as rig:
        wait_until(lambda: rig.metric("journal_synced_seq") > 2, "events")
        with open(small_disk / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"x" * 512)
        wait_until(lambda: rig.metric("journal_failing") == 1, "the full disk is stated")
        stuck = rig.metric("journal_synced_seq")
        wait_until(lambda: rig.metric("journal_last_seq") > stuck + 2, "events wait in memory")
        assert rig.get("/healthz") == "ok\n"
        (small_disk / "filler").unlink()
        wait_until(lambda: rig.metric("journal_failing") == 0, "the journal goes on")
        wait_until(lambda: rig.metric("journal_synced_seq") > stuck + 2, "what waited is written")
        assert rig.stop() == 0
        numbers = [event["seq"] for event in rig.journal()]
        assert numbers == list(range(1, len(numbers) + 1)), "nothing is lost or doubled"
        assert (tmp_path / "agent.log").read_text().count("journal cannot be written") == 1


class Server(http.server.ThreadingHTTPServer):
    """Takes usage like the real one; refuses while it is told to."""

    def __init__(self):
        self.events, self.tokens, self.mode = {}, set(), "good"
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.tokens.add(self.headers["authorization"])
        last = None
        if self.server.mode == "good" or len(body) < 8000 and self.server.mode == "small":
            for event in map(json.loads, body.splitlines()):
                key = (event["source"], event["boot"], event["seq"])
                assert self.server.events.setdefault(key, event) == event, "the same identity, other content"
                last = event
        codes = {"good": 200, "small": 200 if last else 413, "down": 503}
        answer = json.dumps({"cursor": {"boot": last["boot"], "seq": last["seq"]}} if last else {}).encode()
        self.send_response(codes[self.server.mode])
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


def test_push(tmp_path):
    server = Server()
    (tmp_path / "token").write_text("secret-1\n")
    config = {"server": {"url": f"http://127.0.0.1:{server.server_address[1]}", "tokenFile": str(tmp_path / "token"),
                         "periodMs": 50}, "journal": {"segmentBytes": 4096}}
    server.mode = "down"
    with contextlib.closing(Rig(tmp_path, config)) as rig:
        wait_until(lambda: rig.metric("push_failing") == 1, "the absent server is stated")
        server.mode = "good"
        wait_until(lambda: rig.metric("push_acknowledged_seq") > 4, "usage is taken", 40)
        assert server.tokens == {"Bearer secret-1"}
        (tmp_path / "token").write_text("secret-2\n")
        wait_until(lambda: "Bearer secret-2" in server.tokens, "the new token is used")
        rig.stop(signal.SIGKILL)
        rig.start()
        wait_until(lambda: rig.metric("push_acknowledged_seq") > 8, "goes on after a kill")
        server.mode = "small"
        rig.config["server"]["batchBytes"] = 65536
        taken = len(server.events)
        wait_until(lambda: len(server.events) > taken + 4, "smaller batches", 40)
        wait_until(lambda: len(list((rig.state / "journal").glob("*.seg"))) <= 2, "old files go", 60)
        assert rig.stop() == 0
    numbers = sorted(key[2] for key in server.events)
    assert numbers == list(range(1, len(numbers) + 1)), "no gap"
    assert len({key[:2] for key in server.events}) == 1

"""The emulator's daemon with children that use its library, for the tests of this folder."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "emulator"
BOARDS = ROOT / "emulator" / "boards"
MIB = 1 << 20

# Runs in a child with LD_LIBRARY_PATH, as any user of NVML would; prints what `answer` became.
PRELUDE = """
import ctypes, json, os, threading, time
import pynvml as n
def code_of(call, *arguments):
    try:
        call(*arguments)
        return 0
    except n.NVMLError as error:
        return error.value
if __name__ == "__main__" and INIT:
    n.nvmlInit()
    gpu = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())] if HANDLES else []
"""


class Emulator:
    def __init__(self, directory, board="A100-SXM4-80GB", count=2, seed="node1"):
        self.directory = directory
        self.children = []
        made = subprocess.run([BUILD / "gpuaas-emud", "--make", BOARDS / f"{board}.json", "--count",
                               str(count), "--seed", seed], check=True, capture_output=True)
        (directory / "boards.json").write_bytes(made.stdout)
        self.uuids = [gpu["uuid"] for gpu in json.loads(made.stdout)["gpus"]]
        self.start()

    def start(self):
        self.log = open(self.directory / "emud.log", "ab")
        self.daemon = subprocess.Popen([BUILD / "gpuaas-emud", "--dir", self.directory, "--boards", BOARDS],
                                       stderr=self.log)
        wait_until(lambda: (self.directory / "emu.sock").exists(), "the daemon is ready")

    def stop(self, how=signal.SIGTERM):
        self.daemon.send_signal(how)
        code = self.daemon.wait(timeout=5)
        self.log.close()
        return code

    def close(self):
        for child in self.children:
            child.kill()
            child.wait()
            child.stdout.close()
        assert self.stop() == 0, (self.directory / "emud.log").read_text()

    def control(self, *lines):
        with open(self.directory / "control", "a", encoding="ascii") as control:
            control.write("".join(f"{line}\n" for line in lines))

    def errors(self):
        path = self.directory / "control.errors"
        return path.read_text() if path.exists() else ""

    def child(self, code, init=True, handles=True, **environment):
        text = f"INIT = {init}\nHANDLES = {handles}\n{PRELUDE}\n{code}\n"
        text += "print(json.dumps(answer))\n" if "answer" in code else ""
        child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True,
                                 env=dict(os.environ, GPUAAS_EMU=str(self.directory),
                                          LD_LIBRARY_PATH=str(BUILD), **environment))
        self.children.append(child)
        return child

    def ask(self, code, **options):
        child = self.child(code, **options)
        output, _ = child.communicate(timeout=30)
        assert child.returncode == 0, f"the Python process ended with {child.returncode}"
        return json.loads(output.splitlines()[-1])

    def workload(self, *arguments, directory=None):
        child = subprocess.Popen([BUILD / "gpuaas-workload", "--dir", directory or self.directory,
                                  *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        self.children.append(child)
        return child


def wait_until(true, what, seconds=5):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not in {seconds} s: {what}"
        time.sleep(0.01)


def started(child):
    """The workload's line, which it prints when it has what it asked for."""
    line = child.stdout.readline()
    assert line.startswith("using:"), line
    return line

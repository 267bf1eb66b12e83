"""What a board with profiling counters tells of its MIG devices, through the agent's page."""
import contextlib
import os
import re
import subprocess

import agent_test
from agent_test import BUILD, ROOT, Rig, wait_until


def use(rig):
    """Part of the time that each GPU instance is busy, by its id; None: the GPU itself."""
    lines = re.findall(r"^DCGM_FI_PROF_GR_ENGINE_ACTIVE\{([^}]*)\} (\S+)$", rig.get("/metrics"), re.M)
    found = {}
    for labels, value in lines:
        if 'gpu="0"' in labels:
            instance = re.search(r'GPU_I_ID="(\d+)"', labels)
            found[instance and int(instance.group(1))] = round(float(value), 2)
    return found


def test_use_of_instances(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_test, "BOARD", ROOT / "emulator" / "boards" / "H100-SXM5-80GB.json")
    with contextlib.closing(Rig(tmp_path)) as rig:
        with open(tmp_path / "emu" / "control", "a", encoding="ascii") as control:
            control.write("mig 0 on\nmig 0 create 3g.40gb 0\nmig 0 create 1g.10gb 4\n")
        wait_until(lambda: use(rig) == {1: 0, 11: 0}, "two instances, and nothing of the GPU twice")
        (tmp_path / "pod").mkdir()
        uuid = re.search(r'"name":"(MIG-[0-9a-f-]+)"', next((tmp_path / "cdi").iterdir()).read_text()).group(1)
        os.link(tmp_path / "emu" / f"{uuid}.sock", tmp_path / "pod" / f"{uuid}.sock")
        child = subprocess.Popen([BUILD / "emulator" / "gpuaas-workload", "--dir", tmp_path / "pod", "--seconds", "60",
                                  "--memory-mib", "500", "--util-milli", "500"], stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: use(rig) == {1: 0.5, 11: 0}, "one of them is busy")
        finally:
            child.kill()
            child.wait()
        wait_until(lambda: use(rig) == {1: 0, 11: 0}, "and idle again")

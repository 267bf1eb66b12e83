"""Scenarios of constraints: the decisions of `gpuaas-sim run`, with their reasons, byte for byte."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))


@pytest.mark.parametrize("name", ["bad_input", "claims", "claims_life", "gpu_constraints", "load", "mig", "queue_models", "queues",
                                  "shares", "volumes"])
def test_decisions(name, tmp_path):
    preemption = [] if name.startswith("queue") or name == "claims_life" else ["--preemption", "off"]
    out = tmp_path / "decisions.jsonl"
    done = subprocess.run([BUILD / "src/sim/gpuaas-sim", "run", ROOT / f"tests/scenario/{name}.yaml", "--seed", "1",
                           *preemption, "--out", out], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == (ROOT / f"tests/golden/sim/{name}.run.jsonl").read_text()

"""The staged situations of tests/golden/explain in the simulator: the same exact sets of reasons as in the core, and
what its decisions say of them."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))


def situations():
    """Name, options, wanted lines and documents of each."""
    found = []
    for document in (ROOT / "tests/golden/explain/situations.yaml").read_text().split("\n---\n")[1:]:
        if not document.startswith("kind: Situation"):
            found[-1][3].append(document)
            continue
        head = dict(line.split(": ", 1) for line in document.splitlines() if ": " in line and not line.startswith(" "))
        want = [line[5:-1] for line in document.splitlines() if line.startswith("  - ")]
        found.append((head["name"], head.get("preemption"), want, []))
    return found


def line(reason):
    """As the file has it: Code NODES (NEED of HAVE), what is not there left out."""
    text = reason["code"] + (f" {reason['nodes']}" if reason["nodes"] else "")
    if reason["need"]:
        text += f" ({reason['need']}" + (f" of {reason['have']}" if reason["have"] else "") + ")"
    return text


@pytest.mark.parametrize("name,preemption,want,documents", situations(), ids=lambda v: v if isinstance(v, str) else "")
def test_the_simulator_gives_the_same_reasons(tmp_path, name, preemption, want, documents):
    scenario = tmp_path / "situation.yaml"
    scenario.write_text("\n---\n".join(documents))
    done = subprocess.run([BUILD / "src/sim/gpuaas-sim", "run", scenario, "--preemption", preemption or "off"],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    told = [d for d in map(json.loads, done.stdout.splitlines()) if d.get("pod") == "default/p"]
    assert {d["verb"] for d in told} <= {"wait", "refuse"}, name
    assert [line(r) for r in told[-1]["reasons"]] == want
    assert all(r["next"] for r in told[-1]["reasons"])


def test_every_reason_is_documented():
    source = (ROOT / "src/sched/reason.h").read_text()
    codes = re.findall(r'X\(\w+,\s*(?:\\\n\s*)?"(\w+)"', source)
    documented = set(re.findall(r"`(\w+)`", (ROOT / "docs/explain.md").read_text()))
    assert len(codes) > 50 and not [code for code in codes if code not in documented]

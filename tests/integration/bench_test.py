"""./bench: what it lists, what it writes, and that a missing input is said and no failure."""
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))
KEYS = {"row", "value", "unit", "peer", "peer_value", "ratio", "cpu_s", "load1"}


def bench(*arguments, **environment):
    return subprocess.run([sys.executable, ROOT / "bench", *map(str, arguments)], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, env=dict(os.environ, **environment))


def test_list_names_groups_and_rows():
    done = bench("--list")
    assert done.returncode == 0, done.stderr
    for name in ("billing_rate_cpu", "cli_start_p50", "agent_rss", "sched_5000_rate", "pods_scheduler_cpu",
                 "gateway_cpu", "ledger_intake"):
        assert name in done.stdout.split()


def test_unknown_row_is_a_usage_error():
    done = bench("no_such_row")
    assert done.returncode == 2
    assert "no_such_row" in done.stderr


def test_a_row_is_measured_and_written(tmp_path):
    file = tmp_path / "bench.json"
    done = bench("cli_start", "--build", BUILD, "--json", file)
    assert done.returncode == 0, done.stderr
    rows = {row["row"]: row for row in json.loads(file.read_text())}
    assert set(rows) == {"cli_start_p50", "cli_start_p99", "cli_start_cpu", "cli_start_rss"}
    for row in rows.values():
        assert KEYS <= set(row)
        assert row["value"] > 0 and row["cpu_s"] > 0 and row["load1"] >= 0
        assert row["row"] in done.stdout


def test_missing_input_is_said(tmp_path):
    file = tmp_path / "bench.json"
    done = bench("sched_openb", "--build", BUILD, "--json", file, TRACES="")
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())
    assert rows and all(row["value"] is None and "TRACES" in row["note"] for row in rows)
    assert "TRACES" in done.stdout

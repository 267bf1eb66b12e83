"""gpuaas bill rate --offline against the worked day and against the observer's independent rater."""
import copy
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "replay"), str(pathlib.Path(__file__).parent)]
import billing_day  # noqa: E402
import oracle  # noqa: E402

GPUAAS = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "src" / "cli" / "gpuaas"
DAY = ROOT / "tests" / "golden" / "billing" / "worked_day"
HOUR, BEGIN = 3600, billing_day.seconds_of("2026-02-10T00:00:00Z")
RANDOM_WORLDS = int(os.environ.get("BILLING_WORLDS", "300"))


def run(folder, first, last, *more):
    return subprocess.run([GPUAAS, "bill", "rate", "--offline", folder, "--from", billing_day.text_of(first),
                           "--to", billing_day.text_of(last), "-o", "json", *more],
                          capture_output=True, check=False)


def bill(folder, first=BEGIN, last=BEGIN + 24 * HOUR, *more):
    done = run(folder, first, last, *more)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def worked_day():
    day = {name: json.loads((DAY / f"{name}.json").read_text()) for name in ("assets", "prices", "pools")}
    day["events"] = [json.loads(line) for line in (DAY / "events.jsonl").read_text().splitlines() if line]
    return day


def kinds(by_tenant):
    """Without what is 0: a missing key means 0."""
    return {(t, k): n for t, row in by_tenant.items() for k, n in row.items() if n != 0}


def nonzero(row):
    return {name: n for name, n in row.items() if n != 0}


def test_worked_day_to_the_nano():
    expected, got = json.loads((DAY / "expected.json").read_text()), bill(DAY)
    assert {key: got[key] for key in expected} == expected
    assert got["conservation"]["difference"] == 0


def test_order_repetition_and_files_change_no_byte(tmp_path):
    rng, first = random.Random(7), None
    for round_i in range(10):
        folder = tmp_path / str(round_i)
        folder.mkdir()
        day = worked_day()
        day["events"] = [e for e in day["events"] for _ in range(rng.randint(1, 5))]
        rng.shuffle(day["events"])
        day["events"] = [dict(rng.sample(list(e.items()), len(e))) for e in day["events"]]
        billing_day.write(folder, day, files=rng.randint(1, 4))
        done = run(folder, BEGIN, BEGIN + 24 * HOUR)
        assert done.returncode == 0, done.stderr
        first = first or done.stdout
        assert done.stdout == first


def added(parts):
    total = {}
    for part in parts:
        for key, nano in kinds(part["by_tenant"]).items():
            total[key] = total.get(key, 0) + nano
    return total


@pytest.mark.parametrize("pieces", [2, 24, 96])
def test_parts_of_a_day_add_up(pieces):
    """Capacity and energy by tenant; pools by their weights in each part, so only in sum."""
    step = 24 * HOUR // pieces
    parts = [bill(DAY, BEGIN + i * step, BEGIN + (i + 1) * step) for i in range(pieces)]
    whole, total = bill(DAY), added(parts)
    for (tenant, kind), nano in kinds(whole["by_tenant"]).items():
        if kind in ("capacity", "energy"):
            assert total[(tenant, kind)] == nano, (tenant, kind)
    assert sum(p["tco_nano"] for p in parts) == whole["tco_nano"]
    assert sum(n for (_, k), n in total.items() if k == "shared") == 21 * 10 ** 9


def compare(world, got, idle=None):
    wanted = oracle.rate(world["events"], world["assets"], world["prices"], copy.deepcopy(world["pools"]),
                         world["from"], world["to"], idle)
    assert got["tco_nano"] == wanted["tco_nano"]
    assert kinds(got["by_tenant"]) == kinds(wanted["by_tenant"])
    assert nonzero(got["idle_shared_capacity"]) == nonzero(wanted["idle_shared_capacity"])
    assert nonzero(got["invoice_cents"]) == nonzero(wanted["invoice_cents"])


@pytest.mark.parametrize("seeds", [range(i, min(i + 25, RANDOM_WORLDS)) for i in range(0, RANDOM_WORLDS, 25)],
                         ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_random_worlds_agree_with_the_independent_rater(tmp_path, seeds):
    for seed in seeds:
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = billing_day.world(rng)
        billing_day.write(folder, world, files=rng.randint(1, 3))
        try:
            compare(world, bill(folder, world["from"], world["to"]))
            compare(world, bill(folder, world["from"], world["to"], "--idle", "share-per-gpu"), "share-per-gpu")
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_parts_of_random_worlds_add_up(tmp_path):
    for seed in range(20):
        rng = random.Random(1000 + seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = billing_day.world(rng)
        world["pools"]["idle_rule"] = "keep"
        billing_day.write(folder, world)
        marks = sorted({world["from"], world["to"]} | {rng.randint(world["from"], world["to"]) for _ in range(5)})
        parts = [bill(folder, a, b) for a, b in zip(marks, marks[1:])]
        whole, total = kinds(bill(folder, world["from"], world["to"])["by_tenant"]), added(parts)
        for key in set(whole) | set(total):
            if key[1] in ("capacity", "energy"):
                assert whole.get(key, 0) == total.get(key, 0), (seed, key)

"""gpuaas bill rate: public bug reports as cases, and what is wrong with an input is said."""
import csv
import io
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import billing_day  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPUAAS = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "src" / "cli" / "gpuaas"
DAY = "2026-02-10T00:00:00Z"
HOUR, NANO = 3600, 10 ** 9

# 72.00 a day and GPU, so 3.00 an hour: cost 365 * 72 over a year of 365 days.
ASSET = {"id": "n", "gpus": [{"id": "g0"}], "cost": "26280", "in_service": "2026-01-01T00:00:00Z", "life_years": 1,
         "amortization": "straight-line"}
PRICES = {"pue": [{"from": "2026-01-01T00:00:00Z", "value": "1"}],
          "energy_tariff": [{"from": "2026-01-01T00:00:00Z", "rules": [{"hours": "00:00-24:00", "per_kwh": "1"}]}]}


def event(seq, hour, kind, **more):
    moment = billing_day.text_of(billing_day.seconds_of(DAY) + int(hour * HOUR))
    return {"source": "n", "boot": "b", "seq": seq, "t": moment, "type": kind, "gpu": "g0", **more}


def bound(seq, hour, tenant, pod, num=1, den=1, **more):
    return event(seq, hour, "bound", tenant=tenant, pod_uid=pod, share={"num": num, "den": den}, **more)


def released(seq, hour, pod, **more):
    return event(seq, hour, "released", pod_uid=pod, **more)


def energy(seq, hour, mj, epoch="e", **more):
    return event(seq, hour, "energy", epoch=epoch, energy_mj=str(mj), **more)


def rate(folder, events, first=DAY, last="2026-02-11T00:00:00Z", **documents):
    world = {"assets": {"currency": "EUR", "assets": [ASSET]}, "prices": PRICES, "pools": {"pools": []},
             "events": events, **documents}
    billing_day.write(folder, world)
    return subprocess.run([GPUAAS, "bill", "rate", "--offline", folder, "--from", first, "--to", last, "-o", "json"],
                          capture_output=True, check=False, text=True)


def bill(folder, events, **more):
    done = rate(folder, events, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def capacity(answer):
    return {t: row["capacity"] for t, row in answer["by_tenant"].items()}


def test_four_quarters_make_one_gpu_hour(tmp_path):
    events = [e for i in range(4) for e in (bound(2 * i, 0, f"t{i}", f"p{i}", 1, 4), released(2 * i + 1, 1, f"p{i}"))]
    got = bill(tmp_path, events, last="2026-02-10T01:00:00Z")
    assert capacity(got) == {f"t{i}": 750000000 for i in range(4)} | {"~unallocated": 0}


def test_shares_above_one_are_normalised(tmp_path):
    """4g + 3g by the dominant basis are 15/14 of a full board: no more than the board is paid."""
    events = [bound(1, 0, "a", "p", 4, 7), bound(2, 0, "b", "q", 1, 2)]
    got = bill(tmp_path, events, last="2026-02-10T15:00:00Z")
    assert capacity(got) == {"a": 24 * NANO, "b": 21 * NANO, "~unallocated": 0}


def test_a_board_counts_once_whoever_reports_it(tmp_path):
    """A counter seen by four sources, and a reload: 4 + 2 + 1 kWh, not -247."""
    rows = [(0, 900_000_000_000, "d1"), (12, 914_400_000_000, "d1"), (18, 7_200_000_000, "d2"), (24, 10_800_000_000, "d2")]
    events = [energy(i, h, mj, e, source=f"s{k}") for k in range(4) for i, (h, mj, e) in enumerate(rows)]
    assert bill(tmp_path, events)["conservation"]["energy"] == 7 * NANO


def test_charged_from_binding_to_release(tmp_path):
    """Image pulls count, pods that never bound do not, ten seconds are ten seconds."""
    events = [bound(1, 10, "b", "pull"), released(2, 16, "pull"), bound(3, 20, "c", "short"),
              released(4, 20 + 10 / HOUR, "short"), bound(5, 22, "d", "none"), released(6, 22, "none")]
    got = bill(tmp_path, events)
    assert got["gpu_seconds"] == {"b": "21600", "c": "10", "~unallocated": "64790"}


@pytest.mark.parametrize("day, hours, night_mj", [("2026-10-25", 25, 2), ("2026-03-29", 23, 0)])
def test_tariff_by_the_wall_clock_when_clocks_change(tmp_path, day, hours, night_mj):
    """The hour from 02 to 03 comes twice in autumn and not at all in spring."""
    prices = {"time_zone": "Europe/Berlin", "energy_tariff": [{"from": "2026-01-01T00:00:00Z", "rules": [
        {"hours": "02:00-03:00", "per_kwh": "1"}, {"hours": "03:00-02:00", "per_kwh": "0"}]}]}
    midnight = billing_day.seconds_of(f"{day}T00:00:00Z") - (2 * HOUR if night_mj else HOUR)
    from_, to = billing_day.text_of(midnight), billing_day.text_of(midnight + hours * HOUR)
    events = [dict(energy(0, 0, 0), t=from_), dict(energy(1, 0, 3_600_000_000 * hours), t=to)]
    got = bill(tmp_path, events, first=from_, last=to, prices=prices)
    assert got["conservation"]["energy"] == night_mj * NANO


def test_price_change_inside_a_month(tmp_path):
    """3.00 an hour from the first asset until the 15th, 4.00 from the second: 14*24*3 + 14*24*4."""
    old = dict(ASSET, id="old", gpus=[{"id": "g0"}], in_service="2025-02-15T00:00:00Z")
    new = dict(ASSET, id="new", gpus=[{"id": "g1"}], cost="35040", in_service="2026-02-15T00:00:00Z")
    got = bill(tmp_path, [], first="2026-02-01T00:00:00Z", last="2026-03-01T00:00:00Z",
               assets={"currency": "EUR", "assets": [old, new]})
    assert got["tco_nano"] == 2352 * NANO


def test_eighty_one_lines_add_up_in_cents(tmp_path):
    events = [bound(i, i / 100, f"t{i:02d}", f"p{i}", 1 + i % 3, 250) for i in range(81)]
    got = bill(tmp_path, events)
    assert sum(got["invoice_cents"].values()) == 7200
    assert sum(row["total"] for row in got["by_tenant"].values()) == got["tco_nano"] == 72 * NANO


def test_gpu_seconds_of_a_large_year_are_no_wrong_sum(tmp_path):
    """600 GPUs for a year are more than the sum of the lines holds: it is then left out."""
    year, gpus = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"), [f"g{i}" for i in range(600)]
    events = [dict(bound(i, 0, f"t{i % 3}", "p"), gpu=gpu, t=year[0]) for i, gpu in enumerate(gpus)]
    asset = dict(ASSET, gpus=[{"id": gpu} for gpu in gpus])
    rate(tmp_path, events, assets={"currency": "EUR", "assets": [asset]})
    done = subprocess.run([GPUAAS, "bill", "rate", "--offline", tmp_path, "--from", year[0], "--to", year[1], "-o", "csv"],
                          capture_output=True, check=True, text=True)
    seconds = {row["tenant"]: row["gpu_seconds"] for row in csv.DictReader(io.StringIO(done.stdout))}
    assert seconds["t0"] == str(200 * 365 * 86400) and seconds["~sum of lines"] == ""


def test_idle_gpu_stays_unallocated(tmp_path):
    got = bill(tmp_path, [])
    assert got["by_tenant"] == {"~unallocated": {"capacity": 72 * NANO, "energy": 0, "total": 72 * NANO}}
    assert got["idle_shared_capacity"] == {"~unallocated": 72 * NANO}


def test_gpu_in_no_asset_is_said(tmp_path):
    done = rate(tmp_path, [dict(bound(1, 0, "a", "p"), gpu="stray")])
    assert done.returncode == 0 and "GPU stray is in no asset" in done.stderr
    assert json.loads(done.stdout)["gpus_without_asset"] == ["stray"]


def test_names_in_events_cannot_move_the_cursor(tmp_path):
    """The table and the warnings show control bytes of other people's names as question marks."""
    rate(tmp_path, [dict(bound(1, 0, "a\x1b[2J\x9b", "p"), gpu="g\x1b[2J")])
    done = subprocess.run([GPUAAS, "bill", "rate", "--offline", tmp_path, "--from", DAY, "--to", "2026-02-11T00:00:00Z"],
                          capture_output=True, check=False, text=True)
    assert done.returncode == 0 and "a?[2J??" in done.stdout and "GPU g?[2J is in no asset" in done.stderr
    assert (done.stdout + done.stderr).replace("\n", "").isprintable()


WRONG_EVENTS = {
    "same identity, other content": ([bound(1, 0, "a", "p"), bound(1, 0, "b", "p")], 5, "another content"),
    "null and absence differ": ([bound(1, 0, "a", "p"), bound(1, 0, "a", "p", profile=None)], 5, "another content"),
    "one allocation, two bindings": ([bound(1, 0, "a", "p"), bound(2, 1, "a", "p")], 5, "two instants of binding"),
    "one allocation, two releases": ([bound(1, 0, "a", "p"), released(2, 1, "p"), released(3, 2, "p")], 5,
                                     "two instants of release"),
    "two tenants": ([bound(1, 0, "a", "p"), released(2, 1, "p", tenant="b")], 5, "two tenants"),
    "released, never bound": ([released(1, 1, "p")], 1, "never bound"),
    "released before bound": ([bound(1, 2, "a", "p"), released(2, 1, "p")], 1, "before it is bound"),
    "unknown key": ([bound(1, 0, "a", "p", nod="x")], 1, 'line 1: unknown key "nod"'),
    "energy before any tariff": ([dict(energy(1, 0, 0), t="2025-01-01T00:00:00Z"), energy(2, 0, 9)], 0, ""),
    "no tariff in the period": ([energy(1, 0, 0), energy(2, 5, 9)], 1, "before the first energy_tariff"),
}


@pytest.mark.parametrize("name", WRONG_EVENTS)
def test_wrong_events(tmp_path, name):
    events, code, text = WRONG_EVENTS[name]
    prices = dict(PRICES)
    if name == "no tariff in the period":
        prices["energy_tariff"] = [dict(PRICES["energy_tariff"][0], **{"from": "2026-02-10T01:00:00Z"})]
    done = rate(tmp_path, events, prices=prices)
    assert (done.returncode, text in done.stderr) == (code, True), done.stderr
    assert code == 0 or done.stdout == ""


def with_asset(**more):
    return {"assets": {"currency": "EUR", "assets": [dict(ASSET, **more)]}}


def with_rules(*rules):
    book = {"from": DAY, "rules": [{"hours": h, "per_kwh": "1"} for h in rules]}
    return {"prices": dict(PRICES, energy_tariff=[book])}


POOL = {"id": "p", "cost": "1", "from": DAY, "to": "2026-02-11T00:00:00Z", "rule": "even"}
WRONG_DOCUMENTS = {
    "money as a number": (with_asset(cost=26280), "assets[0]: cost must be a decimal in quotes"),
    "negative cost": (with_asset(cost="-1"), "cost must be a decimal"),
    "ten digits": (with_asset(cost="1.0000000001"), "nine digits"),
    "salvage above cost": (with_asset(salvage="26281"), "salvage is more than cost"),
    "unknown amortization": (with_asset(amortization="declining"), 'amortization must be "straight-line"'),
    "misspelt member": (with_asset(suport_per_year="1"), 'unknown field "suport_per_year"'),
    "GPU twice": (with_asset(gpus=[{"id": "g0"}, {"id": "g0"}]), 'GPU "g0" is listed twice'),
    "no life": (with_asset(life_years=0), "life_years must be 1 to"),
    "no instant": (with_asset(in_service="2026-01-01"), "in_service must be an instant"),
    "gap in the day": (with_rules("00:00-06:00", "07:00-24:00"), "energy_tariff[0]: no rule covers 06:00"),
    "overlap": (with_rules("00:00-12:00", "06:00-24:00"), "rules[1] overlaps"),
    "empty hours": (with_rules("06:00-06:00"), "hours must be"),
    "unknown zone": ({"prices": dict(PRICES, time_zone="Mars/Olympus")}, "no time zone"),
    "zone as path": ({"prices": dict(PRICES, time_zone="../../etc/passwd")}, "time_zone must be"),
    "pue below 1": ({"prices": dict(PRICES, pue=[{"from": DAY, "value": "0.9"}])}, "value must be 1 or more"),
    "unknown pool rule": ({"pools": {"pools": [dict(POOL, rule="evenly")]}}, "rule must be none, even"),
    "unknown idle rule": ({"pools": {"pools": [], "idle_rule": "even"}}, "idle_rule must be keep or"),
    "fixed not 100": ({"pools": {"pools": [dict(POOL, rule="fixed", weights={"a": "99"})]}}, "sum to 100"),
    "pool without time": ({"pools": {"pools": [dict(POOL, to=DAY)]}}, "to must be after from"),
}


@pytest.mark.parametrize("name", WRONG_DOCUMENTS)
def test_wrong_documents(tmp_path, name):
    documents, text = WRONG_DOCUMENTS[name]
    done = rate(tmp_path, [], **documents)
    assert done.returncode in (1, 3) and text in done.stderr and done.stdout == "", done.stderr


def test_usage_and_missing_files(tmp_path):
    def code(*arguments):
        return subprocess.run([GPUAAS, "bill", "rate", *arguments], capture_output=True, check=False).returncode
    period = ["--from", DAY, "--to", "2026-02-11T00:00:00Z"]
    assert code("--offline", tmp_path, "--from", DAY) == 2
    assert code("--offline", tmp_path, "--from", DAY, "--to", DAY) == 2
    assert code("--offline", tmp_path, *period, "--idle", "even") == 2
    assert code("--offline", tmp_path, *period, "--what") == 2
    assert code("--offline", tmp_path, *period) == 3
    assert code("--help") == 0
    rate(tmp_path, [])
    (tmp_path / "events.jsonl").unlink()
    assert code("--offline", tmp_path, *period) == 3
    (tmp_path / "events-1.jsonl").write_text("\n")
    assert code("--offline", tmp_path, *period) == 0

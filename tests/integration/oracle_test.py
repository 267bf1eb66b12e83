"""The observer's rater against the worked day of the cost model."""
import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "replay"))
import observer  # noqa: E402
import oracle  # noqa: E402

DAY = ROOT / "tests" / "golden" / "billing" / "worked_day"


def test_worked_day_to_the_nano():
    events = [json.loads(line) for line in (DAY / "events.jsonl").read_text().splitlines() if line]
    documents = [json.loads((DAY / f"{name}.json").read_text()) for name in ("assets", "prices", "pools")]
    rated = oracle.rate(events, *documents, start=oracle.seconds_of("2026-02-10T00:00:00Z"),
                        end=oracle.seconds_of("2026-02-11T00:00:00Z"))
    expected = json.loads((DAY / "expected.json").read_text())
    assert rated["tco_nano"] == expected["tco_nano"]
    for tenant, row in expected["by_tenant"].items():
        for kind, nano in row.items():
            assert rated["by_tenant"][tenant][kind] == nano, (tenant, kind)


def event(t, kind, uid, tenant, seq):
    return {"source": "n", "boot": "b", "seq": seq, "type": kind, "t": observer.text_of(t), "gpu": "G", "pod_uid": uid,
            "container": "main", "tenant": tenant, "share": {"num": 1, "den": 1}}


def ledger_of(rng, t, count, name, tenants):
    """Pods one after the other; returns their events, what they say of themselves, and the end."""
    events, pods = [], {}
    for i in range(count):
        end, tenant, uid = t + rng.randint(1, 40), rng.choice(tenants), f"{name}{i}"
        events += [event(t, "bound", uid, tenant, 2 * len(events)), event(end, "released", uid, tenant, 2 * len(events) + 1)]
        pods[uid] = (f"{tenant}/{uid}", tenant, t, end)
        t = end + rng.randint(0, 9)
    return events, pods, t


def test_what_pods_that_are_gone_used_before_the_period_counts():
    """Amounts are rounded cumulatively from an asset's begin on: without it a nano goes astray."""
    asset = json.loads((DAY / "assets.json").read_text())["assets"][0]
    asset = dict(asset, id="n", gpus=[{"id": "G", "model": "m", "slices": 1}], in_service="2026-01-01T00:00:00Z")
    documents = ({"currency": "EUR", "assets": [asset]}, json.loads((DAY / "prices.json").read_text()),
                 {"pools": [], "idle_rule": "keep"})
    rng, astray = random.Random(1), 0
    for _ in range(30):
        earlier, _, start = ledger_of(rng, observer.seconds_of("2026-02-10T10:00:00Z"), 6, "old", ["gone"])
        inside, pods, end = ledger_of(rng, start, 8, "new", ["a", "b", "c"])
        truth = oracle.rate(earlier + inside, *documents, start=start, end=end)["by_tenant"]
        mine, _ = observer.own_events(pods, earlier + inside, start)
        assert observer.differences(oracle.rate(mine, *documents, start=start, end=end)["by_tenant"], truth) == []
        fewer, _ = observer.own_events(pods, inside, start)
        astray += observer.differences(oracle.rate(fewer, *documents, start=start, end=end)["by_tenant"], truth) != []
    assert astray > 0, "the test shows nothing"

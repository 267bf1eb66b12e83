"""The observer's rater against the worked day of the cost model."""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "replay"))
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

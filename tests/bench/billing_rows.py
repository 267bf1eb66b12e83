"""Rating and intake of usage."""
import datetime
import json
import random
import sys

from harness import ROOT, Figure, Group, Skip, ms

sys.path.append(str(ROOT / "tests" / "cluster"))
from postgres import Postgres  # noqa: E402

ALLOCATIONS, GPUS, DAYS, GPUS_A_NODE, TENANTS = 300_000, 200, 31, 8, 12
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
FROM, TO = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
FULL_WATTS, IDLE_WATTS = 400, 60


def instant(second):
    return (START + datetime.timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")


def gpu_id(gpu):
    return f"GPU-{gpu:08x}-0000-4000-8000-{gpu * 7919:012x}"


def gpu_events(gpu, rng):
    """(second, text) of one GPU: its allocations one after the other, its energy each hour."""
    name, length = gpu_id(gpu), DAYS * 86400
    count = ALLOCATIONS // GPUS
    edges = sorted(rng.sample(range(length), 2 * count))
    busy = 0
    hour_s, previous = 3600, 0
    for index in range(count):
        begin, end = edges[2 * index], edges[2 * index + 1]
        pod = f"{gpu:03d}{index:05d}"
        tenant = f"team-{rng.randrange(TENANTS):02d}"
        who = (f'"tenant":"{tenant}","namespace":"{tenant}","pod":"job-{pod}",'
               f'"pod_uid":"00000000-0000-4000-8000-0000{pod}","container":"main"')
        yield begin, f'"type":"bound","gpu":"{name}","share":{{"num":1,"den":1}},{who},"request":"r-{pod}"'
        yield end, f'"type":"released","gpu":"{name}",{who}'
        while hour_s <= end:
            busy_now = busy + max(0, hour_s - begin)
            yield hour_s, energy(name, hour_s, busy_now)
            hour_s += 3600
        busy += end - begin
        previous = end
    while hour_s <= length:
        yield hour_s, energy(name, max(hour_s, previous), busy)
        hour_s += 3600


def energy(name, second, busy_s):
    joules = busy_s * FULL_WATTS + (second - busy_s) * IDLE_WATTS
    return f'"type":"energy","gpu":"{name}","epoch":"e1","energy_mj":"{joules * 1000}"'


def documents():
    nodes = [{"id": f"node-{n:02d}", "gpus": [{"id": gpu_id(n * GPUS_A_NODE + g), "model": "A100-80", "slices": 1}
                                              for g in range(GPUS_A_NODE)],
              "cost": "200600", "salvage": "18000", "in_service": "2025-01-01T00:00:00Z", "life_years": 5,
              "amortization": "straight-line", "support_per_year": "16060", "node_to_gpu": "equal"}
             for n in range(GPUS // GPUS_A_NODE)]
    prices = {"time_zone": "Europe/Berlin", "pue": [{"from": "2025-01-01T00:00:00Z", "value": "1.5"}],
              "energy_tariff": [{"from": "2025-01-01T00:00:00Z", "rules": [
                  {"hours": "06:00-22:00", "per_kwh": "0.30"}, {"hours": "22:00-06:00", "per_kwh": "0.10"}]}],
              "energy_split": "allocation", "share_basis": "compute"}
    pools = {"pools": [{"id": "platform", "cost": "9000.00", "from": FROM, "to": TO, "rule": "direct-cost"}],
             "idle_rule": "keep"}
    return {"assets": {"currency": "EUR", "assets": nodes}, "prices": prices, "pools": pools}


def make_month(folder):
    """The same month each time; one file a node, as the nodes' journals are."""
    done = folder / "done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents().items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    rng = random.Random(31)
    for node in range(GPUS // GPUS_A_NODE):
        events = []
        for gpu in range(node * GPUS_A_NODE, (node + 1) * GPUS_A_NODE):
            events += gpu_events(gpu, rng)
        events.sort(key=lambda event: event[0])
        with open(folder / f"events-{node:02d}.jsonl", "w", encoding="ascii") as file:
            for seq, (second, text) in enumerate(events, 1):
                file.write(f'{{"source":"node-{node:02d}","boot":"b1","seq":{seq},"t":"{instant(second)}",{text}}}\n')
    done.write_text("")


def billing(bench):
    cli = bench.program("gpuaas")
    month = bench.data / "month"
    make_month(month)
    events = sum(file.stat().st_size for file in month.glob("events-*.jsonl"))
    bill = bench.data / "bill.json"
    run = bench.run([cli, "bill", "rate", "--offline", month, "--from", FROM, "--to", TO, "-o", "json"], output=bill)
    cpu_s = run["cpu_max"] / 1e9
    tenants = len(json.loads(bill.read_text())["by_tenant"])
    note = f"{ALLOCATIONS:,} allocations, hourly energy of {GPUS} GPUs: {events / 1e6:.0f} MB of events, {tenants} lines"
    yield Figure("billing_rate_cpu", cpu_s, "s", cpu_s=cpu_s, note=note)
    yield Figure("billing_rate_rss", run["rss_kib"] / 1024, "MiB", cpu_s=cpu_s)


def take_in(bench, store):
    """One node's month, in batches of 500."""
    program = bench.program("ledger-bench")
    month = bench.data / "month"
    make_month(month)
    return bench.measure(program.name, "--store", store, "--events", month / "events-00.jsonl", "--batch", 500)


def take_in_sqlite(bench):
    """What it measured, and the bytes of an event on disk."""
    database = bench.data / "ledger.db"
    for path in bench.data.glob("ledger.db*"):
        path.unlink()
    got = take_in(bench, f"sqlite:{database}")
    size = database.stat().st_size / got["events"]
    for path in bench.data.glob("ledger.db*"):
        path.unlink()
    return got, size


def ledger(bench):
    got, size = take_in_sqlite(bench)
    cpu_s = got["cpu_ns"] / 1e9
    yield Figure("ledger_intake", got["events"] / cpu_s, "events/CPU s", cpu_s=cpu_s,
                 note=f"{got['events']} events in batches of 500, each durable; {size:.0f} bytes an event on disk")
    yield Figure("ledger_intake_again", got["events"] / (got["again_cpu_ns"] / 1e9), "events/CPU s",
                 cpu_s=got["again_cpu_ns"] / 1e9)
    yield Figure("ledger_batch_p50", ms(got["batch_p50"]), "ms wall", cpu_s=cpu_s)
    yield Figure("ledger_batch_p99", ms(got["batch_p99"]), "ms wall", cpu_s=cpu_s)


def ledger_postgres(bench):
    """The same on a private PostgreSQL that is durable too, beside SQLite in the same run."""
    beside, _ = take_in_sqlite(bench)
    try:
        postgres = Postgres(fsync="on", log_statement="none", shared_buffers="128MB")
    except AssertionError as missing:
        raise Skip(str(missing)) from missing
    try:
        postgres.start()
        url = postgres.fresh()
        before_s = postgres.cpu_s()
        got = take_in(bench, url)
        database_s = postgres.cpu_s() - before_s
        size = int(postgres.sql("SELECT pg_total_relation_size('usage_events')")) / got["events"]
    finally:
        postgres.remove()
    ours_s, again_s = got["cpu_ns"] / 1e9, got["again_cpu_ns"] / 1e9
    note = f"ours {ours_s:.2f} s, then {again_s:.2f} s; the database {database_s:.2f} s for both; {size:.0f} bytes an event"
    both_s = (beside["cpu_ns"] + beside["again_cpu_ns"]) / 1e9
    yield Figure("ledger_postgres_intake", 2 * got["events"] / (ours_s + again_s + database_s), "events/CPU s", peer="SQLite",
                 peer_value=2 * beside["events"] / both_s, cpu_s=ours_s + again_s + database_s, note=note)
    yield Figure("ledger_postgres_batch_p50", ms(got["batch_p50"]), "ms wall", peer="SQLite",
                 peer_value=ms(beside["batch_p50"]), cpu_s=ours_s)
    yield Figure("ledger_postgres_batch_p99", ms(got["batch_p99"]), "ms wall", peer="SQLite",
                 peer_value=ms(beside["batch_p99"]), cpu_s=ours_s)


GROUPS = [
    Group("billing_rate", "a month of 300,000 allocations on 200 GPUs, rated offline", {
        "billing_rate_cpu": "<= 2", "billing_rate_rss": "<= 256"}, billing),
    Group("ledger_intake", "usage events into the ledger, then the same again", {
        "ledger_intake": "", "ledger_intake_again": "", "ledger_batch_p50": "", "ledger_batch_p99": ""}, ledger),
    Group("ledger_postgres", "the same into PostgreSQL, first and again together, its own CPU included", {
        "ledger_postgres_intake": "", "ledger_postgres_batch_p50": "", "ledger_postgres_batch_p99": ""}, ledger_postgres),
]

"""Random worlds to rate: assets, prices, pools and events that meet every rule of rating."""
import datetime
import json

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham"]
# Around clock changes of those zones, a year's end before and in a leap year, and a plain day.
STARTS = ["2026-03-28T00:00:00Z", "2026-10-24T00:00:00Z", "2026-03-07T00:00:00Z", "2026-10-31T00:00:00Z",
          "2026-04-04T00:00:00Z", "2027-12-31T00:00:00Z", "2028-12-30T00:00:00Z", "2026-06-10T00:00:00Z"]
TENANTS = ["a", "b", "B", "zz", "team-1", "~x".strip("~"), "é"]
DENOMINATORS = [1, 1, 2, 3, 7, 7, 10, 16, 1000, 999983]


def seconds_of(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def text_of(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def decimal(rng, top, digits=9):
    digits = rng.choice([0, 2, digits])
    return f"{rng.randrange(top)}.{rng.randrange(10 ** digits):0{digits}d}" if digits else str(rng.randrange(top))


def assets_of(rng, start):
    rows = []
    for i in range(rng.choice([1, 1, 2, 3])):
        service = seconds_of(start) + rng.choice([-400 * 86400, -366 * 86400 - 7, -1000 * 86400, 3600, 86400 * 9])
        if rng.random() < 0.15:  # its life ends inside the time of the events
            service = seconds_of(start) - 365 * 86400 + 7200
        rows.append({
            "id": f"node-{i}", "gpus": [{"id": f"g{i}-{k}", "model": "A100-80", "slices": 7}
                                        for k in rng.sample(range(12), rng.choice([1, 2, 3]))],
            "cost": str(100000 + rng.randrange(100000)) + ".123456789", "salvage": decimal(rng, 90000),
            "in_service": text_of(service), "life_years": 1 if service > seconds_of(start) - 366 * 86400 else 5,
            "amortization": "straight-line", "support_per_year": rng.choice(["0", "16060", decimal(rng, 20000)]),
            "node_to_gpu": "equal"})
    return {"currency": "EUR", "assets": rows}


def prices_of(rng, start):
    def rules():
        marks = sorted(rng.sample(range(0, 1440, rng.choice([1, 15, 60])), rng.choice([1, 2, 3, 4])))
        clock = [f"{m // 60:02d}:{m % 60:02d}" for m in marks]
        if len(clock) == 1:
            return [{"hours": "00:00-24:00", "per_kwh": decimal(rng, 1)}]
        return [{"hours": f"{a}-{b}", "per_kwh": decimal(rng, 2, 4)} for a, b in zip(clock, clock[1:] + clock[:1])]

    base = seconds_of(start)
    return {
        "time_zone": rng.choice(ZONES),
        "pue": [{"from": "2000-01-01T00:00:00Z", "value": "1." + str(rng.randrange(10 ** 4))}] +
               [{"from": text_of(base + rng.randrange(3 * 86400)), "value": "1.5"} for _ in range(rng.choice([0, 1]))],
        "energy_tariff": [{"from": "2000-01-01T00:00:00Z", "rules": rules()}] +
                         [{"from": text_of(base + rng.randrange(3 * 86400)), "rules": rules()}
                          for _ in range(rng.choice([0, 1]))],
        "energy_split": "allocation", "share_basis": rng.choice(["compute", "memory", "dominant"])}


def pools_of(rng, start):
    rows = []
    for i in range(rng.choice([0, 1, 2, 3])):
        first = seconds_of(start) + rng.randrange(-86400, 86400)
        pool = {"id": f"p{i}", "cost": decimal(rng, 500), "from": text_of(first),
                "to": text_of(first + rng.randrange(1, 3 * 86400)),
                "rule": rng.choice(["direct-cost", "even", "gpu-seconds", "none", "quota", "fixed"])}
        if pool["rule"] == "quota":
            pool["weights"] = {t: decimal(rng, 9) for t in rng.sample(TENANTS + ["other"], 3)}
        if pool["rule"] == "fixed":
            pool["weights"] = {"a": "33.333333333", "new": "66.666666667"}
        rows.append(pool)
    return {"pools": rows, "idle_rule": rng.choice(["keep", "share-per-gpu"])}


def instant(rng, start):
    """Mostly whole hours, so that edges of several kinds meet."""
    return seconds_of(start) + (rng.randrange(72) * 3600 if rng.random() < 0.6 else rng.randrange(3 * 86400))


def allocations_of(rng, start, gpu):
    for i in range(rng.randrange(9)):
        first = instant(rng, start)
        den = rng.choice(DENOMINATORS)
        row = {"gpu": gpu, "pod_uid": f"{gpu}-p{i}", "tenant": rng.choice(TENANTS)}
        if rng.random() < 0.5:
            row["container"] = "main"
        yield dict(row, t=text_of(first), type="bound", share={"num": rng.randint(1, den), "den": den})
        last = max(first, instant(rng, start)) if rng.random() < 0.8 else first
        if rng.random() < 0.9:
            row.pop("tenant") if rng.random() < 0.3 else None
            yield dict(row, t=text_of(last), type="released")


def energy_of(rng, start, gpu):
    count, value, epoch = rng.choice([0, 1, 2, 8, 30]), rng.randrange(10 ** 12), 0
    for moment in sorted(instant(rng, start) for _ in range(count)):
        value += rng.randrange(rng.choice([1, 10 ** 6, 10 ** 10]))
        if rng.random() < 0.1:
            epoch, value = epoch + 1, rng.randrange(10 ** 9)
        elif rng.random() < 0.05:
            value = rng.randrange(10 ** 6)
        yield {"gpu": gpu, "t": text_of(moment), "type": "energy", "epoch": f"e{9 - epoch}", "energy_mj": str(value)}


def events_of(rng, start, assets):
    rows = []
    for gpu in [g["id"] for a in assets["assets"] for g in a["gpus"]] + rng.choice([[], ["stray"]]):
        rows += allocations_of(rng, start, gpu)
        rows += energy_of(rng, start, gpu)
    return [dict(row, source=f"n{i % 3}", boot="b", seq=i) for i, row in enumerate(rows)]


def world(rng):
    start = rng.choice(STARTS)
    assets = assets_of(rng, start)
    first = instant(rng, start)
    return {"assets": assets, "prices": prices_of(rng, start), "pools": pools_of(rng, start),
            "events": events_of(rng, start, assets), "from": first,
            "to": first + rng.choice([1, 3600, 86400, rng.randrange(1, 2 * 86400)])}


def write(folder, world, files=1):
    for name in ("assets", "prices", "pools"):
        (folder / f"{name}.json").write_text(json.dumps(world[name]))
    for i in range(files):
        name = "events.jsonl" if files == 1 else f"events-{i}.jsonl"
        lines = [json.dumps(e) for e in world["events"][i::files]]
        (folder / name).write_text("\n".join(lines) + ("\n" if lines else ""))

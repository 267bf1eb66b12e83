"""Prints what the replay did and what it cost, and checks it: every task ended or has a stated
reason, the observer's bill agrees to the nano, Prometheus has scraped all parts.

  summary.py --run FILE --server URL --ca FILE --token-file FILE --kubectl PROGRAM [--prometheus URL]
"""
import argparse
import collections
import datetime
import json
import statistics
import sys
import time
import urllib.request
from fractions import Fraction

import gateway
import observer
from oracle import FREE, NANO

PARTS = ("gpuaas-agent", "gpuaas-scheduler", "gpuaas-server")


def nano_of(value):
    """Money as the API gives it: a decimal string of units, or whole nano."""
    return int(Fraction(value) * NANO) if isinstance(value, str) else value


def bill_of(admin, start, end):
    answer = admin.get(f"/v1/bills?from={start}&to={end}")
    rows = answer["by_tenant"]
    rows = {r["tenant"]: r for r in rows} if isinstance(rows, list) else rows
    bill = {tenant: {kind: nano_of(row.get(kind, 0)) for kind in ("capacity", "energy", "shared", "total")}
            for tenant, row in rows.items()}
    total = answer["tco_nano"] if "tco_nano" in answer else nano_of(answer["tco"])
    return {"by_tenant": bill, "tco_nano": total, "currency": answer.get("currency", "")}


def units(nano):
    """Nano as units with nine decimals: parts add up to what is printed as their sum."""
    whole, part = divmod(abs(nano), 10 ** 9)
    return f"{'-' if nano < 0 else ''}{whole}.{part:09d}"


def table(head, rows):
    widths = [max(len(str(r[i])) for r in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        print("  " + "  ".join(cells).rstrip())


def seconds(row, since, until):
    a, b = (datetime.datetime.fromisoformat(row[k].replace("Z", "+00:00")) for k in (since, until))
    return (b - a).total_seconds()


def print_tasks(run):
    tasks = {f"{t['tenant']}.{t['name']}": t for t in run["tasks"]}
    print(f"\nTasks: {run['factors']}\n")
    rows = []
    for tenant in sorted({t["tenant"] for t in run["tasks"]}):
        own = [r for i, r in run["requests"].items() if i in tasks and tasks[i]["tenant"] == tenant]
        waits = sorted(seconds(r, "created", "scheduled") for r in own if r.get("scheduled"))
        states = collections.Counter(r["state"] for r in own)
        rows.append([tenant, len(own), states["Succeeded"], len(own) - states["Succeeded"],
                     f"{statistics.mean(waits):.1f}" if waits else "-",
                     f"{waits[len(waits) // 2]:.0f}" if waits else "-", f"{waits[-1]:.0f}" if waits else "-"])
    table(["tenant", "tasks", "succeeded", "other", "queue wait mean s", "median", "max"], rows)
    wrong = [f"{i}: never answered" for i in tasks if i not in run["requests"]]
    for identity, row in run["requests"].items():
        if row["state"] not in ("Succeeded", "Cancelled") and not row.get("reason"):
            wrong.append(f"{identity}: {row['state']} without a reason")
        elif row["state"] != "Succeeded":
            print(f"  {identity}: {row['state']}: {row.get('reason')} {row.get('message', '')}")
    return wrong + [f"{i}: ran, but is not in the ledger" for i in run["not_in_ledger"]]


def print_utilization(run, held_s):
    gpus = sum(len(n["devices"]) for n in run["nodes"])
    span = seconds(run, "from", "to")
    print(f"\nUtilization: {held_s} of {gpus * span:.0f} GPU-seconds were held by tasks "
          f"({100 * held_s / (gpus * span):.1f} %) on {gpus} GPUs in {span:.0f} s, "
          "the slow begin of the trace and its last task included")


def print_cost(bill):
    print(f"\nCost of the period in {bill['currency'] or 'units'} (tenants + idle = total cost of ownership):\n")
    names = sorted(n for n in bill["by_tenant"] if n != FREE) + [FREE]
    rows = []
    for name in names:
        row = bill["by_tenant"].get(name, {})
        rows.append([name if name != FREE else "idle (nobody's)"] + [
            units(row.get(kind, 0)) for kind in ("capacity", "energy", "shared", "total")])
    total = sum(bill["by_tenant"].get(n, {}).get("total", 0) for n in names)
    rows.append(["total", "", "", "", units(total)])
    table(["tenant", "capacity", "energy", "shared", "total"], rows)
    if total == bill["tco_nano"]:
        print(f"  conservation: {total} nano by tenant = {bill['tco_nano']} nano of ownership")
        return []
    return [f"tenants and idle add up to {total} nano, ownership costs {bill['tco_nano']}"]


def scraped(url, patience_s=30):
    """Which parts Prometheus has no healthy scrape of; it is given time for its first round."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            with urllib.request.urlopen(f"{url}/api/v1/query?query=min%20by%20(job)%20(up)", timeout=10) as answer:
                result = json.load(answer)["data"]["result"]
        except OSError:  # it is still starting
            result = []
        up = {r["metric"].get("job"): r["value"][1] == "1" for r in result}
        missing = [part for part in PARTS if not up.get(part)]
        if not missing or time.monotonic() > deadline:
            return [f"Prometheus has no healthy scrape of {part}" for part in missing]
        time.sleep(2)


def main():
    parser = argparse.ArgumentParser()
    for name in ("run", "server", "ca", "token-file", "kubectl"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--prometheus")
    options = parser.parse_args()
    with open(options.token_file, encoding="utf-8") as file:
        admin = gateway.Gateway(options.server, options.ca, file.read().strip())
    with open(options.run, encoding="utf-8") as file:
        run = json.load(file)
    wrong = print_tasks(run)
    bill = bill_of(admin, run["from"], run["to"])
    differences, held_s = observer.observe(admin, options.kubectl, run["from"], run["to"], bill)
    print_utilization(run, held_s)
    wrong += print_cost(bill)
    if not differences:
        print("  observer: the bill recomputed from the pods' times agrees to the nano")
    wrong += differences
    if options.prometheus:
        missing = scraped(options.prometheus)
        if not missing:
            print(f"  Prometheus has scraped {', '.join(PARTS)}")
        wrong += missing
    for line in wrong[:40]:
        print(f"  WRONG: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Replays the trace through the gateway and writes what happened to a JSON file.

  run.py --server URL --ca FILE --token-file FILE --image NAME --out FILE [--trace CSV] [--span S]
"""
import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import sys
import time

import gateway
import setup
import tasks as trace

TERMINAL = {"Succeeded", "Failed", "Cancelled"}
SUBMITTERS = 16


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


def text_of(instant):
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def submit(users, task, image, start):
    time.sleep(max(0.0, start + task.arrival_s - time.monotonic()))
    try:
        return users[task.tenant].post(f"/v1/tenants/{task.tenant}/requests", task.request(image),
                                       key=f"replay-{task.name}-{os.getpid()}")
    except gateway.Problem as problem:
        return {"id": f"{task.tenant}.{task.name}", "state": "Refused", "reason": str(problem)}


class Progress:
    """One line a step: rewritten on a terminal, printed every ten seconds elsewhere."""

    def __init__(self, total):
        self.total, self.start, self.last = total, time.monotonic(), -10.0

    def show(self, states, force=False):
        elapsed = time.monotonic() - self.start
        line = (f"  {elapsed:4.0f} s  waiting {states['Pending']:3d}  running {states['Running']:3d}  "
                f"done {sum(states[s] for s in TERMINAL) + states['Refused']:3d} of {self.total}")
        if sys.stderr.isatty():
            print(f"\r{line}", end="\n" if force else "", file=sys.stderr, flush=True)
        elif force or elapsed - self.last >= 10:
            print(line, file=sys.stderr, flush=True)
            self.last = elapsed


def replay(admin, users, todo, image, limit_s):
    """Submits everything at its time and waits until each has ended or limit_s has passed."""
    wanted = {f"{t.tenant}.{t.name}" for t in todo}
    progress, start = Progress(len(todo)), time.monotonic()
    last = max(t.arrival_s for t in todo)
    ended = 0
    with concurrent.futures.ThreadPoolExecutor(SUBMITTERS) as pool:
        jobs = [pool.submit(submit, users, t, image, start) for t in todo]
        while True:
            time.sleep(2 if len(todo) - ended > 5 else 0.5)  # looking costs, the end is not missed
            refused = {j.result()["id"]: j.result() for j in jobs
                       if j.done() and j.result()["state"] == "Refused"}
            rows = {r["id"]: r for r in admin.pages("/v1/requests") if r["id"] in wanted}
            rows.update(refused)
            states = collections.Counter(r["state"] for r in rows.values())
            ended = sum(states[s] for s in TERMINAL) + states["Refused"]
            over = time.monotonic() - start > last + limit_s
            progress.show(states, force=over or ended == len(todo))
            if ended == len(todo) or over:
                return rows


def drained(admin, rows, start, patience_s=60):
    """Waits until the ledger has the release of every pod that ran; returns those of which it has
    none, and when the last one was."""
    deadline = time.monotonic() + patience_s
    ran = {r["id"] for r in rows.values() if r.get("scheduled")}
    while True:
        released = {}
        for line in admin.call("GET", f"/v1/events?from={text_of(start)}", accept="application/jsonl").splitlines():
            event = json.loads(line)
            if event["type"] == "released":
                released[event.get("request")] = event["t"]
        missing = ran - released.keys()
        if not missing or time.monotonic() > deadline:
            last = max(released.values(), default=None)
            return sorted(missing), datetime.datetime.fromisoformat(last) if last else now()
        time.sleep(1)


def metered(admin, nodes, end, patience_s=40):
    """Waits until the energy of every GPU is known up to the end, so that the bill of the period
    does not change any more; returns the GPUs of which it is not."""
    deadline = time.monotonic() + patience_s
    gpus = {d["uuid"] for n in nodes for d in n["devices"]}
    while True:
        lines = admin.call("GET", f"/v1/events?from={text_of(end)}", accept="application/jsonl").splitlines()
        known = {e["gpu"] for e in map(json.loads, lines) if e["type"] == "energy"}
        if gpus <= known or time.monotonic() > deadline:
            return sorted(gpus - known)
        time.sleep(1)


def rhythm(todo):
    """When the trace's tasks arrive, in a sentence: the begin may look as if nothing happened."""
    middle = sorted(t.arrival_s for t in todo)[len(todo) // 20]
    return f"{len(todo) // 20} tasks arrive in the first {middle:.0f} s, the other {len(todo) - len(todo) // 20} after that"


def main():
    parser = argparse.ArgumentParser()
    for name in ("server", "ca", "token-file", "image", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--trace", default=str(trace.SAMPLE))
    parser.add_argument("--span", type=float, default=trace.ARRIVALS_SPAN_S)
    parser.add_argument("--nodes", type=int, default=3, help="nodes of the cluster")
    parser.add_argument("--nodes-needed", type=int, help="of these at least so many have GPUs (default: all)")
    parser.add_argument("--limit", type=float, default=900, help="seconds after the last arrival")
    options = parser.parse_args()
    with open(options.token_file, encoding="utf-8") as file:
        admin = gateway.Gateway(options.server, options.ca, file.read().strip())
    todo = trace.load(options.trace, options.span)
    nodes, tokens = setup.prepare(admin, options.nodes, options.nodes_needed)
    users = {tenant: admin.as_user(token) for tenant, token in tokens.items()}
    print(f"replay: {trace.factors(todo)}", file=sys.stderr)
    print(f"replay: {rhythm(todo)}", file=sys.stderr)
    start = now()
    rows = replay(admin, users, todo, options.image, options.limit)
    missing, last = drained(admin, rows, start)
    end = last + datetime.timedelta(seconds=1)
    unmetered = metered(admin, nodes, end)
    if unmetered:
        print(f"replay: the energy of {len(unmetered)} GPUs up to the end is not known yet; the bill may still grow by it",
              file=sys.stderr)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"from": text_of(start), "to": text_of(end), "factors": trace.factors(todo),
                   "nodes": nodes, "tasks": [t.__dict__ for t in todo], "requests": rows,
                   "not_in_ledger": missing}, file, indent=1)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

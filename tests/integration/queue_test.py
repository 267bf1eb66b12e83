"""gpuaas-sim queue: formats and policies, EASY backfill against a plain one, and a big job among small ones."""
import csv
import os
import pathlib
import random
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIM = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "src" / "sim" / "gpuaas-sim"
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
OPENB = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
         "scheduled_time\n")


def queue(*words):
    return subprocess.run([SIM, "queue", *map(str, words)], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)


def play(folder, text, cluster, policy="default", form="tiresias", more=()):
    """Rows by job; numbers as floats, None where nothing is written."""
    jobs, out = folder / "jobs.in", folder / "jobs.csv"
    jobs.write_text(text)
    done = queue("--format", form, "--jobs", jobs, "--nodes", cluster, "--policy", policy, "--out", out, *more)
    assert done.returncode == 0, done.stderr
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["job", "submit_s", "start_s", "end_s", "gpus", "preemptions", "reserved_start_s"]
    return {r["job"]: {k: float(v) if v else None for k, v in r.items() if k != "job"} for r in rows}


def tiresias(jobs):
    return TIRESIAS + "".join(f"{i},{gpus},{at},1,vgg,{lasts},1\n" for i, (at, gpus, lasts) in enumerate(jobs))


def drawn(seed, gpus):
    rng = random.Random(seed)
    at, jobs = 0, []
    for _ in range(60):
        at += rng.choice((0, 1, 7, 20))
        jobs.append((at, rng.choice((1, 1, 1, 2, 3, gpus // 2, gpus)), rng.randint(1, 90)))
    return jobs


def easy(jobs, gpus):
    """Starts on one node: first in, first out; the head has the earliest instant that its GPUs are
    free; others pass it if they end before or use what it leaves."""
    waiting, running, starts, at = [], [], {}, -1
    while len(starts) < len(jobs):
        at = min([t for t, _, _ in jobs if t > at] + [end for end, _ in running if end > at])
        running = [(end, n) for end, n in running if end > at]
        waiting += [i for i, (t, _, _) in enumerate(jobs) if t == at]
        head = None
        for i in list(waiting):
            _, need, lasts = jobs[i]
            free = gpus - sum(n for _, n in running)
            if head is None and free < need:
                left = free
                for end, n in sorted(running):
                    left += n
                    if left >= need:
                        later = sum(m for e, m in running if e > end)
                        head = (end, gpus - later - need)
                        break
                continue
            if free < need or (head and at + lasts > head[0] and need > head[1]):
                continue
            if head and at + lasts > head[0]:
                head = (head[0], head[1] - need)
            starts[i] = at
            running.append((at + lasts, need))
            waiting.remove(i)
    return starts


@pytest.mark.parametrize("seed", range(8))
def test_easy_on_one_node_is_easy_backfill(tmp_path, seed):
    jobs = drawn(seed, 8)
    rows = play(tmp_path, tiresias(jobs), "1x8", "easy")
    assert {int(name): row["start_s"] for name, row in rows.items()} == easy(jobs, 8)
    kept = [r for r in rows.values() if r["reserved_start_s"] is not None]
    assert kept and all(r["start_s"] <= r["reserved_start_s"] for r in kept)


@pytest.mark.parametrize("policy", ["fifo", "priority", "easy", "default"])
def test_what_holds_for_every_policy(tmp_path, policy):
    jobs = drawn(99, 8)
    rows = play(tmp_path, tiresias(jobs), "3x8", policy)
    for name, row in rows.items():
        at, gpus, lasts = jobs[int(name)]
        assert row["start_s"] >= at == row["submit_s"] and row["end_s"] == row["start_s"] + lasts
        assert row["gpus"] == gpus and row["preemptions"] == 0
    for instant in {r["start_s"] for r in rows.values()}:
        assert sum(r["gpus"] for r in rows.values() if r["start_s"] <= instant < r["end_s"]) <= 24
    starts = [rows[str(i)]["start_s"] for i in range(len(jobs))]
    assert (starts == sorted(starts)) == (policy == "fifo")


# KAI-Scheduler 1969 and 1970 ask for it: small jobs without an end, and one that needs everything at once.
def test_a_big_job_is_not_starved_and_costs_little(tmp_path):
    small = [(i * 71, 1, 600) for i in range(600)]  # 105 % of 8 GPUs, 12 hours
    jobs = sorted([*small, (1800, 8, 1800)])
    big = str(jobs.index((1800, 8, 1800)))
    rows = play(tmp_path, tiresias(jobs), "1x8", "default")
    starved = play(tmp_path, tiresias(jobs), "1x8", "priority")
    # Those that were waiting before it have started within 600 s, and ended within another 600.
    assert rows[big]["start_s"] == rows[big]["reserved_start_s"] <= 1800 + 2 * 600
    assert starved[big]["start_s"] > 12 * 3600  # without a reservation it is the very last
    until = 12 * 3600

    def used(rows):
        return sum(r["gpus"] * max(0, min(until, r["end_s"]) - min(until, r["start_s"])) for r in rows.values())
    alone = play(tmp_path, tiresias(small), "1x8", "default")
    assert used(rows) >= 0.95 * used(alone)


# The same with whole nodes: small jobs take one, the big one is a gang of all eight.
def test_a_gang_of_all_nodes_is_not_starved_and_costs_little(tmp_path):
    small = [(int(i * 71.43), 8, 600) for i in range(600)]
    short = [(660 + 60 * i, 8, 45) for i in range(8)]  # they end before the gang can start
    jobs = sorted([*small, *short, (600, 64, 600)])
    gang = str(jobs.index((600, 64, 600)))
    rows = play(tmp_path, tiresias(jobs), "8x8", "default")
    starved = play(tmp_path, tiresias(jobs), "8x8", "priority")
    assert rows[gang]["start_s"] == rows[gang]["reserved_start_s"] == 1200
    assert starved[gang]["start_s"] > 12 * 3600
    passed = [r for job, r in rows.items() if r["end_s"] - r["start_s"] == 45 and r["start_s"] < 1200]
    assert len(passed) >= 6 and all(r["end_s"] <= 1200 for r in passed)
    until = 36000

    def used(rows):
        return sum(r["gpus"] * max(0, min(until, r["end_s"]) - min(until, r["start_s"])) for r in rows.values())
    alone = play(tmp_path, tiresias(sorted([*small, *short])), "8x8", "default")
    assert used(rows) >= 0.95 * used(alone)


# scheduler-plugins 713 and 114: gangs that hold a part of what they need wait for each other for ever.
@pytest.mark.parametrize("policy", ("default", "priority", "easy"))
@pytest.mark.parametrize("seed", range(4))
def test_gangs_never_hold_each_other_up(tmp_path, policy, seed):
    rng = random.Random(seed)
    jobs = [(15 * i, rng.choice((1, 2, 4, 8, 12, 16)), 30) for i in range(60)]
    rows = play(tmp_path, tiresias(jobs), "2x8", policy)
    assert all(r["end_s"] == r["start_s"] + 30 for r in rows.values()) and len(rows) == 60
    for at in sorted({r["start_s"] for r in rows.values()}):
        assert sum(r["gpus"] for r in rows.values() if r["start_s"] <= at < r["end_s"]) <= 16


def test_speed_and_left_out(tmp_path):
    text = OPENB + ("a,1,1,2,1000,,LS,Running,100,160,110\nb,1,1,1,500,,LS,Running,0,9,0\n"
                    "c,1,1,1,1000,,BE,Pending,5,,\nd,1,1,17,1000,,BE,Running,5,9,5\n")
    rows = play(tmp_path, text, "2x8", form="openb", more=("--speed", "2.5"))
    assert rows == {"a": {"submit_s": 40, "start_s": 40, "end_s": 90, "gpus": 2, "preemptions": 0,
                          "reserved_start_s": None}}


def test_openb_classes_are_priorities(tmp_path):
    text = OPENB + ("a,1,1,1,1000,,BE,Running,0,10,0\nb,1,1,1,1000,,BE,Running,1,11,1\n"
                    "c,1,1,1,1000,,Burstable,Running,2,12,2\nd,1,1,1,1000,,LS,Running,3,13,3\n")
    for policy, order in (("default", "adcb"), ("priority", "adcb"), ("easy", "abcd")):
        rows = play(tmp_path, text, "1x1", policy, form="openb")
        assert sorted(rows, key=lambda name: rows[name]["start_s"]) == list(order)


def test_philly_needs_a_throughput(tmp_path):
    row = "LM (batch size 5)\tcd %s && run\t--steps\t1\t{}\t{}\t{}\n"
    text = row.format(100, "0.000000", 1) + row.format(1000, "5.500000", 4)
    table = tmp_path / "t.csv"
    table.write_text("type,GPUs,steps/s\nLM (batch size 5),1,0.5\nLM (batch size 5),4,40\n")
    rows = play(tmp_path, text, "1x4", "fifo", "philly", ("--throughput", table))
    assert [(r["start_s"], r["end_s"]) for r in rows.values()] == [(0, 200), (200, 225)]
    table.write_text("LM (batch size 5),1,0.5\n")
    done = queue("--format", "philly", "--jobs", tmp_path / "jobs.in", "--throughput", table, "--nodes", "1x4",
                 "--out", tmp_path / "o.csv")
    assert done.returncode == 1 and "jobs.in:2: " in done.stderr and "4 GPUs" in done.stderr
    done = queue("--format", "philly", "--jobs", tmp_path / "jobs.in", "--nodes", "1x4", "--out", tmp_path / "o.csv")
    assert done.returncode == 2 and "--throughput" in done.stderr


def test_a_policy_as_a_file(tmp_path):
    policy = tmp_path / "policy.yaml"
    jobs = tiresias([(0, 8, 100), (1, 8, 10), (2, 1, 5)])
    policy.write_text("base: easy\nstrict: true\n")
    strict = play(tmp_path, jobs, "1x8", policy)
    assert [r["start_s"] for r in strict.values()] == [0, 100, 110]
    policy.write_text("base: easy\nheads: 0\n")
    assert play(tmp_path, jobs, "1x8", policy) == play(tmp_path, jobs, "1x8", "priority")
    for text, told in (("heads: 99\n", "heads"), ("base: lifo\n", "base"), ("tails: 1\n", "tails")):
        policy.write_text(text)
        done = queue("--format", "tiresias", "--jobs", tmp_path / "jobs.in", "--nodes", "1x8", "--policy", policy,
                     "--out", tmp_path / "o.csv")
        assert done.returncode == 1 and told in done.stderr, done.stderr


def durations(folder, text):
    """What `durations` prints of jobs in Tiresias' form, by size."""
    jobs = folder / "lasts.in"
    jobs.write_text(text)
    done = subprocess.run([SIM, "durations", "--format", "tiresias", "--jobs", jobs], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return {row["gpus"]: row for row in csv.DictReader(done.stdout.splitlines())}


def test_durations_are_guessed_from_those_that_ended_before(tmp_path):
    jobs = [(200 * i, 1, 100) for i in range(50)]
    told = durations(tmp_path, tiresias(jobs))
    # The first eight are seen before any is guessed, and all are alike.
    assert told["1"]["jobs"] == "50" and told["1"]["guessed"] == "42" and told["1"]["inside_pct"] == "100.0"
    assert told["all"] == told["1"] | {"gpus": "all"} and told["2-4"]["jobs"] == "0"
    # All come before the first has ended: nothing may be known of any of them.
    assert durations(tmp_path, tiresias([(i, 1, 100) for i in range(50)]))["1"]["guessed"] == "0"
    # Other sizes say nothing about it.
    mixed = sorted([*jobs, *((200 * i, 4, 5000) for i in range(50))])
    assert durations(tmp_path, tiresias(mixed))["1"]["inside_pct"] == "100.0"


def test_learned_durations_let_small_jobs_pass(tmp_path):
    """A job of all GPUs waits 1,000 s; those before taught how long the others run."""
    taught = sorted([(1100 * i, 3, 1000) for i in range(9)] + [(1100 * i + 50, 1, 20) for i in range(9)])
    jobs = [*taught, (10000, 3, 1000), (10001, 4, 10), *((10100 + 30 * i, 1, 20) for i in range(10))]
    policy, starts = tmp_path / "policy.yaml", {}
    for known in ("true", "learned", "none"):
        policy.write_text(f"base: default\ndurations: '{known}'\n")
        rows = play(tmp_path, tiresias(jobs), "1x4", policy)
        starts[known] = [rows[str(i)]["start_s"] for i in range(20, 30)]
        assert rows["19"]["start_s"] == 11000, "the head starts when the job before it ends"
    assert starts["true"] == [10100 + 30 * i for i in range(10)]
    assert min(starts["none"]) >= 11000, "what ends never passes nobody"
    assert starts["learned"] == starts["true"]


def test_starts_are_told_where_they_come_true(tmp_path):
    out = tmp_path / "told.csv"
    jobs = [(80 * i, 1, 79 if i % 2 else 81) for i in range(400)]
    rows = play(tmp_path, tiresias(jobs), "1x1", more=("--estimates", out))
    with out.open() as file:
        told = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
    assert all(rows[str(int(r["job"]))]["start_s"] == r["start_s"] and r["told_s"] <= r["start_s"] for r in told)
    shown = [r for r in told if "from_s" in r]
    assert len(shown) > 40, f"{len(shown)} of {len(told)}"
    assert sum(r["from_s"] <= r["start_s"] <= r["to_s"] for r in shown) >= 0.8 * len(shown)


@pytest.mark.parametrize("text, told", [
    ("", "empty"), ("job_id,num_gpu\n", "submit_time"), (TIRESIAS + "1,x,0,1,m,1,1\n", "jobs.in:2: column 2"),
    (TIRESIAS + "1,1,-1,1,m,1,1\n", "jobs.in:2: column 3"), (TIRESIAS + "1,1\n", "jobs.in:2: "),
])
def test_bad_lists_are_refused(tmp_path, text, told):
    jobs = tmp_path / "jobs.in"
    jobs.write_text(text)
    done = queue("--format", "tiresias", "--jobs", jobs, "--nodes", "1x8", "--out", tmp_path / "o.csv")
    assert done.returncode == 1 and told in done.stderr and done.stderr.startswith("gpuaas-sim: ")


def test_usage(tmp_path):
    jobs = tmp_path / "jobs.in"
    jobs.write_text(TIRESIAS)
    for words in ((), ("--format", "tiresias"), ("--format", "tiresias", "--jobs", jobs, "--out", "o"),
                  ("--nodes", "0x8"), ("--nodes", "8"), ("--nodes", "1x65"), ("--speed", "0"), ("--dance", "1"),
                  ("--jobs",)):
        assert queue(*words).returncode == 2, words

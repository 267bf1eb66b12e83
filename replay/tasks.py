"""Turns rows of the openb trace into tasks of the replay; the factors are printed with the result."""
import csv
import dataclasses
import pathlib
import zlib

CPU_DIVISOR, MEMORY_DIVISOR, DURATION_DIVISOR = 96, 16, 120
DURATION_MIN_S, DURATION_MAX_S = 2, 60
ARRIVALS_SPAN_S = 150
TENANTS = ("vision", "speech", "search")
# The trace's quality of service as our classes, highest first.
CLASS_OF_QOS = {"LS": "inference", "Guaranteed": "inference", "Burstable": "training", "BE": "experiment"}
SAMPLE = pathlib.Path(__file__).with_name("openb_sample.csv")


@dataclasses.dataclass(frozen=True)
class Task:
    name: str
    tenant: str
    klass: str
    gpus: int
    cpu_milli: int
    memory_mib: int
    duration_s: int
    arrival_s: float
    models: tuple

    def request(self, image):
        """The body of the request at the gateway. Memory and load of the program follow from its
        name, so that two runs use the GPUs alike."""
        seed = zlib.crc32(self.name.encode())
        body = {
            "name": self.name,
            "class": self.klass,
            "gpus": self.gpus,
            "cpu": f"{self.cpu_milli}m",
            "memory": f"{self.memory_mib}Mi",
            "duration": self.duration_s,
            "image": image,
            "args": ["--seconds", str(self.duration_s), "--gpus", str(self.gpus),
                     "--memory-mib", str(2048 + seed % 30000),
                     "--util-milli", str(200 + seed // 7 % 800)],
        }
        if self.models:
            body["gpu_models"] = list(self.models)
        return body


def clip(value, low, high):
    return max(low, min(high, value))


def load(path=SAMPLE, span_s=ARRIVALS_SPAN_S):
    with open(path, encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file)
                if int(r["num_gpu"]) >= 1 and int(r["gpu_milli"]) == 1000
                and r["creation_time"] and r["scheduled_time"] and r["deletion_time"]]
    if not rows:
        raise SystemExit(f"replay: {path} has no row of whole GPUs with times")
    rows.sort(key=lambda r: (int(r["creation_time"]), r["name"]))
    first, last = int(rows[0]["creation_time"]), int(rows[-1]["creation_time"])
    scale = span_s / max(1, last - first)
    return [Task(
        name=row["name"],
        tenant=TENANTS[zlib.crc32(row["name"].encode()) % 3],
        klass=CLASS_OF_QOS.get(row["qos"], "experiment"),
        gpus=int(row["num_gpu"]),
        cpu_milli=max(1, int(row["cpu_milli"]) // CPU_DIVISOR),
        memory_mib=max(16, int(row["memory_mib"]) // MEMORY_DIVISOR),
        duration_s=clip((int(row["deletion_time"]) - int(row["scheduled_time"])) // DURATION_DIVISOR,
                        DURATION_MIN_S, DURATION_MAX_S),
        arrival_s=(int(row["creation_time"]) - first) * scale,
        models=tuple(m for m in row["gpu_spec"].split("|") if m),
    ) for row in rows]


def factors(tasks):
    return (f"{len(tasks)} tasks of whole GPUs from the openb trace; CPU / {CPU_DIVISOR}, memory / {MEMORY_DIVISOR}, "
            f"durations / {DURATION_DIVISOR} clipped to {DURATION_MIN_S}-{DURATION_MAX_S} s, arrivals rescaled to "
            f"{max(t.arrival_s for t in tasks):.0f} s, rows without times left out, tenant = CRC-32 of the name mod 3")

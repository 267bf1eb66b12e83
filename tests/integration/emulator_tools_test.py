"""nvitop and gpustat, unchanged, on the emulated library: they show what nvidia-ml-py tells."""
import json
import os
import subprocess
import sys

import pytest

from emulatorkit import BUILD, MIB, Emulator, started, wait_until

# The same figures by nvidia-ml-py alone, in the units that each tool shows.
NVML = """
answer = []
for g in gpu:
    memory = n.nvmlDeviceGetMemoryInfo(g, n.nvmlMemory_v2)
    mig = code_of(n.nvmlDeviceGetMigMode, g) == 0 and n.nvmlDeviceGetMigMode(g)[0] == 1
    rates = None if mig else n.nvmlDeviceGetUtilizationRates(g)
    answer.append({
        "index": n.nvmlDeviceGetIndex(g), "uuid": n.nvmlDeviceGetUUID(g), "name": n.nvmlDeviceGetName(g),
        "temperature": n.nvmlDeviceGetTemperature(g, 0), "gpu": rates and rates.gpu, "memory": rates and rates.memory,
        "power": n.nvmlDeviceGetPowerUsage(g), "limit": n.nvmlDeviceGetEnforcedPowerLimit(g), "mig": mig,
        "used": memory.used, "free": memory.free, "total": memory.total, "bus": n.nvmlDeviceGetPciInfo(g).busId,
        "sm": n.nvmlDeviceGetClockInfo(g, 1), "capability": list(n.nvmlDeviceGetCudaComputeCapability(g)),
        "tx": n.nvmlDeviceGetPcieThroughput(g, 0), "ecc": n.nvmlDeviceGetTotalEccErrors(g, 1, 0),
        "processes": sorted([p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(g)),
        "driver": n.nvmlSystemGetDriverVersion()})
"""

NVITOP = """
import json
from nvitop import Device
def plain(value):
    return None if value == "N/A" else value
rows = []
for d in Device.all():
    rows.append({
        "index": d.physical_index, "uuid": d.uuid(), "name": d.name(), "temperature": d.temperature(),
        "gpu": plain(d.gpu_utilization()), "memory": plain(d.memory_utilization()), "power": d.power_usage(),
        "limit": d.power_limit(), "mig": bool(d.is_mig_mode_enabled()), "used": d.memory_used(), "free": d.memory_free(),
        "total": d.memory_total(), "bus": d.bus_id(), "sm": d.clock_infos().sm,
        "capability": list(d.cuda_compute_capability()), "tx": d.pcie_tx_throughput(),
        "ecc": d.total_volatile_uncorrected_ecc_errors(),
        "processes": sorted([pid, p.gpu_memory()] for pid, p in d.processes().items()), "driver": Device.driver_version(),
        "instances": [[m.index, m.uuid(), m.name(), m.memory_total(), m.gpu_instance_id(), m.compute_instance_id(),
                       sorted(m.processes())] for m in d.mig_devices()]})
print(json.dumps(rows))
"""


def tool(emulator, *arguments):
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, GPUAAS_EMU=str(emulator.directory), LD_LIBRARY_PATH=str(BUILD))).stdout


@pytest.fixture(params=["T4", "A30", "A100-SXM4-40GB", "H200", "B200", "L40S"])
def emulator(request, tmp_path):
    made = Emulator(tmp_path, request.param, 2)
    # Temperature moves by itself and would differ between two looks at it.
    made.control("temp 0 55", "temp 1 61", "ecc 1 uncorrected 3")
    wait_until(lambda: made.ask("answer = n.nvmlDeviceGetTemperature(gpu[1], 0)") == 61, "it is warm")
    made.only = tmp_path / "pod"
    made.only.mkdir()
    os.link(tmp_path / "gpu-1.sock", made.only / "gpu-1.sock")
    started(made.workload("--seconds", 300, "--memory-mib", 3000, "--util-milli", 640, directory=made.only))
    yield made
    made.close()


def test_nvitop_agrees(emulator):
    want = emulator.ask(NVML)
    got = json.loads(tool(emulator, "-c", NVITOP))
    assert [row.pop("instances") for row in got] == [[], []]
    assert got == want and want[1]["gpu"] == 64 and want[1]["ecc"] == 3 and len(want[1]["processes"]) == 1
    table = tool(emulator, "-m", "nvitop", "-1", "--ascii")
    for row in want:
        assert row["bus"] in table
    assert f"Driver Version: {want[0]['driver']}" in table and "64%" in table and "3000MiB" in table


def test_gpustat_agrees(emulator):
    want = emulator.ask(NVML)
    got = json.loads(tool(emulator, "-m", "gpustat", "--json"))
    assert got["driver_version"] == want[0]["driver"]
    shown = [[g["index"], g["uuid"], g["name"], g["temperature.gpu"], g["utilization.gpu"], g["memory.used"],
              g["memory.total"], g["power.draw"], g["enforced.power.limit"],
              [[p["pid"], p["gpu_memory_usage"]] for p in g["processes"]]] for g in got["gpus"]]
    assert shown == [[w["index"], w["uuid"], w["name"], w["temperature"], w["gpu"], w["used"] // MIB, w["total"] // MIB,
                      w["power"] // 1000, w["limit"] // 1000, [[pid, used // MIB] for pid, used in w["processes"]]]
                     for w in want]


def test_tools_on_instances_and_lost_gpus(tmp_path):
    emulator = Emulator(tmp_path, "H100-SXM5-80GB", 3)
    emulator.control("mig 1 on", "mig 1 create 4g.40gb 0", "mig 1 create 2g.20gb 4")
    wait_until(lambda: len(list(tmp_path.glob("MIG-*.sock"))) == 2, "two instances")
    uuids = emulator.ask("answer = [n.nvmlDeviceGetUUID(n.nvmlDeviceGetMigDeviceHandleByIndex(gpu[1], i)) for i in (0, 1)]")
    (tmp_path / "pod").mkdir()
    os.link(tmp_path / f"{uuids[1]}.sock", tmp_path / "pod" / f"{uuids[1]}.sock")
    child = emulator.workload("--seconds", 300, "--memory-mib", 5000, directory=tmp_path / "pod")
    started(child)
    rows = json.loads(tool(emulator, "-c", NVITOP))
    assert [row["mig"] for row in rows] == [False, True, False] and rows[1]["gpu"] is None
    name = "NVIDIA H100 80GB HBM3 MIG "
    assert rows[1]["instances"] == [[[1, 0], uuids[0], name + "4g.40gb", 40448 * MIB, 1, 0, []],
                                    [[1, 1], uuids[1], name + "2g.20gb", 20096 * MIB, 5, 0, [child.pid]]]
    shown = json.loads(tool(emulator, "-m", "gpustat", "--json"))["gpus"]
    assert shown[1]["utilization.gpu"] is None and [p["pid"] for p in shown[1]["processes"]] == [child.pid]
    table = tool(emulator, "-m", "nvitop", "-1", "--ascii")
    assert "4g.40gb" in table and "2g.20gb" in table and "5000MiB" in table
    emulator.control("lost 2")
    wait_until(lambda: emulator.ask("answer = code_of(n.nvmlDeviceGetHandleByIndex, 2)", handles=False) == 15, "lost")
    assert len(json.loads(tool(emulator, "-m", "gpustat", "--json"))["gpus"]) == 3
    assert "ERROR: GPU is Lost" in tool(emulator, "-m", "nvitop", "-1", "--ascii")
    emulator.close()

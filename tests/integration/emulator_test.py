"""nvidia-ml-py, unchanged, against the emulated NVML library, daemon and workload."""
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time

import pytest

from emulatorkit import BOARDS, BUILD, MIB, ROOT, Emulator, started, wait_until


@pytest.fixture
def emulator(tmp_path):
    made = Emulator(tmp_path)
    yield made
    made.close()


def test_identity(emulator):
    got = emulator.ask("""
answer = [n.nvmlSystemGetDriverVersion(), n.nvmlSystemGetNVMLVersion(), n.nvmlSystemGetCudaDriverVersion_v2(),
          n.nvmlDeviceGetCount()]
for g in gpu:
    answer += [[n.nvmlDeviceGetName(g), n.nvmlDeviceGetUUID(g), n.nvmlDeviceGetMinorNumber(g),
                n.nvmlDeviceGetCudaComputeCapability(g), n.nvmlDeviceGetArchitecture(g),
                n.nvmlDeviceGetPciInfo(g).busId, n.nvmlDeviceGetMigMode(g),
                [n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(g))),
                 n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleBySerial(n.nvmlDeviceGetSerial(g))),
                 n.nvmlDeviceGetIndex(n.nvmlDeviceGetHandleByPciBusId(n.nvmlDeviceGetPciInfo(g).busId))]]]
""")
    assert got[:4] == ["570.86.15", "12.570.86.15", 12080, 2]
    for index, row in enumerate(got[4:]):
        assert row[:5] == ["NVIDIA A100-SXM4-80GB", emulator.uuids[index], index, [8, 0], 7]
        assert row[5] == f"00000000:{0x1a + 0x18 * index:02X}:00.0"
        assert row[6] == [0, 0] and row[7] == [index] * 3


@pytest.mark.parametrize("board,name,memory,limit,links,mig", [
    ("T4", "Tesla T4", 15360, 70, 0, 0), ("A30", "NVIDIA A30", 24576, 165, 4, 4),
    ("A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", 40960, 400, 12, 7),
    ("H200", "NVIDIA H200", 143771, 700, 18, 7), ("B200", "NVIDIA B200", 183359, 1000, 18, 7),
    ("A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", 81920, 400, 12, 7),
    ("H100-SXM5-80GB", "NVIDIA H100 80GB HBM3", 81559, 700, 18, 7),
    ("L40S", "NVIDIA L40S", 46068, 350, 0, 0)])
def test_boards(tmp_path, board, name, memory, limit, links, mig):
    emulator = Emulator(tmp_path, board, 8, "x")
    got = emulator.ask("""
def working(link):
    return code_of(n.nvmlDeviceGetNvLinkState, gpu[0], link) == 0
answer = [n.nvmlDeviceGetName(gpu[0]), n.nvmlDeviceGetMemoryInfo(gpu[0]).total,
          n.nvmlDeviceGetPowerManagementLimit(gpu[0]), sum(working(i) for i in range(18)),
          code_of(n.nvmlDeviceGetMigMode, gpu[0]) == 0, n.nvmlDeviceGetMaxMigDeviceCount(gpu[0]),
          n.nvmlDeviceGetTopologyCommonAncestor(gpu[0], gpu[7]), n.nvmlDeviceGetP2PStatus(gpu[0], gpu[7], 2)]
""")
    emulator.close()
    switched = links > 4
    assert got == [name, memory * MIB, limit * 1000, links, mig > 0, mig, 50, 0 if switched else 5]


def test_layout_of_switched_and_bridged_machines(tmp_path):
    code = """
answer = []
for g in gpu:
    address = n.nvmlDeviceGetPciInfo(g).busId
    ends = [n.nvmlDeviceGetNvLinkRemotePciInfo(g, i).busId for i in range(4)]
    answer.append([address, ends, n.nvmlDeviceGetNvLinkRemoteDeviceType(g, 0),
                   [n.nvmlDeviceGetTopologyCommonAncestor(g, other) for other in gpu],
                   [n.nvmlDeviceGetP2PStatus(g, other, 2) for other in gpu],
                   sum(word << 64 * i for i, word in enumerate(n.nvmlDeviceGetCpuAffinity(g, 2)))])
"""
    for board, count in (("A30", 4), ("H200", 4)):
        directory = tmp_path / board
        directory.mkdir()
        emulator = Emulator(directory, board, count)
        rows = emulator.ask(code)
        emulator.close()
        for i, (_, ends, kind, ancestors, peers, cpus) in enumerate(rows):
            bridged = board == "A30"
            if bridged:
                assert ends == [rows[i ^ 1][0]] * 4 and kind == 0
            else:
                assert ends == [f"00000000:E{k}:00.0" for k in range(4)] and kind == 2
            assert ancestors == [0 if k == i else 20 if k == i ^ 1 else 50 for k in range(4)]
            assert [p for k, p in enumerate(peers) if k != i] == \
                [0 if not bridged or k == i ^ 1 else 5 for k in range(4) if k != i]
            assert cpus == ((1 << 48) - 1) << (48 * (i // 2))


def test_errors_that_the_hardware_counts(tmp_path):
    emulator = Emulator(tmp_path, "T4", 1)
    waiter = emulator.child("""
events = n.nvmlEventSetCreate()
n.nvmlDeviceRegisterEvents(gpu[0], n.nvmlEventTypeDoubleBitEccError, events)
print("registered", flush=True)
data = n.nvmlEventSetWait_v2(events, 5000)
answer = [data.eventType, data.eventData]
""")
    assert waiter.stdout.readline() == "registered\n"
    emulator.control("add A30", "ecc 0 corrected 5", "ecc 0 uncorrected 2", "pages 0 3 1 1", "ecc 1 uncorrected 4",
                     "rows 1 6 7 1 1")
    assert json.loads(waiter.communicate(timeout=10)[0]) == [2, 0]
    code = """
def pages(g, cause):
    try:
        return len(n.nvmlDeviceGetRetiredPages(g, cause))
    except n.NVMLError as error:
        return -error.value
answer = []
for g in gpu:
    rows = list(n.nvmlDeviceGetRemappedRows(g)) if code_of(n.nvmlDeviceGetRemappedRows, g) == 0 else []
    fields = n.nvmlDeviceGetFieldValues(g, [3, 4, 5, 6, 12, 23, 29, 30, 31, 142, 143, 144, 145])
    answer.append([[[n.nvmlDeviceGetTotalEccErrors(g, kind, counter) for counter in (0, 1)] for kind in (0, 1)],
                   [n.nvmlDeviceGetMemoryErrorCounter(g, 1, 0, place) for place in (0, 2)],
                   [pages(g, 0), pages(g, 1)], rows,
                   [f.value.uiVal if f.nvmlReturn == 0 else None for f in fields], n.nvmlDeviceGetEccMode(g)])
"""
    none = [None]
    assert emulator.ask(code) == [
        [[[5, 5], [2, 2]], [0, 2], [3, 1], [], [5, 2, 5, 2, 2, 2, 3, 1, 1] + none * 4, [1, 1]],
        [[[0, 0], [4, 4]], [0, 4], [-3, -3], [6, 7, 1, 1], [0, 4, 0, 4, 4, 4] + none * 3 + [6, 7, 1, 1], [1, 1]]]
    emulator.control("driver 580.65.06")
    wait_until(lambda: emulator.ask("answer = n.nvmlSystemGetCudaDriverVersion()") == 13000, "the new driver's CUDA")
    assert emulator.ask("answer = [[n.nvmlDeviceGetTotalEccErrors(gpu[1], 1, c) for c in (0, 1)],"
                        "list(n.nvmlDeviceGetRemappedRows(gpu[1]))]") == [[0, 4], [6, 7, 0, 1]]
    emulator.close()


def test_use_is_what_nvml_shows(emulator):
    (emulator.directory / "pod").mkdir()
    os.link(emulator.directory / "gpu-1.sock", emulator.directory / "pod" / "gpu-1.sock")
    child = emulator.workload("--seconds", 30, "--memory-mib", 4096, "--util-milli", 750,
                              directory=emulator.directory / "pod")
    assert emulator.uuids[1] in started(child)
    code = """
answer = []
for g in gpu:
    memory, second = n.nvmlDeviceGetMemoryInfo(g), n.nvmlDeviceGetMemoryInfo(g, n.nvmlMemory_v2)
    rates = n.nvmlDeviceGetUtilizationRates(g)
    samples = n.nvmlDeviceGetProcessUtilization(g, 0) if code_of(n.nvmlDeviceGetProcessUtilization, g, 0) == 0 else []
    answer.append([second.used, memory.used - second.reserved, memory.free + memory.used == memory.total,
                   rates.gpu, rates.memory, n.nvmlDeviceGetPowerUsage(g),
                   [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(g)],
                   [[s.pid, s.smUtil] for s in samples]])
"""
    used = [4096 * MIB, 4096 * MIB, True, 75, 38, 60000 + 340 * 750, [[child.pid, 4096 * MIB]], [[child.pid, 75]]]
    unused = [0, 0, True, 0, 0, 60000, [], []]
    assert emulator.ask(code) == [unused, used]
    child.kill()
    child.wait()
    wait_until(lambda: emulator.ask(code) == [unused, unused], "a killed workload releases its GPU")


def test_terminated_workload_releases_at_once(emulator):
    child = emulator.workload("--seconds", 30, "--gpus", 2)
    started(child)
    begin = time.monotonic()
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=5) == 143
    assert time.monotonic() - begin < 0.1
    assert emulator.ask("answer = [n.nvmlDeviceGetUtilizationRates(g).gpu for g in gpu]") == [0, 0]
    assert emulator.workload("--seconds", "0.05").wait(timeout=5) == 0


def test_workload_is_refused(emulator, capfd):
    assert emulator.workload("--gpus", 3).wait(timeout=5) == 1
    assert emulator.workload("--memory-mib", 81920).wait(timeout=5) == 1
    assert emulator.workload("--util-milli", 1001).wait(timeout=5) == 2
    assert emulator.workload("--gpus", 1, directory="/").wait(timeout=5) == 1
    said = capfd.readouterr().err
    assert "found 2 GPUs" in said and "out of memory, 81320 MiB are free" in said


def test_energy_is_the_integral_of_power(emulator):
    read = "answer = []\nfor g in gpu:\n    answer += [time.monotonic(), n.nvmlDeviceGetTotalEnergyConsumption(g)]"
    child = emulator.workload("--seconds", 30, "--util-milli", 500)
    started(child)
    begin = emulator.ask(read)
    time.sleep(1.5)
    end = emulator.ask(read)
    for i in (0, 2):
        seconds, millijoules = end[i] - begin[i], end[i + 1] - begin[i + 1]
        # 60 W + half of 340 W; the clock is read a little before the counter.
        assert millijoules == pytest.approx(230000 * seconds, rel=0.01)


def test_energy_does_not_depend_on_being_asked(emulator):
    got = emulator.ask("""
def field():
    value = n.nvmlDeviceGetFieldValues(gpu[0], [n.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION])[0]
    return value.value.ullVal
times = []
begin = [n.nvmlDeviceGetTotalEnergyConsumption(g) for g in gpu]
end_at = time.monotonic() + 0.5
while time.monotonic() < end_at:
    times.append(field())
answer = [sorted(times) == times, [n.nvmlDeviceGetTotalEnergyConsumption(g) - b for g, b in zip(gpu, begin)]]
""")
    assert got[0]
    assert got[1][0] == pytest.approx(got[1][1], abs=60 * 20)


def test_driver_change_starts_a_new_count(emulator):
    time.sleep(0.5)
    before = emulator.ask("answer = n.nvmlDeviceGetTotalEnergyConsumption(gpu[0])")
    emulator.control("driver 575.51.03")
    wait_until(lambda: emulator.ask("answer = n.nvmlSystemGetDriverVersion()") == "575.51.03", "the new driver")
    after = emulator.ask("answer = n.nvmlDeviceGetTotalEnergyConsumption(gpu[0])")
    assert before >= 30000 and after < before + 30000


GPM = """
def gpm(take, seconds=0.3):
    samples = [n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()]
    take(samples[0])
    time.sleep(seconds)
    take(samples[1])
    get = n.c_nvmlGpmMetricsGet_t()
    get.version, get.sample1, get.sample2 = n.NVML_GPM_METRICS_GET_VERSION, samples[0], samples[1]
    wanted = [1, 2, 5, 10, 20, 21, 61, 97, 100]
    get.numMetrics = len(wanted)
    for i, number in enumerate(wanted):
        get.metrics[i].metricId = number
    n.nvmlGpmMetricsGet(get)
    for sample in samples:
        n.nvmlGpmSampleFree(sample)
    return [[m.nvmlReturn, None if m.value != m.value else round(m.value, 3)] for m in get.metrics[:len(wanted)]]
"""


def test_profiling_counters_from_hopper_on(tmp_path):
    emulator = Emulator(tmp_path, "H100-SXM5-80GB", 2)
    emulator.control("add T4", "mig 1 on", "mig 1 create 3g.40gb 0")
    wait_until(lambda: len(list(tmp_path.glob("MIG-*.sock"))) == 1, "an instance")
    (tmp_path / "pod").mkdir()
    for name in ("gpu-0.sock", next(tmp_path.glob("MIG-*.sock")).name):
        os.link(tmp_path / name, tmp_path / "pod" / name)
    started(emulator.workload("--seconds", 60, "--util-milli", 600, "--memory-util-milli", 200,
                              directory=tmp_path / "pod"))
    code = GPM + """
answer = [n.nvmlGpmQueryDeviceSupport(g).isSupportedDevice for g in gpu]
answer += [gpm(lambda s: n.nvmlGpmSampleGet(gpu[0], s)), gpm(lambda s: n.nvmlGpmMigSampleGet(gpu[1], 1, s))]
empty = n.nvmlDeviceCreateGpuInstance(gpu[1], 19)
answer.append(gpm(lambda s: n.nvmlGpmMigSampleGet(gpu[1], n.nvmlGpuInstanceGetInfo(empty).id, s))[:2])
one = n.nvmlGpmSampleAlloc()
answer.append([code_of(n.nvmlGpmSampleGet, gpu[2], one), code_of(n.nvmlGpmMigSampleGet, gpu[1], 9, one),
               code_of(n.nvmlGpmSampleFree, one), code_of(n.nvmlGpmSampleFree, one)])
"""
    got = emulator.ask(code)
    emulator.close()
    assert got[:3] == [1, 1, 0]
    link = 26562 * 1e6 / 1024 / 1024 * 0.1 * 0.6
    assert got[3][:6] == [[0, 60], [0, 60], [0, 36], [0, 20], [0, 600], [0, 1200]] and got[3][8][0] == 3
    assert got[3][6][1] == pytest.approx(18 * link, rel=0.01) and got[3][7][1] == pytest.approx(link, rel=0.01)
    assert got[4] == [[0, 60], [0, 60], [0, 36], [0, 20], [0, 600], [0, 1200], [0, 0], [0, 0], [3, 0]]
    assert got[5] == [[0, None], [0, None]]
    assert got[6] == [3, 2, 0, 2]


def test_samples_of_the_last_seconds(emulator):
    started(emulator.workload("--seconds", 60, "--util-milli", 400))
    got = emulator.ask("""
def wait_for(question):
    deadline = time.time() + 30
    while not question() and time.time() < deadline:
        time.sleep(0.05)

answer, last = [], 0
# Some samples since the workload began.
util = n.NVML_GPU_UTILIZATION_SAMPLES
wait_for(lambda: code_of(n.nvmlDeviceGetSamples, gpu[0], util, 0) == 0 and
         [s.sampleValue.uiVal for s in n.nvmlDeviceGetSamples(gpu[0], util, 0)[1][-3:]] == [40] * 3)
for kind in (n.NVML_TOTAL_POWER_SAMPLES, n.NVML_GPU_UTILIZATION_SAMPLES, n.NVML_PROCESSOR_CLK_SAMPLES):
    kind_of_value, samples = n.nvmlDeviceGetSamples(gpu[0], kind, 0)
    times = [s.timeStamp for s in samples]
    last = times[-1]
    answer.append([kind_of_value, samples[-1].sampleValue.uiVal, {b - a for a, b in zip(times, times[1:])} == {167000},
                   abs(times[-1] / 1e6 - time.time()) < 60])
wait_for(lambda: code_of(n.nvmlDeviceGetSamples, gpu[0], 0, last) == 0 and len(n.nvmlDeviceGetSamples(gpu[0], 0, last)[1]) >= 2)
answer.append([len(n.nvmlDeviceGetSamples(gpu[0], 0, last)[1]) >= 2, code_of(n.nvmlDeviceGetSamples, gpu[0], 0, 1 << 60),
               code_of(n.nvmlDeviceGetSamples, gpu[0], 9, 0)])
use = n.nvmlDeviceGetProcessesUtilizationInfo(gpu[0], 0)
details = n.nvmlDeviceGetRunningProcessDetailList(gpu[0], n.nvmlProcessDetailList_v1, 0)
answer.append([[u.smUtil for u in use], [d.usedGpuMemory >> 20 for d in details], use[0].pid == details[0].pid])
""")
    assert got == [[1, 60000 + 340 * 400, True, True], [1, 40, True, True], [1, 1410, True, True],
                   [True, 6, 3], [[40], [1024], True]]


def test_limits_hold_power_and_clocks_down(emulator):
    started(emulator.workload("--seconds", 60, "--util-milli", 1000))
    state = """
answer = [n.nvmlDeviceGetPowerUsage(gpu[0]), n.nvmlDeviceGetPowerManagementLimit(gpu[0]),
          n.nvmlDeviceGetPowerManagementDefaultLimit(gpu[0]), n.nvmlDeviceGetClockInfo(gpu[0], 1),
          n.nvmlDeviceGetCurrentClocksEventReasons(gpu[0]), n.nvmlDeviceGetTemperature(gpu[0], 0) > 90]
"""
    assert emulator.ask(state) == [400000, 400000, 400000, 1410, 0, False]
    assert emulator.ask("""
answer = [code_of(n.nvmlDeviceSetPowerManagementLimit, gpu[0], 99999),
          code_of(n.nvmlDeviceSetPowerManagementLimit, gpu[0], 200000)]
""" + state.replace("answer = [", "answer += [")) == [2, 0, 200000, 200000, 400000, 705, 4, False]
    time.sleep(0.2)
    assert emulator.ask("answer = n.nvmlDeviceGetViolationStatus(gpu[0], 0).violationTime") > 200000000
    assert emulator.ask("""
n.nvmlDeviceSetPowerManagementLimit(gpu[0], 400000)
answer = [code_of(n.nvmlDeviceSetGpuLockedClocks, gpu[0], 300, 1000), code_of(n.nvmlDeviceSetGpuLockedClocks, gpu[0], 9, 9)]
""" + state.replace("answer = [", "answer += [")) == [0, 2, 400000, 400000, 400000, 1000, 2, False]
    emulator.control("temp 0 91", "throttle 0 128")
    wait_until(lambda: emulator.ask(state)[5], "it is hot")
    assert emulator.ask("n.nvmlDeviceResetGpuLockedClocks(gpu[0])\n" + state)[3:] == [705, 8 | 64 | 128, True]
    emulator.control("driver 570.124.06")
    wait_until(lambda: emulator.ask(state) == [400000, 400000, 400000, 1410, 0, False], "a new driver forgets all")


def test_changes_need_a_privileged_user():
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    # Not below pytest's own folder, which others cannot enter.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        emulator = Emulator(pathlib.Path(folder))
        got = emulator.ask("""
os.setuid(65534)
answer = [code_of(n.nvmlDeviceSetMigMode, gpu[0], 1), code_of(n.nvmlDeviceSetPowerManagementLimit, gpu[0], 200000),
          code_of(n.nvmlDeviceSetEccMode, gpu[0], 0), code_of(n.nvmlDeviceGetPowerUsage, gpu[0])]
""")
        emulator.close()
    assert got == [4, 4, 4, 0]


WAITER = """
events = n.nvmlEventSetCreate()
for g in gpu:
    n.nvmlDeviceRegisterEvents(g, n.nvmlEventTypeXidCriticalError, events)
print("registered", flush=True)
answer = []
for i in range({count}):
    data = n.nvmlEventSetWait_v2(events, {timeout})
    answer.append([n.nvmlDeviceGetUUID(data.device), data.eventType, data.eventData, data.gpuInstanceId,
                   data.computeInstanceId])
"""


def test_xids_reach_every_set(emulator):
    waiters = [emulator.child(WAITER.format(count=3, timeout=5000)) for _ in range(2)]
    for waiter in waiters:
        assert waiter.stdout.readline() == "registered\n"
    emulator.control("xid 1 79", "xid 0 94 3 0", "xid 0 13")
    whole = 0xffffffff
    for waiter in waiters:
        assert json.loads(waiter.communicate(timeout=10)[0]) == [
            [emulator.uuids[1], 8, 79, whole, whole], [emulator.uuids[0], 8, 94, 3, 0],
            [emulator.uuids[0], 8, 13, whole, whole]]


def test_waiting_times_out_and_fails_when_told(emulator):
    got = emulator.ask("""
events = n.nvmlEventSetCreate()
begin = time.monotonic()
codes = [code_of(n.nvmlEventSetWait_v2, events, 200)]
answer = [codes, time.monotonic() - begin]
""")
    assert got[0] == [10] and 0.2 <= got[1] < 0.5
    waiter = emulator.child(WAITER.format(count=0, timeout=0) + "answer = code_of(n.nvmlEventSetWait_v2, events, 60000)")
    assert waiter.stdout.readline() == "registered\n"
    emulator.control("wait-error on")
    assert json.loads(waiter.communicate(timeout=10)[0]) == 999


def test_lost_gpu(emulator):
    child = emulator.workload("--seconds", 30, "--gpus", 2)
    started(child)
    code = """
try:
    second = n.nvmlDeviceGetPowerUsage(n.nvmlDeviceGetHandleByIndex(1))
except n.NVMLError as error:
    second = -error.value
answer = [n.nvmlDeviceGetCount(), n.nvmlDeviceGetUtilizationRates(n.nvmlDeviceGetHandleByIndex(0)).gpu, second]
"""
    assert emulator.ask(code, handles=False) == [2, 50, 230000]
    emulator.control("lost 1")
    assert child.wait(timeout=5) == 1
    assert emulator.ask(code, handles=False) == [2, 0, -15]
    assert emulator.workload("--seconds", 0).wait(timeout=5) == 1
    emulator.control("restore 1")
    wait_until(lambda: emulator.ask(code, handles=False) == [2, 0, 60000], "the GPU is back")


def test_held_handle_of_a_lost_gpu(emulator):
    got = emulator.ask("""
before = n.nvmlDeviceGetUUID(gpu[1])
with open(os.environ["GPUAAS_EMU"] + "/control", "a") as control:
    control.write("lost 1\\n")
time.sleep(0.3)
answer = [code_of(f, gpu[1]) for f in (n.nvmlDeviceGetUUID, n.nvmlDeviceGetPowerUsage, n.nvmlDeviceGetFanSpeed,
                                       n.nvmlDeviceGetComputeRunningProcesses)]
answer += [code_of(n.nvmlDeviceGetUUID, gpu[0])]
""")
    assert got == [15, 15, 15, 15, 0]


def test_add_and_remove(emulator):
    code = "answer = [[n.nvmlDeviceGetName(g), n.nvmlDeviceGetMinorNumber(g)] for g in gpu]"
    emulator.control("add L40S", "remove 0")
    want = [["NVIDIA A100-SXM4-80GB", 1], ["NVIDIA L40S", 2]]
    wait_until(lambda: emulator.ask(code) == want, "one GPU left, one came")
    names = {path.name for path in emulator.directory.glob("gpu-*.sock")}
    assert names == {"gpu-1.sock", "gpu-2.sock"}
    emulator.control("restore 0")
    wait_until(lambda: len(emulator.ask(code)) == 3, "it is back")


def test_faults_of_single_calls(emulator):
    emulator.control("slow nvmlDeviceGetTemperature 200000", "error nvmlDeviceGetPowerUsage 999 1",
                     "error nvmlDeviceGetMemoryInfo 20", "hang nvmlDeviceGetUUID 1", "recovery 1 2")
    time.sleep(0.3)
    child = emulator.child("""
begin = time.monotonic()
n.nvmlDeviceGetTemperature(gpu[0], 0)
slow = time.monotonic() - begin
answer = [slow >= 0.2, [code_of(n.nvmlDeviceGetPowerUsage, g) for g in gpu],
          [code_of(n.nvmlDeviceGetMemoryInfo, gpu[0]), code_of(n.nvmlDeviceGetMemoryInfo, gpu[0], n.nvmlMemory_v2)],
          n.nvmlDeviceGetFieldValues(gpu[1], [230])[0].value.uiVal]
hung = threading.Thread(target=lambda: answer.append(n.nvmlDeviceGetUUID(gpu[1])), daemon=True)
hung.start()
hung.join(0.3)
answer += [hung.is_alive(), n.nvmlDeviceGetUUID(gpu[0])]
print("hanging", flush=True)
hung.join(10)
""")
    assert child.stdout.readline() == "hanging\n"
    emulator.control("restore 1")
    got = json.loads(child.communicate(timeout=10)[0])
    assert got == [True, [0, 999], [20, 20], 2, True, emulator.uuids[0], emulator.uuids[1]]


def test_init_fails_when_told_and_without_daemon(emulator):
    emulator.control("initfail on")
    code = "answer = code_of(n.nvmlInit)"
    wait_until(lambda: emulator.ask(code, init=False) == 9, "nvmlInit fails")
    emulator.control("initfail off")
    wait_until(lambda: emulator.ask(code, init=False) == 0, "nvmlInit works again")
    assert emulator.ask("answer = code_of(n.nvmlDeviceGetCount)", init=False) == 1
    assert emulator.stop() == 0
    assert emulator.ask(code, init=False) == 9
    emulator.start()


def test_process_of_nobody(emulator):
    emulator.control(f"process 0 {os.getpid()} 700")
    code = "answer = [[p.pid, p.usedGpuMemory] for p in n.nvmlDeviceGetComputeRunningProcesses(gpu[0])]"
    wait_until(lambda: emulator.ask(code) == [[os.getpid(), 700 * MIB]], "the process is there")
    emulator.control(f"process 0 {os.getpid()} 0")
    wait_until(lambda: emulator.ask(code) == [], "the process is gone")


def test_wrong_lines_are_reported_and_harmless(emulator):
    with open(emulator.directory / "control", "ab") as control:
        control.write(b"explode\nlost 77\nlost 9\n\xff\x00\n" + b"x" * 5000 + b"\nprocess 0 5 999999\nlost 1\n")
    code = "answer = code_of(n.nvmlDeviceGetHandleByIndex, 1)"
    wait_until(lambda: emulator.ask(code, handles=False) == 15, "the line after the wrong ones counts")
    lines = emulator.errors().splitlines()
    assert [re.match(r"line (\d+):", line).group(1) for line in lines] == ["1", "2", "3", "4", "5", "6"]
    assert "unknown command" in lines[0] and "no GPU 9" in lines[2] and "MiB free" in lines[5]


def test_control_file_truncated_and_replaced(emulator):
    code = "answer = [code_of(n.nvmlDeviceGetHandleByIndex, i) for i in range(2)]"
    emulator.control("# a comment so long that the file is longer than what comes after it", "lost 0")
    wait_until(lambda: emulator.ask(code, handles=False) == [15, 0], "appended")
    (emulator.directory / "control").write_text("restore 0\n")
    wait_until(lambda: emulator.ask(code, handles=False) == [0, 0], "truncated")
    (emulator.directory / "control.next").write_text("lost 1\nlost 0\n")
    (emulator.directory / "control.next").rename(emulator.directory / "control")
    wait_until(lambda: emulator.ask(code, handles=False) == [15, 15], "replaced")
    (emulator.directory / "control").unlink()
    emulator.control("restore 0")
    wait_until(lambda: emulator.ask(code, handles=False) == [0, 15], "removed and made again")


def test_restart_is_a_power_cycle(emulator):
    child = emulator.workload("--seconds", 30)
    started(child)
    time.sleep(0.5)
    got = emulator.child("""
answer = [n.nvmlDeviceGetTotalEnergyConsumption(gpu[0])]
print("waiting", flush=True)
while code_of(n.nvmlDeviceGetUUID, gpu[0]) == 0:
    time.sleep(0.01)
answer.append(code_of(n.nvmlDeviceGetUUID, gpu[0]))
end_at = time.monotonic() + 10
while code_of(n.nvmlDeviceGetUUID, gpu[0]) != 0 and time.monotonic() < end_at:
    time.sleep(0.01)
answer.append(n.nvmlDeviceGetTotalEnergyConsumption(gpu[0]))
""")
    assert got.stdout.readline() == "waiting\n"
    emulator.stop(signal.SIGKILL)
    assert child.wait(timeout=5) == 1
    (emulator.directory / "emu.sock").unlink()
    time.sleep(0.2)
    emulator.start()
    before, code, after = json.loads(got.communicate(timeout=15)[0])
    assert code == 999 and before > 50000 and after < before


def test_second_daemon_is_refused(emulator):
    second = subprocess.run([BUILD / "gpuaas-emud", "--dir", emulator.directory], check=False,
                            capture_output=True, text=True)
    assert second.returncode == 5 and "another gpuaas-emud" in second.stderr
    assert emulator.ask("answer = n.nvmlDeviceGetCount()") == 2


def test_foreign_bytes_on_the_sockets(emulator):
    hello = struct.pack("<IIIIQ64s96s", 0x474d5531, 1, 0, 0, 0, b"nvmlInit", b"")
    for name in ("emu.sock", "gpu-0.sock"):
        for message in (b"x", b"\0" * 16, b"\xff" * 184, b"y" * 60000, hello[:-1], hello + b"z"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
                sock.settimeout(5)
                sock.connect(str(emulator.directory / name))
                sock.send(message)
                assert sock.recv(4096) == b"", "a malformed message closes the connection"
    idle = []
    for _ in range(50):
        idle.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        idle[-1].connect(str(emulator.directory / "emu.sock"))
    assert emulator.ask("answer = n.nvmlDeviceGetCount()") == 2
    for sock in idle:
        sock.close()


SWEEP = """
import inspect
tried, answer = [], {}
names = [name for name in dir(n) if name.startswith("nvml") and callable(getattr(n, name))
         and inspect.isfunction(getattr(n, name)) and name not in
         ("nvmlInit", "nvmlInitWithFlags", "nvmlShutdown", "nvmlEventSetFree", "nvmlEventSetWait", "nvmlEventSetWait_v2")]
if not BROAD:
    names = [name for name in names if name.startswith("nvmlDeviceGet")]
for name in names:
    for arguments in ([], [0], [0, 0], [0, 0, 0], [1 << 31]):
        try:
            getattr(n, name)(gpu[0], *arguments)
            answer[name] = 0
            break
        except n.NVMLError as error:
            answer[name] = error.value
            break
        except (TypeError, ValueError, ctypes.ArgumentError, AttributeError, OverflowError):
            continue
"""


def test_sweep_of_getters_never_crashes(emulator):
    got = emulator.ask(f"BROAD = False\n{SWEEP}")
    succeeded = [name for name, code in got.items() if code == 0]
    assert len(got) > 200 and len(succeeded) > 90, (len(got), len(succeeded))
    assert set(got.values()) <= {0, 2, 3, 6, 13, 25}, {k: v for k, v in got.items() if v not in (0, 2, 3, 6, 13, 25)}


def test_sweep_of_everything_never_crashes(emulator):
    got = emulator.ask(f"BROAD = True\n{SWEEP}")
    assert len(got) > 250


def test_foreign_handles_are_refused(emulator):
    got = emulator.ask("""
wrong = [ctypes.cast(ctypes.c_void_p(address), n.c_nvmlDevice_t) for address in (0, 1, 4096, 1 << 47, (1 << 64) - 1)]
sets = [ctypes.cast(ctypes.c_void_p(address), n.c_nvmlEventSet_t) for address in (0, 1, 4096, 1 << 47)]
answer = sorted({code_of(n.nvmlDeviceGetUUID, w) for w in wrong} | {code_of(n.nvmlDeviceGetFanSpeed, w) for w in wrong}
                | {code_of(n.nvmlEventSetWait_v2, s, 0) for s in sets} | {code_of(n.nvmlEventSetFree, s) for s in sets})
events = n.nvmlEventSetCreate()
n.nvmlEventSetFree(events)
answer.append(code_of(n.nvmlEventSetFree, events))
""")
    assert got == [2, 2]


def test_threads_and_fork(emulator):
    got = emulator.ask("""
events = n.nvmlEventSetCreate()
bad = []
def read():
    for i in range(200):
        for index, g in enumerate(gpu):
            if n.nvmlDeviceGetIndex(g) != index:
                bad.append(index)
threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads:
    thread.start()
codes = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        good = n.nvmlDeviceGetIndex(gpu[1]) == 1 and code_of(n.nvmlEventSetWait_v2, events, 0) == 2
        os._exit(0 if good else 1)
    codes.append(os.waitpid(child, 0)[1])
for thread in threads:
    thread.join()
descriptors = len(os.listdir("/proc/self/fd"))
n.nvmlEventSetFree(events)
answer = [bad, codes, descriptors - len(os.listdir("/proc/self/fd"))]
""")
    assert got == [[], [0] * 5, 1]


def test_seeds_make_different_machines():
    made = [subprocess.run([BUILD / "gpuaas-emud", "--make", BOARDS / "L40S.json", "--count", "32", "--seed", seed],
                           check=True, capture_output=True).stdout for seed in ("node1", "node2", "node1")]
    machines = [{gpu["uuid"] for gpu in json.loads(text)["gpus"]} for text in made]
    assert made[0] == made[2] and not machines[0] & machines[1] and len(machines[0]) == 32


@pytest.mark.parametrize("arguments,code", [
    ([], 2), (["--dir"], 2), (["--make", "x", "--count", "0", "--seed", "s"], 2), (["--wrong"], 2),
    (["--dir", "/nowhere"], 1), (["--make", "/nowhere", "--count", "1", "--seed", "s"], 1), (["--help"], 0)])
def test_usage(arguments, code):
    done = subprocess.run([BUILD / "gpuaas-emud", *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == code
    assert (done.stdout if code == 0 else done.stderr) != ""


def test_library_exports_only_nvml():
    library = BUILD / "libnvidia-ml.so.1"
    names = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True)
    exported = {line.split()[-1] for line in names.stdout.splitlines()}
    listed = set(re.findall(r"X\((nvml\w+)\)", (ROOT / "emulator" / "calls.h").read_text()))
    assert exported == listed
    assert library.stat().st_size < 1 << 20
    needed = subprocess.run(["objdump", "-p", library], check=True, capture_output=True, text=True).stdout
    assert re.findall(r"NEEDED\s+(\S+)", needed) == ["libc.so.6"]
    assert re.findall(r"SONAME\s+(\S+)", needed) == ["libnvidia-ml.so.1"]


LAYOUTS = {
    "nvml_memory": "c_nvmlMemory_t", "nvml_memory_v2": "c_nvmlMemory_v2_t", "nvml_utilization": "c_nvmlUtilization_t",
    "nvml_pci_info": "nvmlPciInfo_t", "nvml_process_info": "c_nvmlProcessInfo_v2_t",
    "nvml_process_sample": "c_nvmlProcessUtilizationSample_t", "nvml_event_data": "c_nvmlEventData_t",
    "nvml_field_value": "c_nvmlFieldValue_t", "nvml_bar1_memory": "c_nvmlBAR1Memory_t",
    "nvml_gpm_support": "c_nvmlGpmSupport_t", "nvml_temperature_v1": "c_nvmlTemperature_v1_t",
    "nvml_pci_info_v2": "nvmlPciInfo_v2_t", "nvml_pci_info_ext": "nvmlPciInfoExt_v1_t", "nvml_uuid": "c_nvmlUUID_t",
    "nvml_driver_branch": "c_nvmlSystemDriverBranchInfo_v1_t", "nvml_ecc_counts": "c_nvmlEccErrorCounts_t",
    "nvml_row_remapper_histogram": "c_nvmlRowRemapperHistogramValues",
    "nvml_violation_time": "c_nvmlViolationTime_t", "nvml_fbc_stats": "c_nvmlFBCStats_t",
    "nvml_margin_temperature": "c_nvmlMarginTemperature_v1_t", "nvml_thermal_settings": "c_nvmlGpuThermalSettings_t",
    "nvml_fabric_info_v2": "c_nvmlGpuFabricInfo_v2_t",
    "nvml_fabric_info_v3": "c_nvmlGpuFabricInfo_v3_t", "nvml_placement": "c_nvmlGpuInstancePlacement_t",
    "nvml_gi_profile_info": "c_nvmlGpuInstanceProfileInfo_t", "nvml_gi_info": "c_nvmlGpuInstanceInfo_t",
    "nvml_gi_profile_info_v2": "c_nvmlGpuInstanceProfileInfo_v2_t", "nvml_ci_info": "c_nvmlComputeInstanceInfo_t",
    "nvml_ci_profile_info": "c_nvmlComputeInstanceProfileInfo_t",
    "nvml_ci_profile_info_v2": "c_nvmlComputeInstanceProfileInfo_v2_t",
    "nvml_device_attributes": "c_nvmlDeviceAttributes", "nvml_gpm_metric": "c_nvmlGpmMetric_t",
    "nvml_sample": "c_nvmlSample_t", "nvml_process_use": "c_nvmlProcessUtilizationInfo_v1_t",
    "nvml_processes_use": "c_nvmlProcessesUtilizationInfo_v1_t", "nvml_process_detail": "c_nvmlProcessDetail_v1_t",
    "nvml_process_details": "c_nvmlProcessDetailList_v1_t", "nvml_power_value_v2": "c_nvmlPowerValue_v2_t",
}


def test_layouts_are_those_of_the_bindings():
    import ctypes
    import pynvml
    printed = subprocess.run([BUILD / "nvml-layout"], check=True, capture_output=True, text=True).stdout
    compared = 0
    for line in printed.splitlines():
        name, size, *offsets = line.split()
        binding = getattr(pynvml, LAYOUTS[name])
        assert int(size) == ctypes.sizeof(binding), name
        if offsets:
            assert [int(o) for o in offsets] == [getattr(binding, f[0]).offset for f in binding._fields_], name
        compared += 1
    assert compared == len(LAYOUTS)

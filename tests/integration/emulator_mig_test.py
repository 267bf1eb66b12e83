"""MIG on the emulated library by nvidia-ml-py, unchanged: modes, instances, devices, their files."""
import json
import os
import signal

import pytest

from emulatorkit import MIB, Emulator, started, wait_until

# Makes instances by profile name, with one compute instance over all of each as `nvidia-smi mig -C` does.
MAKE = """
def profiles(g):
    found = {}
    for number in range(18):
        try:
            profile = n.nvmlDeviceGetGpuInstanceProfileInfo(g, number)
            found[profile.name if isinstance(profile.name, str) else profile.name.decode()] = profile
        except n.NVMLError as error:
            assert error.value == 3
    return found
def make(g, name, start=None):
    profile = profiles(g)[name]
    if start is None:
        gi = n.nvmlDeviceCreateGpuInstance(g, profile.id)
    else:
        place = n.c_nvmlGpuInstancePlacement_t(start, 0)
        gi = n.nvmlDeviceCreateGpuInstanceWithPlacement(g, profile.id, ctypes.byref(place))
    return gi, n.nvmlGpuInstanceCreateComputeInstance(gi, {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}[profile.sliceCount])
def placements(call, owner, profile, kind):
    count = ctypes.c_uint(0)
    assert call(owner, profile, None, ctypes.byref(count)) == 0
    array = (kind * count.value)()
    assert call(owner, profile, array, ctypes.byref(count)) == 0
    return [[p.start, p.size] for p in array]
def devices(g):
    found = []
    for index in range(n.nvmlDeviceGetMaxMigDeviceCount(g)):
        try:
            found.append(n.nvmlDeviceGetMigDeviceHandleByIndex(g, index))
        except n.NVMLError as error:
            assert error.value == 6
    return found
"""


@pytest.fixture
def emulator(tmp_path):
    made = Emulator(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("board,names,last", [
    ("A30", ["1g.6gb", "1g.6gb+me", "2g.12gb", "2g.12gb+me", "4g.24gb"], [0, 1, 4, 56, 4, 23344]),
    ("A100-SXM4-40GB", ["1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"],
     [0, 1, 7, 98, 8, 40192]),
    ("H100-SXM5-80GB", ["1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"],
     [0, 1, 7, 132, 8, 81152])])
def test_profiles_are_told_with_the_mode_off(tmp_path, board, names, last):
    emulator = Emulator(tmp_path, board, 1)
    got = emulator.ask(MAKE + """
found = profiles(gpu[0])
whole = max(found.values(), key=lambda p: p.sliceCount)
places = placements(n.nvmlDeviceGetGpuInstancePossiblePlacements, gpu[0], whole.id, n.c_nvmlGpuInstancePlacement_t)
same = n.nvmlDeviceGetGpuInstanceProfileInfoById(gpu[0], whole.id)
answer = [sorted(found), [whole.id, whole.instanceCount, whole.sliceCount, whole.multiprocessorCount, places[0][1],
          whole.memorySizeMB], [same.name == whole.name, len(places)], n.nvmlDeviceGetMigMode(gpu[0]),
          [code_of(n.nvmlDeviceGetGpuInstanceRemainingCapacity, gpu[0], whole.id),
           code_of(n.nvmlDeviceCreateGpuInstance, gpu[0], whole.id)]]
""")
    emulator.close()
    assert got == [sorted(names), last, [True, 1], [0, 0], [3, 3]]


def test_instances_come_and_go(emulator):
    got = emulator.ask(MAKE + """
g = gpu[0]
answer = [n.nvmlDeviceSetMigMode(g, 1), n.nvmlDeviceGetMigMode(g)]
made = [make(g, name) for name in ("1g.10gb", "2g.20gb", "4g.40gb")]
answer.append([[i.id, i.profileId, i.placement.start, i.placement.size]
               for i in (n.nvmlGpuInstanceGetInfo(gi) for gi, _ in made)])
answer.append([code_of(make, g, "1g.10gb"), code_of(make, g, "3g.40gb", 4), code_of(make, g, "3g.40gb", 1)])
answer.append([[n.nvmlDeviceGetName(d), n.nvmlDeviceGetGpuInstanceId(d), n.nvmlDeviceGetComputeInstanceId(d),
                n.nvmlDeviceGetMemoryInfo(d).total // (1 << 20), n.nvmlDeviceIsMigDeviceHandle(d).value,
                n.nvmlDeviceGetIndex(d), n.nvmlDeviceGetIndex(n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(d)),
                n.nvmlDeviceGetUUID(d)[:4], n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByUUID(n.nvmlDeviceGetUUID(d)))
                == n.nvmlDeviceGetUUID(d)] for d in devices(g)])
a = n.nvmlDeviceGetAttributes_v2(devices(g)[0])
answer.append([a.multiprocessorCount, a.sharedCopyEngineCount, a.sharedDecoderCount, a.gpuInstanceSliceCount,
               a.computeInstanceSliceCount, a.memorySizeMB])
answer.append([code_of(n.nvmlGpuInstanceDestroy, made[0][0]), code_of(n.nvmlComputeInstanceDestroy, made[0][1]),
               code_of(n.nvmlGpuInstanceDestroy, made[0][0]), code_of(n.nvmlGpuInstanceDestroy, made[0][0])])
answer.append([code_of(n.nvmlDeviceGetUtilizationRates, g), code_of(n.nvmlDeviceGetPowerUsage, devices(g)[0]),
               len(devices(g)), n.nvmlDeviceIsMigDeviceHandle(g).value])
""")
    name = "NVIDIA A100-SXM4-80GB MIG "
    assert got[:3] == [0, [1, 1], [[13, 19, 6, 1], [5, 14, 4, 2], [1, 5, 0, 4]]]
    assert got[3] == [23, 23, 2]
    assert got[4] == [[name + "4g.40gb", 1, 0, 40192, 1, 0, 0, "MIG-", True],
                      [name + "2g.20gb", 5, 0, 19968, 1, 1, 0, "MIG-", True],
                      [name + "1g.10gb", 13, 0, 9856, 1, 2, 0, "MIG-", True]]
    assert got[5] == [56, 4, 2, 4, 4, 40192]
    assert got[6] == [19, 0, 0, 2]
    assert got[7] == [3, 3, 2, 0]


def test_compute_instances_share_a_gpu_instance(emulator):
    emulator.control("mig 0 on")
    got = emulator.ask(MAKE + """
g = gpu[0]
while n.nvmlDeviceGetMigMode(g) != [1, 1]:
    time.sleep(0.01)
gi = n.nvmlDeviceCreateGpuInstance(g, profiles(g)["3g.40gb"].id)
info = [n.nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, p, 0) for p in range(3)]
answer = [[[i.id, i.sliceCount, i.instanceCount, i.multiprocessorCount, str(i.name)] for i in info],
          code_of(n.nvmlGpuInstanceGetComputeInstanceProfileInfo, gi, 3, 0),
          placements(n.nvmlGpuInstanceGetComputeInstancePossiblePlacements, gi, 0, n.c_nvmlComputeInstancePlacement_t)]
second = n.c_nvmlComputeInstancePlacement_t(2, 1)
one = n.nvmlGpuInstanceCreateComputeInstanceWithPlacement(gi, 0, ctypes.byref(second))
two = n.nvmlGpuInstanceCreateComputeInstance(gi, 1)
answer.append([n.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gi, p) for p in range(3)])
answer.append([[i.id, i.profileId, i.placement.start, i.placement.size]
               for i in map(n.nvmlComputeInstanceGetInfo, (one, two))])
answer.append([n.nvmlDeviceGetName(d).split(" MIG ")[1] for d in devices(g)])
answer.append([code_of(n.nvmlGpuInstanceCreateComputeInstance, gi, 0), code_of(n.nvmlGpuInstanceDestroy, gi)])
""")
    names = ["1c.3g.40gb", "2c.3g.40gb", "3g.40gb"]
    assert [row[:4] for row in got[0]] == [[0, 1, 3, 14], [1, 2, 1, 28], [2, 3, 1, 42]]
    assert all(name in row[4] for name, row in zip(names, got[0]))
    assert got[1:] == [3, [[0, 1], [1, 1], [2, 1]], [0, 0, 0], [[0, 0, 2, 1], [1, 1, 0, 2]], names[:2], [23, 19]]


def test_third_versions_of_profile_structures(emulator):
    """The bindings lack them; other clients use them."""
    got = emulator.ask(MAKE + """
class Gi(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in ("version", "id", "slices", "count", "sms", "ce", "dec", "enc", "jpg", "ofa")] \\
        + [("memory", ctypes.c_ulonglong), ("name", ctypes.c_char * 96), ("capabilities", ctypes.c_uint)]
class Ci(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint) for name in ("version", "id", "slices", "count", "sms", "ce", "dec", "enc", "jpg", "ofa")] \\
        + [("name", ctypes.c_char * 96), ("capabilities", ctypes.c_uint)]
n.nvmlDeviceSetMigMode(gpu[0], 1)
gi, _ = make(gpu[0], "2g.20gb")
a, b = Gi(version=ctypes.sizeof(Gi) | 3 << 24), Ci(version=ctypes.sizeof(Ci) | 3 << 24)
call = n._nvmlGetFunctionPointer
answer = [ctypes.sizeof(Gi), ctypes.sizeof(Ci), call("nvmlDeviceGetGpuInstanceProfileInfoV")(gpu[0], 1, ctypes.byref(a)),
          call("nvmlGpuInstanceGetComputeInstanceProfileInfoV")(gi, 0, 0, ctypes.byref(b)),
          [a.id, a.slices, a.count, a.sms, a.memory, a.name.decode()], [b.id, b.slices, b.count, b.sms, b.name.decode()]]
a.version += 1
answer.append(call("nvmlDeviceGetGpuInstanceProfileInfoV")(gpu[0], 1, ctypes.byref(a)))
""")
    assert got == [152, 140, 0, 0, [14, 2, 3, 28, 19968, "2g.20gb"], [0, 1, 2, 14, "1c.2g.20gb"], 25]


def test_mode_waits_for_the_last_process(emulator):
    child = emulator.workload("--seconds", 60, "--gpus", 2)
    started(child)
    code = "answer = [n.nvmlDeviceGetMigMode(g) for g in gpu]"
    assert emulator.ask("answer = [n.nvmlDeviceSetMigMode(g, 1) for g in gpu]") == [19, 19]
    assert emulator.ask(code) == [[0, 1], [0, 1]]
    child.send_signal(signal.SIGTERM)
    child.wait(timeout=5)
    wait_until(lambda: emulator.ask(code) == [[1, 1], [1, 1]], "MIG mode is on")
    assert emulator.workload("--seconds", 0).wait(timeout=5) == 1, "a GPU in MIG mode takes no workload"


def test_workloads_in_instances(emulator, tmp_path):
    emulator.control("mig 1 on", "mig 1 create 3g.40gb 0", "mig 1 create 1g.10gb 6")
    wait_until(lambda: len(list(emulator.directory.glob("MIG-*.sock"))) == 2, "two instances")
    uuids = emulator.ask(MAKE + "answer = [n.nvmlDeviceGetUUID(d) for d in devices(gpu[1])]")
    pods = []
    for index, uuid in enumerate(uuids):
        pods.append(tmp_path / f"pod{index}")
        pods[-1].mkdir()
        os.link(emulator.directory / f"{uuid}.sock", pods[-1] / f"{uuid}.sock")
    assert emulator.workload("--seconds", 0, "--memory-mib", 9857, directory=pods[1]).wait(timeout=5) == 1
    children = []
    for size, pod, uuid in ((20000, pods[0], uuids[0]), (9856, pods[1], uuids[1])):
        children.append(emulator.workload("--seconds", 60, "--memory-mib", size, "--util-milli", 1000, directory=pod))
        assert uuid in started(children[-1])
    code = MAKE + """
answer = [[[p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId] for p in n.nvmlDeviceGetComputeRunningProcesses(d)]
          for d in [gpu[1]] + devices(gpu[1])]
answer.append([n.nvmlDeviceGetMemoryInfo(d).used // (1 << 20) for d in devices(gpu[1])])
answer.append([n.nvmlDeviceGetPowerUsage(gpu[1]), code_of(n.nvmlDeviceGetProcessUtilization, gpu[1], 0)])
"""
    first, second = [children[0].pid, 20000 * MIB, 1, 0], [children[1].pid, 9856 * MIB, 13, 0]
    # 60 W and four of seven slices of 340 W.
    assert emulator.ask(code) == [[first, second], [first], [second], [20000, 9856], [60000 + 340 * 571, 3]]
    emulator.control("mig 1 destroy 1", "mig 1 destroy 99")
    wait_until(lambda: len(emulator.errors().splitlines()) == 2, "an instance in use stays")
    assert "in use" in emulator.errors()
    children[0].kill()
    children[0].wait()
    emulator.control("mig 1 destroy 1")
    wait_until(lambda: not (emulator.directory / f"{uuids[0]}.sock").exists(), "its socket is gone")
    assert emulator.ask(MAKE + "answer = [n.nvmlDeviceGetUUID(d) for d in devices(gpu[1])]") == [uuids[1]]
    emulator.control("driver 580.65.06")
    assert children[1].wait(timeout=5) == 1, "a new driver ends what runs in instances"
    wait_until(lambda: not list(emulator.directory.glob("MIG-*.sock")), "no instance is left")


def test_state_outlives_clients_and_the_files_follow_it(emulator):
    proc = emulator.directory / "proc" / "driver"
    minors = dict(line.split() for line in (proc / "nvidia-caps" / "mig-minors").read_text().splitlines())
    assert (minors["config"], minors["monitor"]) == ("1", "2")
    assert (minors["gpu0/gi2/access"], minors["gpu0/gi2/ci0/access"], minors["gpu1/gi0/access"]) == ("21", "22", "138")
    made = MAKE + "n.nvmlDeviceSetMigMode(gpu[1], 1)\nmake(gpu[1], '4g.40gb')\nanswer = 0"
    emulator.ask(made)
    mig = proc / "nvidia" / "capabilities" / "gpu1" / "mig"
    for name, key in (("gi1/access", "gpu1/gi1/access"), ("gi1/ci0/access", "gpu1/gi1/ci0/access")):
        assert (mig / name).read_text().splitlines()[0] == f"DeviceFileMinor: {minors[key]}"
    same = "answer = [n.nvmlDeviceGetUUID(d) for d in devices(gpu[1])]"
    before = emulator.ask(MAKE + same)
    assert len(before) == 1 and emulator.ask(MAKE + same) == before
    emulator.control("mig 1 destroy all")
    wait_until(lambda: not (mig / "gi1").exists(), "the files go with the instance")
    emulator.ask(made)
    assert emulator.ask(MAKE + same) == before, "the same place has the same UUID"
    emulator.stop(signal.SIGKILL)
    (emulator.directory / "emu.sock").unlink()
    emulator.start()
    assert not (mig / "gi1").exists(), "a restart is a power cycle"
    numa = emulator.directory / "sys" / "bus" / "pci" / "devices"
    assert [(numa / f"0000:{bus}:00.0" / "numa_node").read_text() for bus in ("1a", "32")] == ["0\n", "1\n"]


def test_an_instance_that_is_gone_has_no_handle(emulator):
    got = emulator.ask(MAKE + """
g = gpu[0]
n.nvmlDeviceSetMigMode(g, 1)
gi, ci = make(g, "2g.20gb")
mig = devices(g)[0]
uuid = n.nvmlDeviceGetUUID(mig)
answer = [n.nvmlDeviceSetMigMode(g, 0), n.nvmlDeviceGetMigMode(g)]
answer.append([code_of(n.nvmlDeviceGetUUID, mig), code_of(n.nvmlGpuInstanceGetInfo, gi),
               code_of(n.nvmlComputeInstanceGetInfo, ci), code_of(n.nvmlDeviceGetHandleByUUID, uuid)])
wrong = [ctypes.cast(ctypes.c_void_p(a), t) for a in (0, 1, 1 << 47) for t in (n.c_nvmlGpuInstance_t, n.c_nvmlComputeInstance_t)]
answer.append(sorted({code_of(n.nvmlGpuInstanceDestroy, w) for w in wrong}
                     | {code_of(n.nvmlComputeInstanceDestroy, w) for w in wrong}))
""")
    assert got == [0, [0, 0], [2, 2, 2, 6], [2]]


def test_events_name_the_instance(emulator):
    emulator.control("mig 0 on", "mig 0 create 1g.10gb 6")
    waiter = emulator.child("""
events = n.nvmlEventSetCreate()
n.nvmlDeviceRegisterEvents(gpu[0], n.nvmlEventTypeXidCriticalError, events)
print("registered", flush=True)
data = n.nvmlEventSetWait_v2(events, 5000)
answer = [n.nvmlDeviceGetIndex(data.device), data.eventData, data.gpuInstanceId, data.computeInstanceId]
""")
    assert waiter.stdout.readline() == "registered\n"
    emulator.control("xid 0 94 13 0")
    assert json.loads(waiter.communicate(timeout=10)[0]) == [0, 94, 13, 0]

"""The programs themselves: start of the command line, size of the images."""
import shutil
import subprocess

from harness import ROOT, Figure, Group, ms


def cli_start(bench):
    run = bench.run([bench.program("gpuaas"), "--version"], repeat=50)
    cpu_s = run["cpu_p50"] * run["cpu_count"] / 1e9
    yield Figure("cli_start_p50", ms(run["wall_p50"]), "ms wall", cpu_s=cpu_s)
    yield Figure("cli_start_p99", ms(run["wall_p99"]), "ms wall", cpu_s=cpu_s)
    yield Figure("cli_start_cpu", ms(run["cpu_p50"]), "ms CPU", cpu_s=cpu_s)
    yield Figure("cli_start_rss", run["rss_kib"] / 1024, "MiB", cpu_s=cpu_s)


def images(bench):
    for name in ("gpuaas-agent", "gpuaas-scheduler", "gpuaas-server", "gpuaas-workload"):
        bench.program(name)
    folder = bench.data / "images"
    subprocess.run([ROOT / "deploy" / "images", bench.build, folder], check=True, stdout=subprocess.DEVNULL)
    for name in ("agent", "scheduler", "server"):
        size = (folder / f"gpuaas-{name}.tar").stat().st_size
        yield Figure(f"image_{name}", size / 2**20, "MiB", note="not compressed, with the C library and all others")
    shutil.rmtree(folder)


GROUPS = [
    Group("cli_start", "gpuaas --version, 50 times", {
        "cli_start_p50": "< 10", "cli_start_p99": "", "cli_start_cpu": "< 10", "cli_start_rss": "< 10"}, cli_start),
    Group("image", "container images of the programs", {
        "image_agent": "<= 15", "image_scheduler": "", "image_server": ""}, images),
]

"""Requests for a MIG device through the server and the command line, without a cluster."""
import json
import subprocess

import pytest
from serverkit import CLI, Server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("mig")).start()
    server.tenant("red", {"gpus": 1})
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def gpuaas(server, tmp_path_factory):
    env = {"HOME": str(tmp_path_factory.mktemp("home")), "PATH": "/usr/bin:/bin"}

    def run(*words, **more):
        return subprocess.run([CLI, *words], env=env, capture_output=True, text=True, check=False, **more)

    assert run("login", "--server", f"https://localhost:{server.port}", "--ca", str(server.folder / "tls.crt"),
               input=server.admin_token + "\n").returncode == 0
    return run


def test_from_the_command_line_to_the_list(server, gpuaas):
    made = gpuaas("request", "create", "--tenant", "red", "--name", "slice", "--mig-profile", "3g.40gb", "--image", "x.y/z:1", "-o", "json")
    assert made.returncode == 0 and json.loads(made.stdout)["spec"]["mig_profile"] == "3g.40gb", made
    table = [line.split() for line in gpuaas("ps", "--tenant", "red").stdout.splitlines()]
    assert "MIG" in table[0] and "3g.40gb" in table[1], table
    assert server.get("/v1/tenants/red").json["usage"]["gpu_milli"] == 428


def test_wrong_ones_name_the_field(server, gpuaas):
    for options, said in ((("--mig-profile", "3g"), "such as 1g.10gb"), (("--mig-profile", "1g.10gb", "--gpus", "1"), "not for several"),
                          (("--mig-profile", "1g.10gb", "--gpu-memory", "1Gi"), "leave it out")):
        done = gpuaas("request", "create", "--tenant", "red", "--image", "x.y/z:1", *options)
        assert done.returncode != 0 and said in done.stderr, (options, done)
    answer = server.post("/v1/tenants/red/requests", {"mig_profile": "1g.10gb.me", "image": "x.y/z:1"})
    assert (answer.status, answer.json["field"]) == (400, "mig_profile")


def test_slices_and_whole_ones_share_the_quota(server, gpuaas):
    assert "refused" not in gpuaas("quota", "check", "--mig-profile", "4g.40gb", "--tenant", "red").stdout
    held = server.post("/v1/tenants/red/requests", {"mig_profile": "4g.40gb", "image": "x.y/z:1"})
    assert held.status == 201, held
    waits = server.post("/v1/quota:check?tenant=red", {"mig_profile": "1g.10gb", "image": "x.y/z:1"}).json
    assert waits["state"] == "waits" and waits["reasons"][0]["code"] == "QuotaExceeded", waits
    assert gpuaas("quota", "check", "--tenant", "red").returncode != 0

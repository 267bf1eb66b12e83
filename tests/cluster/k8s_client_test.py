"""The Kubernetes client of our own against a real API server, see k8s_client_check.c."""
import os
import pathlib
import re
import subprocess

from apiserver import ApiServer

BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build" / "gcc"))


def test_k8s_client(tmp_path):
    program = BUILD / "tests" / "cluster" / "k8s_client_check"
    lines = []
    with ApiServer(tmp_path) as server:
        actions = {"?stop": server.stop, "?start": server.start, "?compact": server.compact}
        with subprocess.Popen([program, server.kubeconfig], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as check:
            for line in check.stdout:
                if line.strip() in actions:
                    actions[line.strip()]()
                    check.stdin.write("done\n")
                    check.stdin.flush()
                else:
                    lines.append(line)
                    print(line, end="", flush=True)
    assert check.returncode == 0, "".join(lines)
    assert re.fullmatch(r"\d+ passed, 0 failed\n", lines[-1])

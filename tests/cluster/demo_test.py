"""The demo beside a cluster that is not its own."""
import os
import pathlib

from conftest import ROOT, run


def test_down_removes_nothing_from_a_cluster_that_the_demo_was_not_installed_on(cluster, tmp_path):
    exported = tmp_path / "kubeconfig"
    exported.write_bytes(pathlib.Path(cluster.kubeconfig).read_bytes())
    before = cluster.kubectl("get", "crd,namespaces", "-o", "name")
    done = run(ROOT / "demo", "--down", check=False, env=dict(os.environ, KUBECONFIG=str(exported)))
    assert done.returncode == 1 and "nothing was removed" in done.stderr, done.stderr
    assert cluster.kubectl("get", "crd,namespaces", "-o", "name") == before and "gpurequests.gpuaas.io" in before

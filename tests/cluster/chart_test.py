"""The chart alone, without a cluster: what it renders, and what it refuses before any program does."""
import pathlib
import subprocess

from apiserver import PROGRAMS

ROOT = pathlib.Path(__file__).resolve().parents[2]


def helm(template, *options):
    return subprocess.run([PROGRAMS / "helm", "template", "gpuaas", ROOT / "deploy/chart/gpuaas", "-n", "gpuaas-system",
                           f"--show-only=templates/{template}.yaml", *options], check=False, capture_output=True, text=True)


def test_exceptions_of_our_own_namespace_come_with_their_value():
    def rules(*options):
        return helm("admission", *options).stdout

    assert "SYS_ADMIN' && variables.isAgent" not in rules() and "hostPID || variables.isAgent" not in rules()
    assert "c.capabilities.add.all(k, k == 'SYS_ADMIN' && variables.isAgent)" in rules("--set", "agent.mig.manage=true")
    assert "!object.spec.hostPID || variables.isAgent" in rules("--set", "agent.attribution=true")
    assert "'/x/y'" in rules("--set", "agent.extraVolumes[0].name=v", "--set", "agent.extraVolumes[0].hostPath.path=/x/y")
    assert "plugins_registry" not in rules() and "plugins_registry" in rules("--set", "agent.mode=dra")


def test_values_that_a_program_would_refuse_are_refused_by_the_chart():
    for option, said in (("agent.config.mig.manage=true", "agent.config.mig: the chart sets this key itself"),
                         ("agent.config.driverProcRoot=/x", "agent.config.driverProcRoot: the chart sets this key itself"),
                         ("server.deadGpus.after=86401s", "/server/deadGpus/after"), ("server.deadGpus.after=25h", "/server/deadGpus/after"),
                         ("server.deadGpus.after=2d", "/server/deadGpus/after"), ("scheduler.policy.base=best", "/scheduler/policy"),
                         ("scheduler.policy.weights.one.frag=1000001", "/scheduler/policy"),
                         ("scheduler.policy.weights.one.luck=1", "/scheduler/policy"),
                         ("scheduler.policy.weights.two.frag=1", "/scheduler/policy")):
        done = helm("scheduler" if "scheduler" in option else "agent", "--set-json" if "policy.weights" in option else "--set", option)
        assert done.returncode != 0 and said in done.stderr, (option, done.stderr)
    for option in ("server.deadGpus.after=86400s", "server.deadGpus.after=1440m", "server.deadGpus.after=24h", "server.deadGpus.after=1d",
                   "server.deadGpus.after=0s"):
        assert helm("server", "--set", option).returncode == 0, option
    policy = helm("scheduler", "--set-json", 'scheduler.policy={"base": "pack", "weights": {"one": {"frag": -1000000, "watts": 7}}}')
    assert "frag: -1000000\n" in policy.stdout, policy
    level = helm("scheduler", "--set-json", 'scheduler.policy={"base": "fgd", "weights": {"one": {"frag": 1}}}')
    assert "/scheduler/policy" in level.stderr

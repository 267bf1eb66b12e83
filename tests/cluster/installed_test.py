"""What a module of tests does to the cluster of all is undone, whatever fails."""
import pytest
from conftest import installed

UNDONE = ["delete namespace x --ignore-not-found", "label away", "install {}"]


class Fake:
    """Notes its calls; those that begin with one of the texts fail."""

    def __init__(self, *bad):
        self.bad, self.calls = bad, []

    def note(self, call):
        self.calls.append(call)
        if call.startswith(self.bad or ("nothing",)):
            raise AssertionError(call)

    def kubectl(self, *arguments):
        self.note(" ".join(arguments))

    def install(self, values=None):
        self.note(f"install {values or {}}")


def use(cluster, has_failed=False):
    with installed(cluster, {"a": 1}, "x") as undo:
        undo.callback(cluster.kubectl, "label", "away")
        cluster.kubectl("label", "it")
        assert not has_failed


@pytest.mark.parametrize("bad", ["label it", "delete namespace", "label away", "install {}"])
def test_a_step_that_fails_keeps_no_other_from_being_undone(bad):
    cluster = Fake(bad)
    with pytest.raises(AssertionError, match=bad):
        use(cluster)
    assert cluster.calls[-3:] == UNDONE


@pytest.mark.parametrize("bad", ["create namespace", "install {'a'"])
def test_a_start_that_fails_is_undone(bad):
    cluster = Fake(bad)
    with pytest.raises(AssertionError, match=bad):
        use(cluster)
    assert cluster.calls[-2:] == [UNDONE[0], UNDONE[2]]


def test_a_test_that_fails_is_undone():
    cluster = Fake()
    with pytest.raises(AssertionError):
        use(cluster, has_failed=True)
    assert cluster.calls[-3:] == UNDONE

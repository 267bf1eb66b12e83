"""The tests of tests/integration/server_test.py once more, with a database of PostgreSQL for each server."""
import importlib.util
import pathlib
import sys

import pytest
from postgres import Postgres, store_class

INTEGRATION = pathlib.Path(__file__).resolve().parents[1] / "integration"
sys.path.insert(0, str(INTEGRATION))
import serverkit  # noqa: E402

FIXTURES = ("server", "member", "stranger", "small_disk")
# What is SQLite's file, or does not meet the store.
LEFT_OUT = ("test_full_disk_under_the_ledger", "test_files_are_nobody_elses", "test_command_line", "test_tampering_is_found",
            "test_a_new_certificate_without_a_restart", "test_refusals_do_not_fill_the_audit_log", "test_rate_limit",
            "test_full_disk_under_the_audit_log", "test_more_tokens_are_no_more_calls")


def load():
    spec = importlib.util.spec_from_file_location("server_test_on_postgres", INTEGRATION / "server_test.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert all(hasattr(module, name) for name in (*FIXTURES, *LEFT_OUT))
    return {name: value for name, value in vars(module).items()
            if name in FIXTURES or (name.startswith("test_") and name not in LEFT_OUT)}


globals().update(load())


@pytest.fixture(scope="module", autouse=True)
def on_postgres():
    postgres, before = Postgres().start(), serverkit.Server.store_class
    serverkit.Server.store_class = store_class(postgres)
    yield
    serverkit.Server.store_class = before
    postgres.remove()

"""PostgreSQL behind src/sql: every statement, the unit tests of all that uses it, kills, a full disk, freezes, a
second program, and gpuaas-server on it."""
import ast
import os
import pathlib
import re
import sqlite3
import subprocess

import pytest

from postgres import Postgres

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc"))
HELM = pathlib.Path(os.environ.get("GPUAAS_CACHE", pathlib.Path.home() / ".cache" / "gpuaas")) / "programs" / "bin" / "helm"
SOURCES = ROOT / "src"
UNIT_TESTS = {"sql/sql_backend_test": [], "store/store_store_test": [],
              "ledger/ledger_intake_test": [ROOT / "tests/golden/billing/worked_day"],
              "ledger/ledger_bill_test": [ROOT / "tests/golden/billing/worked_day"]}
LITERALS = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+')
VERBS = re.compile(r"(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH)\b")
CALL = re.compile(r'\bsql_run\(\s*[\w>.-]+,\s*((?:"(?:[^"\\]|\\.)*"\s*)+|[^,]+)')


@pytest.fixture(scope="module")
def postgres():
    made = Postgres().start()
    yield made
    made.remove()


@pytest.fixture(scope="module")
def unit_runs(postgres):
    """The unit tests of SQL, store and ledger, as SQLite has them; what each printed."""
    url, done = postgres.fresh(), {}
    for name, arguments in UNIT_TESTS.items():
        done[name] = subprocess.run([BUILD / "tests" / "unit" / name, *arguments], check=False, capture_output=True,
                                    text=True, env=dict(os.environ, SQL_TEST_URL=url))
    return done


def test_the_chart_takes_the_url_from_a_secret():
    def render(*more):
        return subprocess.run([HELM, "template", "gpuaas", ROOT / "deploy" / "chart" / "gpuaas", "--show-only",
                               "templates/server.yaml", *more], check=True, capture_output=True, text=True).stdout
    with_secret, without = render("--set", "server.storeSecret=where"), render()
    assert "store: sqlite:" in without and "/etc/gpuaas/store" not in without
    assert "sqlite:" not in with_secret and "store_file: /etc/gpuaas/store/url" in with_secret
    assert "{name: store, secret: {secretName: where, defaultMode: 0440}}" in with_secret


# ---- statements

def literal(text):
    return "".join(ast.literal_eval(part) for part in re.findall(r'"(?:[^"\\]|\\.)*"', text))


def preprocessed():
    """Our sources that hold statements, with macros put in."""
    for path in sorted(SOURCES.rglob("*.c")):
        text = path.read_text(encoding="utf-8")
        if "sql_run(" in text or "struct sql_migration" in text:
            if path.parent.name == "sql" and path.name != "migrate.c":
                continue
            yield path, subprocess.run(["cc", "-E", "-P", "-D_GNU_SOURCE", f"-I{SOURCES}", path], check=True,
                                       capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def statements():
    found = set()
    for _, text in preprocessed():
        found |= {s for s in map(literal, LITERALS.findall(text)) if VERBS.match(s)}
    return found


def test_no_statement_hides(statements):
    """Each is a literal at its call or in a table of migrations; only src/sql speaks to a database."""
    seen = 0
    for path, text in preprocessed():
        for argument in CALL.findall(text):
            seen += 1
            if argument.startswith('"'):
                assert literal(argument) in statements, (path, argument)
            elif "?" in argument:
                assert all(s in statements for s in map(literal, LITERALS.findall(argument))), (path, argument)
            else:
                assert argument.strip() in ("statement", "table", "*s"), (path, argument)
    assert seen > 25 and len(statements) > 40
    for path in SOURCES.rglob("*.[ch]"):
        if path.parent.name != "sql":
            assert not re.search(r"\b(sqlite3_\w+|PQ\w+)\s*\(", path.read_text(encoding="utf-8")), path


def test_every_statement_is_understood(postgres, statements):
    asked = sorted(s for s in statements if not re.match("CREATE|ALTER", s))
    done = subprocess.run([BUILD / "tests" / "cluster" / "sql-check", postgres.fresh("checked")], input="\n".join(asked) + "\n",
                          check=False, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == f"{len(asked)} passed, 0 failed", done.stdout


def test_migrations_make_the_same_tables(postgres, statements, tmp_path):
    path = tmp_path / "store.db"
    for url in (f"sqlite:{path}", postgres.fresh("migrated")):
        for _ in range(2):  # the second finds nothing to do
            subprocess.run([BUILD / "tests" / "cluster" / "sql-check", url], stdin=subprocess.DEVNULL, check=False)
    with sqlite3.connect(path) as store:
        tables = [name for name, in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        ours = {(t, c[1], "bigint" if c[2] == "BIGINT" else "text", bool(c[3]) or bool(c[5]))
                for t in tables for c in store.execute(f"PRAGMA table_info({t})")}
        versions = sorted(map(list, store.execute("SELECT part, version FROM schema_version")))
    rows = postgres.sql("SELECT table_name, column_name, data_type, is_nullable, collation_name FROM information_schema.columns"
                        " WHERE table_schema = 'public' AND table_name <> 'sql_owner'", "migrated").splitlines()
    theirs = {tuple(row.split("|")[:3]) + (row.split("|")[3] == "NO",) for row in rows}
    assert theirs == ours and len(tables) >= 9
    assert all(row.endswith("|C") for row in rows if "|text|" in row), "order must be that of bytes"
    assert [f"{part}|{version}" for part, version in versions] == sorted(
        postgres.sql("SELECT part, version FROM schema_version", "migrated").splitlines())


@pytest.mark.parametrize("name", UNIT_TESTS)
def test_unit(unit_runs, name):
    assert re.search(r"^\d+ passed, 0 failed$", unit_runs[name].stdout, re.MULTILINE), unit_runs[name]


def test_every_statement_ran_with_its_types(postgres, unit_runs, statements):
    """The database's log of the unit tests has each text: none is only believed to work."""
    logged = postgres.log.read_text(encoding="utf-8").replace(' COLLATE "C"', "")
    ran = {re.sub(r"\$(\d+)", r"?\1", text) for text in re.findall(r"LOG:  execute \w+: (.*)", logged)}
    assert statements - ran == set()

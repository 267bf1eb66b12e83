"""A private PostgreSQL: a unix socket in a folder of its own, an unprivileged user, nothing that stays."""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE_S = 30
NOBODY = "nobody"


def programs():
    """The folder of initdb and postgres, which Debian keeps out of PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    assert found, "PostgreSQL is not installed: tools/setup"
    return found[-1].parent


class Postgres:
    """One database cluster; may be killed, stopped, started. PostgreSQL refuses to run as root."""

    def __init__(self, data=None, **settings):
        self.bin = programs()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuaas-pg-"))
        self.data = data or self.folder / "data"
        self.wal = self.folder / "wal"
        self.log = self.folder / "postgres.log"
        self.user = NOBODY if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        if os.getuid() == 0:
            shutil.chown(self.folder, self.user)
        self.process = None
        self._run("initdb", "-D", self.data, "-X", self.wal, "-U", "postgres", "--auth=trust", "-E", "UTF8",
                  "--locale=C.UTF-8", "--no-sync")
        defaults = {"listen_addresses": "''", "unix_socket_directories": f"'{self.folder}'", "log_statement": "all",
                    "log_line_prefix": "'%p '", "max_connections": 20, "shared_buffers": "16MB", "logging_collector": "off",
                    "wal_level": "minimal", "max_wal_senders": 0}
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as conf:
            conf.writelines(f"{key} = {value}\n" for key, value in {**defaults, **settings}.items())

    def _command(self, program, *arguments):
        words = [str(self.bin / program), *map(str, arguments)]
        # setpriv becomes the program, so that signals reach it.
        return ["setpriv", "--reuid", self.user, "--clear-groups", "--", *words] if os.getuid() == 0 else words

    def _run(self, program, *arguments):
        done = subprocess.run(self._command(program, *arguments), check=False, capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def url(self, database="gpuaas", user="postgres", **parameters):
        more = "&".join(f"{k}={v}" for k, v in {"host": self.folder, **parameters}.items())
        return f"postgres://{user}@/{database}?{more}" if "password" not in parameters else \
            f"postgres:///{database}?user={user}&{more}"

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self._command("postgres", "-D", self.data), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, cwd="/")
        deadline = time.monotonic() + PATIENCE_S
        while self.try_sql("SELECT 1", "postgres").returncode != 0:
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            assert time.monotonic() < deadline, "PostgreSQL does not start"
            time.sleep(0.05)
        return self

    def try_sql(self, text, database="gpuaas"):
        return subprocess.run([self.bin / "psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.folder,
                               "-U", "postgres", "-d", database], input=text, check=False, capture_output=True, text=True)

    def sql(self, text, database="gpuaas"):
        done = self.try_sql(text, database)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def fresh(self, database="gpuaas"):
        """An empty database, whatever was there."""
        self.sql(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)", "postgres")
        self.sql(f"CREATE DATABASE {database}", "postgres")
        return self.url(database)

    def processes(self):
        """The postmaster and its children."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def kill(self):
        """Power off: all processes at once, nothing is written any more."""
        victims = self.processes()
        for pid in victims:
            os.kill(pid, signal.SIGSTOP)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        deadline = time.monotonic() + PATIENCE_S
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in victims[1:]):
            assert time.monotonic() < deadline, "a backend does not end"
            time.sleep(0.01)

    def freeze(self, is_frozen):
        for pid in self.processes():
            os.kill(pid, signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=PATIENCE_S)

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder)

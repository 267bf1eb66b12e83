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


def eventually(what, probe, patience_s=PATIENCE_S, pause_s=0.05):
    deadline = time.monotonic() + patience_s
    while not (value := probe()):
        assert time.monotonic() < deadline, f"{what}: not within {patience_s} s"
        time.sleep(pause_s)
    return value


class Namespace:
    """A mount and network namespace that lives until close: a small disk, and addresses of its own."""

    def __init__(self, folder, disk_mib, owner):
        script = f"ip link set lo up && mount -t tmpfs -o size={disk_mib}m,mode=755,uid={owner} tmpfs '{folder}' && " \
                 "echo ready && exec sleep infinity"
        self.process = subprocess.Popen(["unshare", "-m", "-n", "--propagation", "private", "sh", "-c", script],
                                        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert self.process.stdout.readline() == "ready\n", "no right to make a namespace"
        self.enter = ["nsenter", "-t", str(self.process.pid), "-m", "-n", "--"]
        self.root = pathlib.Path(f"/proc/{self.process.pid}/root")

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Postgres:
    """One database cluster; may be killed, stopped, started. PostgreSQL refuses to run as root."""

    def __init__(self, disk_mib=None, **settings):
        self.bin = programs()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuaas-pg-"))
        self.data, self.wal, self.log = self.folder / "disk" / "data", self.folder / "wal", self.folder / "postgres.log"
        self.user = NOBODY if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        self.data.parent.mkdir()
        if os.getuid() == 0:
            shutil.chown(self.folder, self.user)
            shutil.chown(self.data.parent, self.user)
        self.namespace = disk_mib and Namespace(self.data.parent, disk_mib, pwd.getpwnam(self.user).pw_uid)
        self.process = None
        done = subprocess.run(self._command("initdb", "-D", self.data, "-X", self.wal, "-U", "postgres", "--auth=trust",
                                            "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
                              check=False, capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr
        # The kernel outlives each test, so nothing needs to be on the disk itself.
        self.configure({"fsync": "off", "listen_addresses": "''", "unix_socket_directories": f"'{self.folder}'", "log_statement": "all",
                        "log_line_prefix": "'%p '", "max_connections": 20, "shared_buffers": "16MB", "wal_level": "minimal",
                        "max_wal_senders": 0, **settings})

    def path(self, path):
        """Where a path of the database's disk is seen from here."""
        return self.namespace.root / path.relative_to("/") if self.namespace else path

    def configure(self, settings):
        with open(self.path(self.data / "postgresql.conf"), "a", encoding="utf-8") as conf:
            conf.writelines(f"{key} = {value}\n" for key, value in settings.items())

    def _command(self, program, *arguments):
        words = [str(self.bin / program), *map(str, arguments)]
        # Each of these becomes the next, so that signals reach the program.
        user = ["setpriv", "--reuid", self.user, "--clear-groups", "--"] if os.getuid() == 0 else []
        return [*(self.namespace.enter if self.namespace else []), *user, *words]

    def url(self, database="gpuaas", user="postgres", **parameters):
        more = "&".join(f"{k}={v}" for k, v in {"host": self.folder, **parameters}.items())
        return f"postgres:///{database}?user={user}&{more}"

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

    def client(self, program, database, *arguments):
        return [self.bin / program, "-h", self.folder, "-U", "postgres", "-d", database, *arguments]

    def try_sql(self, text, database="gpuaas"):
        return subprocess.run(self.client("psql", database, "-XAtq", "-v", "ON_ERROR_STOP=1"), input=text, check=False,
                              capture_output=True, text=True)

    def sql(self, text, database="gpuaas"):
        done = self.try_sql(text, database)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def fresh(self, database="gpuaas", **parameters):
        """An empty database, whatever was there."""
        self.sql(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)", "postgres")
        self.sql(f"CREATE DATABASE {database}", "postgres")
        return self.url(database, **parameters)

    def processes(self):
        """The postmaster and its children."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def kill(self):
        """All processes at once; what they gave to the kernel stays."""
        victims = self.processes()
        self.freeze(True)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        eventually("the end of all backends", lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in victims))

    def cpu_s(self):
        """Of the postmaster, its children and all that it waited for."""
        ticks = 0
        for pid in self.processes():
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += sum(map(int, fields[11:15] if pid == self.process.pid else fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def freeze(self, is_frozen):
        for pid in self.processes():
            os.kill(pid, signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def end_sessions(self, database="gpuaas"):
        self.sql(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{database}'"
                 " AND pid <> pg_backend_pid()", "postgres")

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=PATIENCE_S)

    def remove(self):
        self.stop()
        if self.namespace:
            self.namespace.close()
        shutil.rmtree(self.folder)


def store_class(postgres):
    """For serverkit.Server: a database of its own for each server."""
    class Store:
        count = 0

        def __init__(self, _folder):
            Store.count += 1
            self.database = f"server{Store.count}"
            self.url = postgres.fresh(self.database)

        def sql(self, text):
            return postgres.sql(text, self.database)

        def content(self):
            return subprocess.run(postgres.client("pg_dump", self.database), check=True, capture_output=True).stdout
    return Store

"""etcd and kube-apiserver alone, on ports of their own, for tests that need no node."""
import base64
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

PROGRAMS = pathlib.Path(os.environ.get("GPUAAS_CACHE", pathlib.Path.home() / ".cache" / "gpuaas")) / "programs" / "bin"
PATIENCE_S = 90


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ApiServer:
    """Two processes in one folder. The API server may be killed and started again; etcd stays."""

    def __init__(self, folder, arguments=()):
        self.folder = pathlib.Path(folder)
        self.arguments = arguments
        self.etcd_port, self.peer_port, self.port = free_port(), free_port(), free_port()
        self.etcd = self.server = None
        self.kubeconfig = self.folder / "kubeconfig"
        (self.folder / "tokens.csv").write_text('admin-token,admin,1,"system:masters"\nanna-token,anna,2\n')
        subprocess.run(["openssl", "genrsa", "-out", self.folder / "sa.key", "2048"], check=True, capture_output=True)

    def __enter__(self):
        self.etcd = self._spawn("etcd", [
            "--data-dir", self.folder / "etcd", "--unsafe-no-fsync",
            "--listen-client-urls", f"http://127.0.0.1:{self.etcd_port}",
            "--advertise-client-urls", f"http://127.0.0.1:{self.etcd_port}",
            "--listen-peer-urls", f"http://127.0.0.1:{self.peer_port}"])
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self._end(self.etcd)

    def _spawn(self, name, arguments):
        log = open(self.folder / f"{name}.log", "ab")  # noqa: SIM115 - the process keeps it
        return subprocess.Popen([PROGRAMS / name, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=log,
                                stderr=log)

    @staticmethod
    def _end(process):
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def start(self):
        self.server = self._spawn("kube-apiserver", [
            "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}", "--secure-port", self.port,
            "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
            "--cert-dir", self.folder / "certs", "--token-auth-file", self.folder / "tokens.csv",
            "--authorization-mode", "RBAC", "--disable-admission-plugins", "ServiceAccount",
            "--service-cluster-ip-range", "10.96.0.0/16", "--service-account-issuer", "https://kubernetes.default.svc",
            "--service-account-signing-key-file", self.folder / "sa.key",
            "--service-account-key-file", self.folder / "sa.key", "--shutdown-delay-duration", "0s",
            *self.arguments])
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_ready():
            assert self.server.poll() is None, (self.folder / "kube-apiserver.log").read_text()[-3000:]
            assert time.monotonic() < deadline, "the API server is not ready"
            time.sleep(0.2)
        certificate = base64.b64encode((self.folder / "certs" / "apiserver.crt").read_bytes()).decode()
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                   "certificate-authority-data": certificate}}],
            "users": [{"name": "u", "user": {"token": "admin-token"}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}]}))

    def stop(self):
        self._end(self.server)

    def _is_ready(self):
        context = ssl._create_unverified_context()
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}/readyz",
                                         headers={"Authorization": "Bearer admin-token"})
        try:
            with urllib.request.urlopen(request, context=context, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def _etcd_call(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def compact(self):
        """etcd forgets every revision but the present one."""
        revision = self._etcd_call("/v3/maintenance/status", {})["header"]["revision"]
        self._etcd_call("/v3/kv/compaction", {"revision": revision, "physical": True})

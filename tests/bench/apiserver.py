"""A real API server with a fresh etcd on 127.0.0.1, without kubelets: nodes are objects."""
import http.client
import json
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import threading
import time

from harness import Process, free_port, program_of, wait_until

TOKEN = "bench"
USER_AGENT = "gpuaas-bench"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gpunodes.gpuaas.io"},
    "spec": {"group": "gpuaas.io", "scope": "Cluster",
             "names": {"plural": "gpunodes", "singular": "gpunode", "kind": "GPUNode"},
             "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                 "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]},
}


class ApiServer:
    def __init__(self):
        etcd, apiserver = program_of("PEER_ETCD", "etcd"), program_of("PEER_KUBE_APISERVER", "kube-apiserver")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpuaas-bench-"))
        self.port, self.etcd, self.api = free_port(), None, None
        try:
            self.make_keys()
            self.start_etcd(etcd)
            self.start_api(apiserver)
        except BaseException:
            self.close()
            raise

    def make_keys(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", "tls.key", "-out", "tls.crt"], cwd=self.folder, check=True, capture_output=True)
        subprocess.run("openssl genrsa -out sa.key 2048 && openssl rsa -in sa.key -pubout -out sa.pub", shell=True,
                       cwd=self.folder, check=True, capture_output=True)
        (self.folder / "tokens.csv").write_text(f'{TOKEN},bench,1,"system:masters"\n')
        (self.folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "clusters": [{"name": "bench", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                       "certificate-authority": str(self.folder / "tls.crt")}}],
            "users": [{"name": "bench", "user": {"token": TOKEN}}]}))
        self.tls = ssl.create_default_context(cafile=self.folder / "tls.crt")

    def start_etcd(self, program):
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.etcd_url = client
        self.etcd = Process(self.folder / "etcd.log", [
            program, "--name", "bench", "--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--log-level", "warn",
            "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"bench={peer}"])

    def start_api(self, program):
        folder = self.folder
        self.api = Process(folder / "api.log", [
            program, "--etcd-servers", self.etcd_url, "--bind-address", "127.0.0.1", "--secure-port", self.port,
            "--service-cluster-ip-range", "10.98.0.0/16", "--tls-cert-file", folder / "tls.crt",
            "--tls-private-key-file", folder / "tls.key", "--token-auth-file", folder / "tokens.csv",
            "--service-account-issuer", "https://bench", "--service-account-signing-key-file", folder / "sa.key",
            "--service-account-key-file", folder / "sa.pub", "--authorization-mode", "RBAC", "--profiling=false",
            "--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition",
            "--max-requests-inflight", "2000", "--max-mutating-requests-inflight", "1000"])
        self.api.require("ready", self.is_ready, 60)

    def is_ready(self):
        try:
            return self.connect().ask("GET", "/readyz", raw=True) == b"ok"
        except (OSError, http.client.HTTPException, RuntimeError):
            return False

    def connect(self):
        return Connection(self)

    def create(self, path, objects, threads=4):
        """Creates all; several connections, because one waits for each answer. When each was asked for."""
        queue, failures, lock, asked = list(reversed(objects)), [], threading.Lock(), {}

        def work():
            try:
                connection = self.connect()
                while True:
                    with lock:
                        if not queue:
                            return
                        thing = queue.pop()
                    asked[thing["metadata"]["name"]] = time.monotonic()
                    connection.ask("POST", path, thing)
            except Exception as error:
                failures.append(error)
        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if failures:
            raise failures[0]
        return asked

    def writes(self):
        """How many requests have changed something since the start."""
        total = 0
        for line in self.connect().ask("GET", "/metrics", raw=True).decode().splitlines():
            if line.startswith("apiserver_request_total{") and any(
                    f'verb="{verb}"' in line for verb in ("POST", "PUT", "PATCH", "APPLY", "DELETE")):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def close(self):
        for process in (self.api, self.etcd):
            if process is not None:
                process.stop()
        shutil.rmtree(self.folder)


class Connection:
    def __init__(self, server):
        self.http = http.client.HTTPSConnection("127.0.0.1", server.port, context=server.tls, timeout=60)

    def ask(self, method, path, thing=None, raw=False):
        headers = {"Authorization": f"Bearer {TOKEN}", "User-Agent": USER_AGENT}
        body = None
        if thing is not None:
            body, headers["Content-Type"] = json.dumps(thing), "application/json"
        self.http.request(method, path, body, headers)
        response = self.http.getresponse()
        data = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {data[:500]!r}")
        return data if raw else json.loads(data)

    def watch(self, path):
        """Events until the connection is closed."""
        self.http.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        response = self.http.getresponse()
        for line in response:
            yield json.loads(line)


def install_gpu_nodes(server):
    server.connect().ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)

    def is_served():
        try:
            server.connect().ask("GET", "/apis/gpuaas.io/v1alpha1/gpunodes")
            return True
        except RuntimeError:
            return False
    wait_until("GPUNode is served", is_served)

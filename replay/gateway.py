"""A small client of the server's API: what a user's own program would be."""
import http.client
import json
import ssl
import threading
import time
import urllib.parse


class Problem(Exception):
    """An answer that is no success; carries the server's problem+json."""

    def __init__(self, status, body):
        self.status = status
        try:
            self.problem = json.loads(body)
        except ValueError:
            self.problem = {"code": "not_json", "detail": body[:200].decode("utf-8", "replace")}
        super().__init__(f"{status} {self.problem.get('code')}: {self.problem.get('detail')}")


class Gateway:
    """One TLS connection a thread. A call that finds the server away is repeated until patience_s
    has passed; POSTs carry an idempotency key, so that a repeated one does nothing twice."""

    def __init__(self, url, ca_file, token, patience_s=60):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.tls = ssl.create_default_context(cafile=ca_file)
        self.token = token
        self.patience_s = patience_s
        self.local = threading.local()

    def as_user(self, token):
        other = Gateway.__new__(Gateway)
        other.__dict__.update(self.__dict__, token=token, local=threading.local())
        return other

    def call(self, method, path, body=None, key=None, accept="application/json"):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Accept": accept}
        if data is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                status, wait_s, answer = self._once(method, path, data, headers)
            except (OSError, http.client.HTTPException):
                self.local.connection = None
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)
                continue
            if status in (429, 502, 503, 504) and time.monotonic() < deadline:
                time.sleep(min(wait_s, 5))
                continue
            if status >= 300:
                raise Problem(status, answer)
            return answer

    def _once(self, method, path, data, headers):
        connection = getattr(self.local, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=30, context=self.tls)
            self.local.connection = connection
        connection.request(method, path, body=data, headers=headers)
        response = connection.getresponse()
        answer = response.read()
        return response.status, float(response.getheader("Retry-After") or 0.5), answer

    def get(self, path):
        return json.loads(self.call("GET", path))

    def post(self, path, body, key=None):
        return json.loads(self.call("POST", path, body, key) or b"{}")

    def pages(self, path):
        """All items of a list, page after page."""
        token, mark = None, "&" if "?" in path else "?"
        while True:
            query = f"{mark}limit=500" + (f"&page_token={urllib.parse.quote(token)}" if token else "")
            page = self.get(path + query)
            yield from page["items"]
            token = page.get("next_page_token")
            if not token:
                return

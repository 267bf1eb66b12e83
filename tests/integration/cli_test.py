"""The command line against a real server without a cluster: login, output, exit codes, secrets."""
import http.server
import json
import os
import pathlib
import socket
import subprocess
import threading
import time
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUAAS_BUILD", ROOT / "build" / "gcc")) / "src"
DAY = ROOT / "tests" / "golden" / "billing" / "worked_day"
PERIOD = ["--from", "2026-02-10T00:00:00Z", "--to", "2026-02-11T00:00:00Z"]
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def token_of(body):
    check, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        digits, check = DIGITS[check % 62] + digits, check // 62
    return f"gpx_{body}{digits}"


ADMIN = token_of("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Installation:
    """A server in its own folder, and the command line logged in to it as the first admin."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.url, self.ca = f"https://localhost:{self.port}", folder / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", folder / "key.pem", "-out", self.ca, "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        (folder / "admin.token").write_text(ADMIN + "\n")
        (folder / "admin.token").chmod(0o600)
        (folder / "server.json").write_text(json.dumps({
            "listen": f"127.0.0.1:{self.port}", "tls": {"cert": str(self.ca), "key": str(folder / "key.pem")},
            "kubernetes": "none", "store": f"sqlite:{folder}/store.db", "audit": {"dir": str(folder / "audit")},
            "bootstrap_admin_token_file": str(folder / "admin.token")}))
        self.log = open(folder / "server.log", "wb")
        self.server = subprocess.Popen([BUILD / "daemons" / "server" / "gpuaas-server", "--config",
                                        folder / "server.json"], stderr=self.log)
        for _ in range(100):
            if b'"serving"' in (folder / "server.log").read_bytes() or self.server.poll() is not None:
                break
            time.sleep(0.1)
        assert self.server.poll() is None, (folder / "server.log").read_text()
        done = self.run("login", "--server", self.url, "--ca", str(self.ca), stdin=ADMIN + "\n")
        assert done.returncode == 0, done.stderr

    def close(self):
        self.server.terminate()
        self.server.wait(timeout=10)
        self.log.close()

    def run(self, *words, stdin="", **environment):
        return subprocess.run([BUILD / "cli" / "gpuaas", *words], input=stdin, text=True, capture_output=True,
                              check=False, env={"PATH": os.environ["PATH"], "HOME": str(self.folder),
                                                "XDG_CONFIG_HOME": str(self.folder / "config"), **environment})

    def out(self, *words, **more):
        done = self.run(*words, **more)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def data(self, *words, **more):
        """Of verbs of one word (whoami, ps) or two; what follows them may end with -- WORDS."""
        verb = 1 if words[0] in ("whoami", "ps") else 2
        return json.loads(self.out(*words[:verb], "-o", "json", *words[verb:], **more))


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    installation = Installation(tmp_path_factory.mktemp("cli"))
    yield installation
    installation.close()


def test_the_saved_login_is_private(here):
    saved = here.folder / "config" / "gpuaas" / "config.json"
    assert saved.stat().st_mode & 0o777 == 0o600 and saved.parent.stat().st_mode & 0o777 == 0o700
    assert here.data("whoami")["role"] == "platform-admin"


def test_a_saved_login_is_used_from_any_folder(here, tmp_path):
    login = [BUILD / "cli" / "gpuaas", "login", "--server", here.url, "--ca", "cert.pem"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    subprocess.run(login, input=ADMIN + "\n", text=True, check=True, capture_output=True, cwd=here.folder,
                   env=environment)
    assert here.run("whoami", XDG_CONFIG_HOME=str(tmp_path)).returncode == 0
    done = here.run("whoami", GPUAAS_CA="/nowhere/ca.crt")
    assert done.returncode != 0 and "CA file /nowhere/ca.crt: No such file or directory" in done.stderr


def test_a_saved_login_that_cannot_be_read_is_said(here, tmp_path):
    (tmp_path / "gpuaas" / "config.json").mkdir(parents=True)
    done = here.run("whoami", XDG_CONFIG_HOME=str(tmp_path))
    assert done.returncode == 2 and "no saved login: " in done.stderr and "config.json" in done.stderr


def test_a_token_is_never_an_argument(here):
    done = here.run("login", "--server", here.url, ADMIN)
    assert done.returncode == 2 and "standard input" in done.stderr
    assert here.run("whoami", "--token", ADMIN).returncode == 2


def test_a_saved_token_goes_to_its_own_server_only(here):
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as other:
        other.settimeout(0.2)
        done = here.run("whoami", "--server", f"http://127.0.0.1:{port}")
        assert done.returncode == 4 and "saved login is for" in done.stderr
        with pytest.raises(TimeoutError):
            other.accept()


def test_a_token_never_goes_in_clear_text(here):
    done = here.run("login", "--server", "http://192.0.2.1:80", stdin=token_of("0" * 30))
    assert done.returncode == 4 and "clear text" in done.stderr


def test_a_wrong_token_does_not_replace_the_good_one(here):
    done = here.run("login", stdin=token_of("0" * 30))
    assert done.returncode == 4 and here.run("whoami").returncode == 0


def test_forms_of_output(here):
    here.out("tenant", "create", "forms", "--gpus", "2", "--display-name", "=Team, \"A\"")
    assert [r["name"] for r in here.data("tenant", "list")] == ["forms"]
    assert here.out("tenant", "list", "-o", "name") == "forms\n"
    table = here.out("tenant", "list").splitlines()
    assert table[0].split()[:2] == ["NAME", "STATE"] and table[1].startswith("forms ")
    assert "\x1b" not in "".join(table)
    rows = here.out("tenant", "list", "-o", "csv").splitlines()
    assert rows[0].startswith("name,") and rows[1].startswith("forms,")
    assert len(here.out("tenant", "list", "--no-headers").splitlines()) == 1
    here.out("tenant", "delete", "forms", "--yes")


class Hostile(http.server.BaseHTTPRequestHandler):
    """Answers every call with control bytes in every text."""
    protocol_version = "HTTP/1.1"
    text = "x\x1b[2J\x9b\x07"
    answer = dict.fromkeys(("id", "user", "role", "tenant", "expires", "token", "state", "message", "tco", "currency",
                            "code", "detail"), text)
    answer |= {"estimate": {"from": text, "to": text}, "reserved": {"node": text, "from": text}, "gpus_without_asset": [text], "by_tenant": {text: {}},
               "reasons": [{"code": text, "next": text}], "items": [{"name": text, "devices": [{"uuid": text}]}]}

    def do_GET(self):  # noqa: N802 - the name is the library's
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps(self.answer, ensure_ascii=False).encode()
        self.send_response(500 if "refused" in self.path else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET

    def log_message(self, *_):
        pass


def test_what_a_server_says_cannot_move_the_cursor(here):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}"
        for code, words in [(0, ["request", "show", "a.b"]), (0, ["explain", "a.b"]), (0, ["bill", "show", *PERIOD]),
                            (0, ["token", "create", "--role", "member"]), (0, ["node", "list"]), (0, ["whoami"]),
                            (1, ["tenant", "show", "refused"])]:
            done = here.run(*words, "--server", url, GPUAAS_TOKEN=token_of("0" * 30))
            said = done.stdout + done.stderr
            assert done.returncode == code and "x?[2J" in said, (words, said)
            assert said.replace("\n", "").isprintable(), (words, said)
        other.shutdown()


EXIT_CODES = [
    (2, []), (2, ["nothing"]), (2, ["tenant", "show"]), (2, ["tenant", "list", "-o", "xml"]), (2, ["ps", "--what"]),
    (2, ["tenant", "delete", "codes"]), (2, ["ps", "--tenant"]), (2, ["token", "list", "--tenant", "a", "--tenant", "b"]),
    (1, ["tenant", "create", "Not_A_Label"]), (3, ["tenant", "show", "absent"]), (3, ["explain", "absent/pod"]),
    (3, ["request", "show", "codes.absent"]), (5, ["tenant", "create", "codes"]),
    (6, ["request", "create", "--tenant", "codes", "--gpus", "3", "--image", "a/b:1"]),
    (0, ["--help"]), (0, ["tenant", "--help"]), (0, ["ps", "--help"]),
]


def test_help_of_a_noun_and_slips_of_the_pen(here):
    known = here.out("tenant", "--help")
    assert "gpuaas tenant set NAME" in known and "gpuaas bill show" not in known
    for words, said in ((("ps", "--stat"), "unknown option --stat; did you mean: --state"),
                        (("request", "create", "--gpu-modle=A100"), "unknown option --gpu-modle; did you mean: --gpu-model"),
                        (("ps", "--" + "x" * 200), "unknown option --" + "x" * 78 + "\n")):
        done = here.run(*words)
        assert done.returncode == 2 and said in done.stderr, done.stderr
        assert f"see: gpuaas {' '.join(w for w in words if w[0] != '-')} --help" in done.stderr


def test_windows(here):
    here.out("tenant", "create", "windy", "--gpus", "4")
    course = {"name": "course", "gpus": 16, "model": "H100", "start": "2099-12-07T08:00:00Z", "end": "2099-12-07T18:00:00Z"}
    text = "course=16:H100@2099-12-07T08:00:00Z/2099-12-07T18:00:00Z"
    here.out("tenant", "set", "windy", "--window", text, "--window", "show=2@2099-12-24T18:00:00Z/2099-12-24T20:00:00Z")
    assert [w["name"] for w in here.data("tenant", "show", "windy")["windows"]] == ["course", "show"]
    table = [line.split() for line in here.out("window", "list", "windy").splitlines()]
    assert table[0] == ["TENANT", "WINDOW", "GPUS", "MODEL", "FROM", "TO"]
    assert table[1] == ["windy", *map(str, (course["name"], 16, "H100", course["start"], course["end"]))] and table[2][1:3] == ["show", "2"]
    here.out("tenant", "set", "windy", "--gpus", "5")
    assert len(here.data("window", "list")) == 2
    here.out("tenant", "set", "windy", "--window", text)
    assert [{k: v for k, v in w.items() if k != "tenant"} for w in here.data("window", "list", "windy")] == [course]
    for wrong, said in (("course", "start is missing"), ("a=x@2099-01-01T00:00:00Z/2099-01-02T00:00:00Z", "gpus"),
                        ("a=0@2099-01-01T00:00:00Z/2099-01-02T00:00:00Z", "1 to 100000"), ("a=1@tomorrow/2099-01-02T00:00:00Z", "start"),
                        ("a=1@2099-01-02T00:00:00Z/2099-01-01T00:00:00Z", "end must be after its start"),
                        ("A_=1@2099-01-01T00:00:00Z/2099-01-02T00:00:00Z", "name")):
        done = here.run("tenant", "set", "windy", "--window", wrong)
        assert done.returncode == 1 and said in done.stderr, (wrong, done.stderr)
    many = [w for i in range(33) for w in ("--window", f"w{i}=1@2099-01-01T00:00:00Z/2099-01-02T00:00:00Z")]
    assert "32" in here.run("tenant", "set", "windy", *many).stderr
    here.out("tenant", "set", "windy", "--no-windows")
    assert here.data("window", "list", "windy") == []
    assert here.run("window", "list", "nobody").returncode == 3
    words = ("window", "create", "windy", "course", "--gpus", "16", "--model", "H100", "--from", course["start"], "--to", course["end"])
    assert here.data(*words) == {**course, "tenant": "windy"} == here.data("window", "list", "windy")[0]
    for code, wrong, said in ((5, (*words[:5], "1", *words[6:]), "another window"), (2, words[:3], "want a tenant"),
                              (3, (*words[:2], "nobody", *words[3:]), "no such tenant"), (2, words[:6], "want --gpus, --from and --to"),
                              (1, (*words[:5], "x", *words[6:]), "gpus"), (3, ("window", "delete", "windy", "show"), "no window")):
        done = here.run(*wrong)
        assert done.returncode == code and said in done.stderr, (wrong, done.stderr)
    here.out("window", "delete", "windy", "course")
    assert here.data("window", "list", "windy") == []


def test_exit_codes(here):
    here.out("tenant", "create", "codes", "--gpus", "2")
    for code, words in EXIT_CODES:
        done = here.run(*words)
        assert done.returncode == code, (words, done.returncode, done.stderr)
        assert bool(done.stdout) == (code == 0), words
        assert bool(done.stderr) == (code != 0), words
    assert here.run("ps", GPUAAS_TOKEN="gpx_nothing").returncode == 4
    assert here.run("ps", "--server", "https://localhost:1", GPUAAS_TOKEN="gpx_nothing").returncode == 8
    here.out("tenant", "delete", "codes", "--yes")


def test_a_members_day(here):
    here.out("tenant", "create", "day", "--gpus", "2")
    here.out("tenant", "add-member", "day", "ann")
    made = here.data("token", "create", "--role", "member", "--user", "ann", "--tenant", "day", "--expires-in", "1h")
    ann = {"GPUAAS_TOKEN": made["token"]}
    created = here.data("request", "create", "--gpus", "1", "--image", "a/b:1", "--name", "job", "--env", "A=b=c",
                        "--", "--seconds", "5", **ann)
    assert (created["id"], created["spec"]["args"]) == ("day.job", ["--seconds", "5"])
    assert here.data("ps", **ann)[0]["id"] == "day.job"
    gang = ("request", "create", "--gpus", "1", "--gang", "2", "--image", "a/b:1", "--name", "gang")
    assert here.data(*gang, **ann)["spec"]["gang"] == 2
    assert "gang" in here.out("ps", **ann) and "PODS" in here.out("ps", **ann)
    assert "refused" in here.out("quota", "check", "--gpus", "1", "--gang", "3", **ann)
    here.out("cancel", "day.gang", **ann)
    assert "NoCluster" in here.out("explain", "day.job", **ann)
    assert here.run("logs", "day.job", **ann).returncode == 5
    here.out("cancel", "day.job", **ann)
    assert here.data("request", "show", "day.job", **ann)["state"] == "Cancelled"
    assert here.run("tenant", "create", "other", **ann).returncode == 4
    here.out("token", "revoke", made["id"])
    assert here.run("ps", **ann).returncode == 4
    assert made["token"] not in here.out("token", "list", "-o", "json")
    assert made["token"] not in (here.folder / "server.log").read_text()


def test_bill_and_documents(here):
    for kind in ("assets", "prices", "pools"):
        here.out("bill", "document", kind, "-f", str(DAY / f"{kind}.json"))
        assert here.data("bill", "document", kind) == json.loads((DAY / f"{kind}.json").read_text())
    answer = here.data("bill", "show", *PERIOD)
    assert answer["by_tenant"] == {"~unallocated": {"capacity": "144", "energy": "0", "shared": "21", "total": "165"}}
    assert answer["conservation"]["difference"] == "0"
    table = here.out("bill", "show", *PERIOD)
    assert "total cost of ownership: 165 EUR" in table and "difference 0" in table
    assert "144.000000000" in table and "165.000000000" in table
    assert here.out("bill", "show", *PERIOD, "-o", "csv").splitlines()[-1].startswith(PERIOD[1])
    assert here.run("bill", "show", "--from", PERIOD[1]).returncode == 2
    # What will be used is no part of a bill.
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    until = here.data("bill", "show", "--from", PERIOD[1], "--to", "2999-01-01T00:00:00Z")["to"]
    assert before <= until <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    later = here.run("bill", "show", "--from", "2998-01-01T00:00:00Z", "--to", "2999-01-01T00:00:00Z")
    assert later.returncode != 0 and "from must not lie in the future" in later.stderr
    assert here.run("bill", "document", "rents").returncode == 2


def test_audit_verify(here):
    checkpoint, files = here.folder / "checkpoint.json", sorted((here.folder / "audit").glob("*.jsonl"))
    checkpoint.write_text(here.out("audit", "export", "--checkpoint"))
    words = ["audit", "verify", *(w for f in files for w in ("--file", str(f)))]
    assert "the chain is whole" in here.out(*words, "--checkpoint", str(checkpoint))
    key = json.loads(checkpoint.read_text())["public_key"]
    not_pinned = here.run(*words, "--checkpoint", str(checkpoint))
    assert "not pinned" in not_pinned.stderr and key in not_pinned.stderr
    pinned = here.run(*words, "--checkpoint", str(checkpoint), "--key", key)
    assert (pinned.returncode, pinned.stderr) == (0, "")
    other = here.run(*words, "--checkpoint", str(checkpoint), "--key", key[::-1])
    assert other.returncode == 9 and "checkpoint: " in other.stdout and "another key" in other.stdout
    assert here.run(*words, "--checkpoint", str(checkpoint), "--key", key[1:]).returncode == 2
    assert here.run(*words, "--key", key).returncode == 2
    cut = here.folder / "cut.jsonl"
    cut.write_text("".join(files[0].read_text().splitlines(keepends=True)[:-2]))
    assert here.run("audit", "verify", "--file", str(cut), "--checkpoint", str(checkpoint)).returncode == 9
    changed = here.folder / "changed.jsonl"
    changed.write_text(files[0].read_text().replace('"actor":"admin"', '"actor":"nobody"', 1))
    done = here.run("audit", "verify", "--file", str(changed))
    assert done.returncode == 9 and "first bad record: " in done.stdout

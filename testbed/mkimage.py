#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a container image (an OCI archive) from plain files, without a container engine.

For every ELF file the shared libraries it needs come along, with the dynamic loader. The same
input gives the same bytes: entries are sorted, times are 0, owners are root.

  mkimage.py --name testbed.local/tool:1 --out tool.tar --entrypoint /bin/tool build/tool=/bin/tool

The tag in --name is what pods write in `image:`; its first part needs a dot, or the runtime takes
it for a name on a public registry.
"""
import argparse
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class ImageError(Exception):
    """A problem of the input, told to the user in one line."""


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries_of(path):
    """The libraries of an ELF file as {place in the image: file here}; none if it is static."""
    found = {}
    result = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return found
    for line in result.stdout.splitlines():
        left, arrow, right = line.strip().partition(" => ")
        if right.startswith("not found"):
            raise ImageError(f"{path} needs {left}, which is not found; is its package installed?")
        name = (right if arrow else left).split(" (")[0].strip()
        if not name.startswith("/"):
            continue
        # A library from a build folder goes where the loader looks without being told.
        place = name if name.startswith(SYSTEM_FOLDERS) else "/usr/lib/" + os.path.basename(name)
        found[place] = name
    return found


class Tree:
    """The files of an image: path without leading slash -> (tar entry, bytes)."""

    def __init__(self):
        self.entries = {}

    def add(self, place, kind, mode, data=b"", target=""):
        path = os.path.normpath(place).strip("/")
        if path in ("", ".") or path.startswith(".."):
            raise ImageError(f"'{place}' is no path inside an image")
        parent = os.path.dirname(path)
        if parent and parent not in self.entries:
            self.add(parent, tarfile.DIRTYPE, 0o755)
        old = self.entries.get(path)
        if old is not None and old[0].type != kind:
            raise ImageError(f"/{path} is named twice, as different things")
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.size, info.linkname = kind, mode, len(data), target
        self.entries[path] = (info, data)

    def add_file(self, source, place, with_libraries=True):
        if not os.path.isfile(source):
            raise ImageError(f"{source}: no such file")
        with open(source, "rb") as file:
            data = file.read()
        mode = 0o755 if os.access(source, os.X_OK) else 0o644
        self.add(place, tarfile.REGTYPE, mode, data)
        if with_libraries and is_elf(source):
            for library, file_here in sorted(libraries_of(source).items()):
                self.add_file(file_here, library, with_libraries=False)

    def add_folder(self, source, place):
        for folder, _, files in os.walk(source):
            for name in files:
                full = os.path.join(folder, name)
                self.add_file(full, os.path.join(place, os.path.relpath(full, source)))

    def layer(self):
        return tar_bytes(self.entries[path] for path in sorted(self.entries))


def tar_bytes(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def to_json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def descriptor(media_type, data, **more):
    return {"mediaType": media_type, "digest": digest(data), "size": len(data), **more}


def image_config(args, layer):
    process = {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", *args.env]}
    if args.entrypoint:
        process["Entrypoint"] = args.entrypoint
    for key, value in (("Cmd", args.cmd), ("User", args.user), ("WorkingDir", args.workdir)):
        if value:
            process[key] = value
    machine = os.uname().machine
    return {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": process,
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
    }


def archive(name, config, layer):
    manifest = to_json({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, config),
        "layers": [descriptor(LAYER, layer)],
    })
    tag = name.rpartition(":")[2]
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
    index = to_json({"schemaVersion": 2,
                     "manifests": [descriptor(MANIFEST, manifest, annotations=names)]})
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
    for blob in (config, layer, manifest):
        files["blobs/sha256/" + digest(blob).partition(":")[2]] = blob
    entries = []
    for path in sorted(files):
        info = tarfile.TarInfo(path)
        info.size, info.mode = len(files[path]), 0o644
        entries.append((info, files[path]))
    return tar_bytes(entries)


def build(args):
    host, _, rest = args.name.partition("/")
    if "." not in host or ":" not in rest:
        raise ImageError(f"--name {args.name}: want host.with.dot/name:tag")
    tree = Tree()
    for item in args.files:
        source, equals, place = item.partition("=")
        if not equals or not place.startswith("/"):
            raise ImageError(f"'{item}': want FILE=/PLACE")
        add = tree.add_folder if os.path.isdir(source) else tree.add_file
        add(source, place)
    for item in args.symlink:
        place, equals, target = item.partition("=")
        if not equals:
            raise ImageError(f"--symlink {item}: want /PLACE=TARGET")
        tree.add(place, tarfile.SYMTYPE, 0o777, target=target)
    for place in args.dir:
        tree.add(place, tarfile.DIRTYPE, 0o1777 if place.rstrip("/") == "/tmp" else 0o755)
    layer = tree.layer()
    return archive(args.name, to_json(image_config(args, layer)), layer)


def parse(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True, help="host.with.dot/name:tag")
    parser.add_argument("--out", required=True, help="the archive to write")
    parser.add_argument("--entrypoint", action="append", default=[], help="once per word")
    parser.add_argument("--cmd", action="append", default=[], help="once per word")
    parser.add_argument("--user", default="", help="uid or uid:gid")
    parser.add_argument("--workdir", default="")
    parser.add_argument("--env", action="append", default=[], help="KEY=VALUE")
    parser.add_argument("--symlink", action="append", default=[], help="/PLACE=TARGET")
    parser.add_argument("--dir", action="append", default=[], help="an empty folder")
    parser.add_argument("files", nargs="*", metavar="FILE=/PLACE", help="a file or a folder")
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    try:
        data = build(args)
        temporary = f"{args.out}.{os.getpid()}"
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, args.out)
    except (ImageError, OSError) as error:
        print(f"mkimage: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

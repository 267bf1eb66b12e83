#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joins OCI archives that mkimage.py wrote into one, which a runtime takes in one call.

  bundle.py OUT.tar ARCHIVE.tar...
"""
import io
import json
import sys
import tarfile


def join(out, archives):
    manifests, seen = [], set()
    with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as bundle:
        for archive in archives:
            with tarfile.open(archive) as one:
                manifests += json.load(one.extractfile("index.json"))["manifests"]
                for entry in one:
                    if entry.name != "index.json" and entry.name not in seen:
                        seen.add(entry.name)
                        bundle.addfile(entry, one.extractfile(entry))
        index = json.dumps({"schemaVersion": 2, "manifests": manifests}).encode()
        entry = tarfile.TarInfo("index.json")
        entry.size, entry.mode = len(index), 0o644
        bundle.addfile(entry, io.BytesIO(index))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        join(sys.argv[1], sys.argv[2:])
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        sys.exit(f"bundle: {error}")

#!/usr/bin/env python3
"""Lists a landfall bundle, or writes one blob of it to stdout, by docs/bundle-format.md alone.

    read-bundle.py BUNDLE            list entries
    read-bundle.py BUNDLE DIGEST     write that blob
    read-bundle.py BUNDLE index      write the contents index
    read-bundle.py BUNDLE signature  write the signature over it

BUNDLE is the file, or the name of volumes BUNDLE.0001, BUNDLE.0002, … without the number.

Needs Python's standard library and the `zstd` command.
"""
import glob
import hashlib
import json
import os
import subprocess
import sys

CHUNK, BLOCK = 1 << 20, 128 << 10


def stored(size):
    """File bytes of `size` content bytes in stored frames."""
    one = lambda n: 14 + 3 * max(1, -(-n // BLOCK)) + n
    return size // CHUNK * one(CHUNK) + (one(size % CHUNK) if size % CHUNK else 0)


class Joined:
    """The bytes of some files, one after the other."""

    def __init__(self, paths):
        self.files = [open(path, "rb") for path in paths]

    def read(self, offset, length):
        data = b""
        for file in self.files:
            size = os.fstat(file.fileno()).st_size
            if offset < size and len(data) < length:
                file.seek(offset)
                data += file.read(length - len(data))
            offset = max(0, offset - size)
        return data


def read(file, offset, length):
    data = file.read(offset, length)
    if len(data) != length:
        sys.exit(f"the file ends before byte {offset + length}")
    return data


def content(frames):
    return subprocess.run(["zstd", "-dcq"], input=frames, stdout=subprocess.PIPE, check=True).stdout


def check(data, sha256, what):
    if hashlib.sha256(data).hexdigest() != sha256:
        sys.exit(f"{what} is damaged")
    return data


def locator(file):
    """Walks over the tar headers at the front. Their frames are stored, so lengths follow from sizes."""
    offset = 0
    while True:
        header = content(read(file, offset, stored(512)))
        name, size = header[:100].rstrip(b"\0").decode(), int(header[124:135], 8)
        offset += stored(512)
        if name == "landfall-locator":
            lines = content(read(file, offset, stored(size))).decode().splitlines()
            if lines[0] != "landfall bundle 1":
                sys.exit(f"this script does not know '{lines[0]}'")
            return dict(line.split() for line in lines[1:])
        offset += stored(size) + stored(-size % 512)


def contents(file):
    where = locator(file)
    frames = read(file, int(where["offset"]), int(where["length"]))
    index = content(check(frames, where["frames"], "the contents index"))
    check(index, where["sha256"], "the contents index")
    if set(json.loads(index)["requires"]) - {"delta"}:
        sys.exit(f"this script does not know {json.loads(index)['requires']}")
    return where, index


def signature(file, where):
    """The entry after the index and its padding, if it is one."""
    size = int(where["size"])
    offset = int(where["offset"]) + int(where["length"]) + stored(-size % 512)
    header = read(file, offset, stored(512))
    if int.from_bytes(header[6:10], "little") != 512:  # the end of the tar is longer
        sys.exit("it is not signed")
    header = content(header)
    if header[:100].rstrip(b"\0") != b"landfall-contents.json.sig":
        sys.exit("it is not signed")
    size = int(header[124:135], 8)
    return content(read(file, offset + stored(512), stored(size)))


def blob(file, entry):
    offset, out = entry["offset"], hashlib.new(entry["digest"].split(":")[0])
    for number, (length, sha256) in enumerate(entry["frames"]):
        # the first frame is the tar header, then one a MiB begun, then the padding
        if 0 < number <= -(-entry["size"] // CHUNK):
            data = content(check(read(file, offset, length), sha256, f"{entry['name']} at byte {offset}"))
            out.update(data)
            sys.stdout.buffer.write(data)
        offset += length
    if out.hexdigest() != entry["digest"].split(":")[1]:
        sys.exit(f"{entry['name']} does not have its digest")


name = sys.argv[1]
bundle = Joined([name] if os.path.exists(name) else sorted(glob.glob(glob.escape(name) + ".0[0-9][0-9][0-9]")))
where, text = contents(bundle)
digest, index = where["sha256"], json.loads(text)
if sys.argv[2:] == ["index"]:
    sys.stdout.buffer.write(text)
elif sys.argv[2:] == ["signature"]:
    sys.stdout.buffer.write(signature(bundle, where))
elif len(sys.argv) > 2:
    wanted = [entry for entry in index["entries"] if entry["digest"] == sys.argv[2]]
    left_out = any(other["digest"] == sys.argv[2] for other in index.get("omitted", []))
    blob(bundle, wanted[0]) if wanted else sys.exit(f"{sys.argv[2]} is {'left out' if left_out else 'not there'}")
else:
    print(f"bundle digest sha256:{digest}, packed by landfall {index['landfall']}")
    for entry in index["entries"]:
        print(f"{entry['size']:>12} {entry['form']:<10} {entry['name']}")
    for other in index.get("omitted", []):
        print(f"{other['size']:>12} {'left out':<10} {other['digest']}")
    for base in index.get("bases", []):
        print(f"needs {base['kind']} {base.get('digest', base['lock'])}")

#!/usr/bin/env python3
"""Lists a landfall bundle, or writes a part of it to stdout. Written from docs/reference/bundle-format.md only.

    read-bundle.py BUNDLE              list entries
    read-bundle.py BUNDLE DIGEST       write that blob
    read-bundle.py BUNDLE index        write the contents index
    read-bundle.py BUNDLE signatures   write its signatures
    read-bundle.py BUNDLE check        verify the hash of every frame of every entry

BUNDLE is the file, or the name of volumes BUNDLE.0001, BUNDLE.0002, … without the number.

Needs Python's standard library and the `zstd` command.
"""
import glob
import hashlib
import json
import os
import subprocess
import sys

CHUNK, BLOCK, FOOTER, ROW = 1 << 20, 128 << 10, 354, 40
MAGIC = bytes.fromhex("5c2a4d18")


def stored(size):
    """File bytes of `size` content bytes in stored frames."""
    one = lambda n: 14 + 3 * max(1, -(-n // BLOCK)) + n
    return size // CHUNK * one(CHUNK) + (one(size % CHUNK) if size % CHUNK else 0)


class Joined:
    """The bytes of some files, one after the other."""

    def __init__(self, paths):
        self.files = [open(path, "rb") for path in paths]
        self.size = sum(os.fstat(file.fileno()).st_size for file in self.files)

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
    data = file.read(offset, length) if offset >= 0 else b""
    if len(data) != length:
        sys.exit("the file is too short")
    return data


def raw(frame):
    """The content of a stored frame."""
    out, at, last = b"", 10, False
    while not last:
        head = int.from_bytes(frame[at : at + 3], "little")
        last, length = head & 1, head >> 3
        out += frame[at + 3 : at + 3 + length]
        at += 3 + length
    return out


def content(form, frames):
    if form == "stored":
        return raw(frames)
    return subprocess.run(["zstd", "-dcq"], input=frames, stdout=subprocess.PIPE, check=True).stdout


def check(data, sha256, what):
    if hashlib.sha256(data).hexdigest() != sha256:
        sys.exit(f"{what} is damaged")
    return data


def skippable(data):
    if data[:4] != MAGIC or int.from_bytes(data[4:8], "little") != len(data) - 8:
        sys.exit("this is no landfall bundle, or not all of one")
    return data[8:].decode()


class Bundle:
    def __init__(self, file):
        self.file = file
        lines = skippable(read(file, file.size - FOOTER, FOOTER)).splitlines()
        if lines[0] != "landfall bundle 1":
            sys.exit(f"this script does not know '{lines[0]}'")
        footer = dict(line.split() for line in lines[1:])
        self.digest, self.signed = footer["sha256"], (int(footer["signed"]), footer["sigs"])
        frames = read(file, int(footer["offset"]), int(footer["length"]))
        check(frames, footer["frames"], "the contents index")
        self.text = check(content("compressed", frames), self.digest, "the contents index")
        self.index = json.loads(self.text)
        if set(self.index["requires"]) - {"delta"}:
            sys.exit(f"this script does not know {self.index['requires']}")
        self.pieces = {}

    def signatures(self):
        length, sha256 = self.signed
        if length == 0:
            sys.exit("it is not signed")
        frame = read(self.file, self.file.size - FOOTER - length, length)
        return skippable(check(frame, sha256, "the list of signatures"))[1:]

    def table(self, at, length):
        """These bytes of the frame table."""
        table, out = self.index["frames"], b""
        while length:
            number, start = at // CHUNK, at % CHUNK
            if number not in self.pieces:
                size = min(CHUNK, table["size"] - number * CHUNK)
                offset = table["offset"] + stored(512) + stored(number * CHUNK)
                frame = read(self.file, offset, stored(size))
                self.pieces = {number: raw(check(frame, table["hashes"][1 + number], "the frame table"))}
            piece = self.pieces[number][start : start + length]
            out, at, length = out + piece, at + len(piece), length - len(piece)
        return out

    def frames(self, entry):
        """Offset, length and SHA-256 of each frame of an entry."""
        count = 1 + -(-entry["size"] // CHUNK) + (entry["size"] % 512 > 0)
        rows = self.table(entry["frame"] * ROW, count * ROW)
        rows = [rows[at : at + ROW] for at in range(0, len(rows), ROW)]
        offsets = [int.from_bytes(row[:8], "little") for row in rows] + [entry["offset"] + entry["length"]]
        return [(here, there - here, row[8:].hex()) for here, there, row in zip(offsets, offsets[1:], rows)]

    def blob(self, entry, write):
        out = hashlib.new(entry["digest"].split(":")[0])
        for number, (offset, length, sha256) in enumerate(self.frames(entry)):
            data = check(read(self.file, offset, length), sha256, f"{entry['name']} at byte {offset}")
            # the first frame is the tar header, then one per MiB or part of it, then the padding
            if 0 < number <= -(-entry["size"] // CHUNK):
                data = content(entry["form"], data)
                out.update(data)
                write(data)
        if out.hexdigest() != entry["digest"].split(":")[1]:
            sys.exit(f"{entry['name']} does not have its digest")


name = sys.argv[1]
paths = [name] if os.path.exists(name) else sorted(glob.glob(glob.escape(name) + ".0[0-9][0-9][0-9]"))
bundle = Bundle(Joined(paths))
index, out = bundle.index, sys.stdout.buffer
wanted = sys.argv[2] if len(sys.argv) > 2 else None
if wanted == "index":
    out.write(bundle.text)
elif wanted == "signatures":
    out.write(bundle.signatures().encode())
elif wanted == "check":
    for entry in index["entries"]:
        bundle.blob(entry, lambda data: None)
    print(f"{len(index['entries'])} entries are good")
elif wanted:
    found = [entry for entry in index["entries"] if entry["digest"] == wanted]
    left_out = any(other["digest"] == wanted for other in index.get("omitted", []))
    bundle.blob(found[0], out.write) if found else sys.exit(f"{wanted} is {'left out' if left_out else 'not there'}")
else:
    print(f"bundle digest sha256:{bundle.digest}, packed by landfall {index['landfall']}")
    if "serial" in index:
        print(f"number {index['serial']} of {index['series']}")
    for entry in index["entries"]:
        print(f"{entry['size']:>12} {entry['form']:<10} {entry['name']}")
    for other in index.get("omitted", []):
        print(f"{other['size']:>12} {'left out':<10} {other['digest']}")
    for item in index["partial"]:
        print(f"lacks {item['kind']} {item['name']}")
    for base in index.get("bases", []):
        print(f"needs {base['kind']} {base.get('digest', base['lock'])}")

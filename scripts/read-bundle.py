#!/usr/bin/env python3
"""Lists a landfall bundle, or writes a part of it to stdout. Written from docs/reference/bundle-format.md only.

    read-bundle.py BUNDLE              list entries
    read-bundle.py BUNDLE DIGEST [BASE...]
                                       write that blob; if it is a patch, the bases may be needed
    read-bundle.py BUNDLE index        write the contents index
    read-bundle.py BUNDLE signatures   write its signatures
    read-bundle.py BUNDLE check        verify the hash of every frame of every entry

BUNDLE is the file, or the name of volumes BUNDLE.0001, BUNDLE.0002, … without the number.

Patches of files are applied, and those of layers that zlib compressed: the other encoders are not
in Python's standard library.

Needs Python's standard library and the `zstd` command.
"""
import glob
import hashlib
import json
import os
import subprocess
import sys
import zlib

CHUNK, BLOCK, FOOTER, ROW = 1 << 20, 128 << 10, 354, 40
MAGIC = bytes.fromhex("5c2a4d18")


def stored(size):
    """The number of file bytes for `size` content bytes in stored frames."""
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
        sys.exit("not a landfall bundle, or an incomplete one")
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
        if set(self.index["requires"]) - {"delta", "recipe"}:
            sys.exit(f"this script does not know {self.index['requires']}")
        self.pieces = {}

    def get(self, digest):
        """The blob with this digest: contained, or patched. None if it is not here."""
        for entry in self.index["entries"]:
            if entry["digest"] == digest and entry["name"].startswith("blobs/"):
                pieces = []
                self.blob(entry, pieces.append)
                return b"".join(pieces)
        for recipe in self.index.get("recipes", []):
            if recipe["digest"] == digest:
                return self.rebuild(recipe)
        return None

    def rebuild(self, recipe):
        """Section 11: the blob that a recipe describes."""
        pieces = []
        entry = next(entry for entry in self.index["entries"] if entry["name"] == recipe["entry"])
        self.blob(entry, pieces.append)
        text = Numbers(b"".join(pieces))
        if text.take(9) != b"LFRECIPE\1":
            sys.exit(f"this script does not know the recipe of {recipe['digest']}")
        coding, count = text.take(2)
        codings = text.take(count)
        plain, *lengths = [int.from_bytes(text.take(8), "little") for _ in range(6)]
        stream, *sections = [text.take(length) for length in lengths]
        bases = []
        for digest, base_coding in zip(recipe["from"], codings):
            base = next(filter(None, (bundle.get(digest) for bundle in bundles)), None)
            if base is None:
                sys.exit(f"{recipe['digest']} needs {digest}: name a bundle that has it")
            bases.append(inflate(base) if base_coding else base)
        data = apply(plain, [content("compressed", section) for section in sections], bases)
        if coding:
            data = compress(data, stream)
        if recipe["digest"] != "sha256:" + hashlib.sha256(data).hexdigest():
            sys.exit(f"{recipe['digest']} cannot be rebuilt")
        return data

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


class Numbers:
    """Reads numbers and bytes one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self):
        value, shift = 0, 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def rest(self):
        return self.at < len(self.data)


def apply(size, sections, bases):
    """Section 11.3: the plain bytes that a patch describes."""
    parts, gaps, words, literals = map(Numbers, sections)
    out, ends = bytearray(), [0] * len(bases)
    gap = gaps.number() if gaps.rest() else None
    while parts.rest():
        insert, length, base, moved = parts.number(), parts.number(), parts.number(), parts.signed()
        out += literals.take(insert)
        start = ends[base] + moved
        ends[base] = start + length
        part, at = bytearray(bases[base][start : start + length]), 0
        while gap is not None and at + gap < length:
            at += gap
            width = min(4, length - at)
            word = int.from_bytes(part[at : at + width], "little")
            word += int.from_bytes(words.take(width), "little")
            part[at : at + width] = (word % (1 << 8 * width)).to_bytes(width, "little")
            at += width
            gap = gaps.number() if gaps.rest() else None
        if gap is not None:
            gap -= length - at
        out += part
    return bytes(out + literals.take(size - len(out)))


def inflate(data):
    """The plain bytes of all members of a gzip stream."""
    out = b""
    while data[:2] == b"\x1f\x8b":
        member = zlib.decompressobj(31)
        out += member.decompress(data) + member.flush()
        data = member.unused_data
    return out


def compress(plain, recipe):
    """recipes.md: the gzip stream of one member that zlib compressed."""
    text = Numbers(recipe)
    version, framing = text.take(2)
    total, size = text.number(), text.number()
    members = Numbers(text.take(text.number()))
    zeros, trailing = text.number(), text.take(text.number())
    (flags,) = members.take(1)
    header = b""
    if flags & 1:
        members.number()
        header = members.take(members.number())
    encoder = members.take(members.number()) if flags & 2 else b"\0"
    if (version, framing, encoder[0], flags & ~3) != (1, 2, 3, 0):
        sys.exit("this script can only run zlib")
    level, bits, strategy = encoder[1], encoder[2], encoder[3]
    run = zlib.compressobj(level, zlib.DEFLATED, -(bits >> 4), bits & 15, strategy)
    body = run.compress(plain) + run.flush()
    trailer = zlib.crc32(plain).to_bytes(4, "little") + (len(plain) % (1 << 32)).to_bytes(4, "little")
    return header + body + trailer + bytes(zeros) + trailing


def opened(name):
    volumes = sorted(glob.glob(glob.escape(name) + ".0[0-9][0-9][0-9]"))
    return Bundle(Joined([name] if os.path.exists(name) else volumes))


bundles = [opened(name) for name in [sys.argv[1]] + sys.argv[3:]]
bundle = bundles[0]
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
    left_out = any(other["digest"] == wanted for other in index.get("omitted", []))
    found = next((data for data in (one.get(wanted) for one in bundles) if data is not None), None)
    out.write(found) if found is not None else sys.exit(f"{wanted} is {'left out' if left_out else 'not there'}")
else:
    print(f"bundle digest sha256:{bundle.digest}, packed by landfall {index['landfall']}")
    if "serial" in index:
        print(f"number {index['serial']} of {index['series']}")
    for entry in index["entries"]:
        print(f"{entry['size']:>12} {entry['form']:<10} {entry['name']}")
    for recipe in index.get("recipes", []):
        print(f"{recipe['size']:>12} {'patched':<10} {recipe['digest']}")
    for other in index.get("omitted", []):
        print(f"{other['size']:>12} {'left out':<10} {other['digest']}")
    for item in index["partial"]:
        print(f"lacks {item['kind']} {item['name']}")
    for base in index.get("bases", []):
        print(f"needs {base['kind']} {base.get('digest', base['lock'])}")

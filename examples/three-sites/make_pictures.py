#!/usr/bin/env python3
"""make_pictures.py DIR SIZE CLASS...: draws SIZE small pictures (PNG, 32x32) of simple figures into
DIR/train/<class>/ and a quarter as many into DIR/val/<class>/. Classes: disc, square, cross, bars,
ring. Plain Python, no packages."""
import os
import random
import struct
import sys
import zlib

SIDE = 32


def inside(kind, x, y, r):
    if kind == "disc":
        return x * x + y * y < r * r
    if kind == "ring":
        return 0.4 * r * r < x * x + y * y < r * r
    if kind == "square":
        return max(abs(x), abs(y)) < 0.85 * r
    if kind == "cross":
        return min(abs(x), abs(y)) < 0.3 * r and max(abs(x), abs(y)) < r
    if kind == "bars":
        return max(abs(x), abs(y)) < r and int(y + 100) // 3 % 2 == 0
    sys.exit(f"no figure is called {kind}")


def draw(kind, rng):
    cx, cy, r = rng.uniform(11, 21), rng.uniform(11, 21), rng.uniform(6, 10)
    ink = [rng.randrange(120, 256) for _ in range(3)]
    rows = []
    for y in range(SIDE):
        row = bytearray([0])  # PNG: no filter
        for x in range(SIDE):
            on = inside(kind, x - cx, y - cy, r)
            row += bytes(min(255, max(0, (c if on else 40) + rng.randrange(-25, 26))) for c in ink)
        rows.append(bytes(row))
    return b"".join(rows)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write_png(path, pixels):
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) +
                  chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    folder, size, kinds = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    rng = random.Random(os.path.basename(folder.rstrip("/")))
    for part, n in (("train", size), ("val", max(len(kinds), size // 4))):
        for k in range(n):
            kind = kinds[k % len(kinds)]
            where = os.path.join(folder, part, kind)
            os.makedirs(where, exist_ok=True)
            write_png(os.path.join(where, f"{k:05d}.png"), draw(kind, rng))


main()

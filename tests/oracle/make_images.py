#!/usr/bin/env python3
"""Small pictures of every kind and what torchvision makes of them: tests/fixtures/images.

Needs numpy, Pillow and torchvision (Debian: python3-torchvision). Run it from the root of the
repository; the files it writes are checked in.
  NAME          the picture
  NAME.24       its pixels after Resize(24), CenterCrop(24): [3][24][24] bytes
  cuts.txt      boxes "top left height width flip" in rgb.png resized to 40
  cuts.bin      each after resized_crop to 16 and, with flip, hflip: [boxes][3][16][16] bytes
"""
import os
import struct
import zlib

import numpy as np
import torchvision.transforms as T
import torchvision.transforms.functional as F
from PIL import Image

OUT = os.path.join("tests", "fixtures", "images")
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def scene(width, height, seed=1):
    """Something like a photograph: smooth colours, edges and a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(float)
    planes = []
    for c in range(3):
        value = 120 + 90 * np.sin(x / (7 + 3 * c) + c) * np.cos(y / (9 + 2 * c))
        value += 70 * (((x // 9) + (y // 7)) % 2) - 30 + rng.normal(0, 6, x.shape)
        planes.append(value)
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(pixels, depth, colour, interlaced=False):
    """A PNG file of an array [height][width][channels], big-endian samples."""
    height, width = pixels.shape[:2]
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    raw = b""
    for top, left, dy, dx in passes:
        for row in pixels[top::dy, left::dx]:
            if row.size:
                raw += b"\0" + row.astype(">u2" if depth == 16 else np.uint8).tobytes()
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 1 if interlaced else 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) +
            chunk(b"IEND", b""))


def save(name, rgb):
    """Writes what torchvision makes of the picture `rgb`."""
    small = T.Compose([T.Resize(24), T.CenterCrop(24)])(rgb)
    with open(os.path.join(OUT, name + ".24"), "wb") as f:
        f.write(np.asarray(small).transpose(2, 0, 1).tobytes())


def write(name, data):
    with open(os.path.join(OUT, name), "wb") as f:
        f.write(data)


def main():
    os.makedirs(OUT, exist_ok=True)
    photo = Image.fromarray(scene(61, 47))
    path = lambda name: os.path.join(OUT, name)
    photo.save(path("rgb.jpg"), quality=90)
    photo.save(path("progressive.jpg"), quality=85, progressive=True)
    photo.convert("L").save(path("grey.jpg"), quality=90)
    photo.convert("CMYK").save(path("cmyk.jpg"), quality=95)
    Image.fromarray(scene(23, 90, 2)).save(path("tall.jpg"), quality=92, subsampling=0)
    Image.fromarray(scene(160, 120, 3)).save(path("large.jpg"), quality=85)
    photo.save(path("rgb.png"))
    alpha = Image.fromarray(scene(61, 47, 4)).convert("L")
    with_alpha = photo.copy()
    with_alpha.putalpha(alpha)
    with_alpha.save(path("rgba.png"))
    photo.convert("P", palette=Image.Palette.ADAPTIVE, colors=40).save(path("palette.png"))
    photo.convert("P", palette=Image.Palette.ADAPTIVE, colors=12).save(path("palette4.png"), bits=4,
                                                                     transparency=3)
    photo.convert("L").save(path("grey.png"))
    with_alpha.convert("LA").save(path("grey_alpha.png"))
    photo.convert("1").save(path("bits1.png"))
    Image.fromarray(scene(17, 19, 5)).save(path("small.png"))
    for name in sorted(os.listdir(OUT)):
        if name.endswith((".jpg", ".png")) and name not in ("rgb16.png", "grey16.png", "interlaced.png"):
            save(name, Image.open(path(name)).convert("RGB"))
    rgb = scene(61, 47)
    low = scene(61, 47, 6).astype(np.uint16)
    write("rgb16.png", png(rgb.astype(np.uint16) * 256 + low, 16, 2))
    save("rgb16.png", photo)
    grey = np.asarray(photo.convert("L"))[..., None]
    write("grey16.png", png(grey.astype(np.uint16) * 256 + low[..., :1], 16, 0))
    save("grey16.png", photo.convert("L").convert("RGB"))
    write("interlaced.png", png(rgb, 8, 2, interlaced=True))
    save("interlaced.png", Image.open(path("interlaced.png")).convert("RGB"))
    cuts()


def cuts():
    picture = T.Resize(40)(Image.open(os.path.join(OUT, "rgb.png")))
    boxes = [(0, 0, 40, 51, 0), (3, 5, 17, 22, 1), (10, 20, 30, 31, 0), (7, 1, 9, 8, 1), (2, 2, 16, 16, 0),
             (39, 50, 1, 1, 0)]
    with open(os.path.join(OUT, "cuts.txt"), "w") as text, open(os.path.join(OUT, "cuts.bin"), "wb") as f:
        for top, left, height, width, flip in boxes:
            cut = F.resized_crop(picture, top, left, height, width, [16, 16])
            if flip:
                cut = F.hflip(cut)
            text.write("%d %d %d %d %d\n" % (top, left, height, width, flip))
            f.write(np.asarray(cut).transpose(2, 0, 1).tobytes())


if __name__ == "__main__":
    main()

"""Writes tests/fixtures/tables: exact sums in rational numbers, and a table with its encoding.

exact.txt      n, the numbers, their sum, the standard deviation; all of them hexadecimal floats
mixed.csv      numbers, texts and missing values, in the ways that programs write them
mixed.txt      a line for each row: its label, then its inputs; columns sorted by name

Needs Python 3 alone and shares nothing with the C code.
"""
import csv
import math
import os
import random
import struct
from fractions import Fraction

MISSING = {"", "na", "nan", "null", "?"}


def deviation(numbers):
    """Right to the last digit but one: the square root of a whole number of 400 bits."""
    n, s = len(numbers), sum(map(Fraction, numbers))
    spread = n * sum(Fraction(x) ** 2 for x in numbers) - s * s
    if spread == 0:
        return 0.0
    scale = 2 ** 5000
    root = math.isqrt(spread.numerator * scale * scale // spread.denominator)
    return float(Fraction(root, scale * n))


def any_double(rng):
    while True:
        x = struct.unpack("<d", rng.getrandbits(64).to_bytes(8, "little"))[0]
        if math.isfinite(x):
            return x


def sum_cases(rng):
    tiny, huge = 2.0 ** -1074, 1.7976931348623157e308
    yield [0.0]
    yield [tiny]
    yield [huge, huge, -huge]
    yield [huge, -huge, tiny]
    yield [1.0, 2.0 ** -53]
    yield [1.0, 2.0 ** -53, tiny]
    yield [1.0 + 2.0 ** -52, 2.0 ** -53]
    yield [2.0 ** -1022, -tiny]
    yield [1e16, 1.0, -1e16]
    yield [1600000000.0 + k for k in range(10)]
    yield [0.1] * 10
    yield [-3.5, -3.5, -3.5]
    for k in range(30):
        yield [any_double(rng) for _ in range(1 + k % 12)]
    for k in range(10):
        yield [rng.gauss(1e6, 1) * 2.0 ** rng.randint(-60, 60) for _ in range(12)]


def write_sums(path):
    rng = random.Random(20)
    with open(path, "w") as out:
        for case in sum_cases(rng):
            total = sum(map(Fraction, case))
            try:
                rounded = float(total)
            except OverflowError:
                continue
            words = [x.hex() for x in [*case, rounded, deviation(case)]]
            out.write(" ".join([str(len(case)), *words]) + "\n")


def write_table(path):
    rng = random.Random(21)
    cities = ["Bern", "Oslo", "São Paulo", 'the "Hague"', "Rome, Italy", "two\nlines"]
    rows = []
    for k in range(40):
        age = rng.choice(["NA", "", "?"]) if k % 9 == 4 else "%.2f" % rng.gauss(50, 12)
        dose = "%.6e" % rng.lognormvariate(0, 20)
        city = rng.choice(["null", ""]) if k % 13 == 6 else rng.choice(cities)
        rows.append([age, "7", city, dose, str(rng.choice([1, 2, 10]))])
    with open(path, "w", newline="", encoding="utf-8-sig") as out:
        writer = csv.writer(out, delimiter=";", lineterminator="\r\n")
        writer.writerow(["age", "constant", "city", "dose", "grade"])
        writer.writerows(rows)


def encode_column(cells):
    present = [c for c in cells if c.lower() not in MISSING]
    lacks = len(present) < len(cells)
    try:
        numbers = [float(c) for c in present]
    except ValueError:
        known = sorted(set(present), key=lambda c: c.encode())
        hot = [[float(c == k) for k in known] for c in cells]
    else:
        mean = float(sum(map(Fraction, numbers)) / len(numbers))
        width = deviation(numbers) or 1.0
        hot = [[0.0 if c.lower() in MISSING else (float(c) - mean) / width] for c in cells]
    return [h + [float(c.lower() in MISSING)] * lacks for h, c in zip(hot, cells)]


def write_encoding(table, path):
    with open(table, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    labels = sorted({r["grade"] for r in rows}, key=float)
    columns = [encode_column([r[name] for r in rows]) for name in sorted(rows[0]) if name != "grade"]
    with open(path, "w") as out:
        for k, row in enumerate(rows):
            values = [v for column in columns for v in column[k]]
            words = [str(labels.index(row["grade"])), *("%.9g" % v for v in values)]
            out.write(" ".join(words) + "\n")


def write(folder):
    os.makedirs(folder, exist_ok=True)
    write_sums(os.path.join(folder, "exact.txt"))
    write_table(os.path.join(folder, "mixed.csv"))
    write_encoding(os.path.join(folder, "mixed.csv"), os.path.join(folder, "mixed.txt"))

"""Writes tests/fixtures/statistics.txt: what statistics of comparisons should be.

Python alone, and other ways than the C program's: F tails are integrals by Simpson's rule, the
studentized range is one over the largest value instead of the smallest, Friedman's statistic comes
from the sums of squares (Conover), and bootstrap intervals from all n^n resamples instead of drawn ones.

f       x a b tail
range   q k tail
q       k value            checked against Demsar 2006, table 5(a)
ranks   n  values  ranks
friedman blocks methods values  mean ranks  chi2 F p CD
boot    n  values  low high   0.95 of all resampled means
"""
import itertools
import math
import os
import random

DEMSAR = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}


def simpson(f, a, b, n):
    h = (b - a) / n
    total = f(a) + f(b)
    for i in range(1, n):
        total += f(a + i * h) * (4 if i % 2 else 2)
    return total * h / 3


def f_tail(x, a, b):
    """P(F > x) = P(B < y), B Beta(b/2, a/2), y = b / (b + a x); B = s^2 takes the root's end away."""
    y = b / (b + a * x)
    c = math.exp(math.lgamma((a + b) / 2) - math.lgamma(a / 2) - math.lgamma(b / 2))

    def density(s):
        return 2 * c * s ** (b - 1) * (1 - s * s) ** (a / 2 - 1)
    return simpson(density, 0.0, math.sqrt(y), 200000)


def phi(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


def range_tail(q, k):
    def density(z):  # z the largest of the k
        return k * math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (phi(z) - phi(z - q)) ** (k - 1)
    return 1 - simpson(density, -9.0, 9.0 + q, 20000)


def nemenyi_q(k):
    low, high = 0.0, 10.0
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if range_tail(middle * math.sqrt(2), k) > 0.05 else (low, middle)
    return low


def ranks_of(values):
    order = sorted(values, reverse=True)
    return [sum(i + 1 for i, v in enumerate(order) if v == x) / order.count(x) for x in values]


def friedman(table):
    """Conover's form: T1 = (k - 1) (sum R_j^2 - b C) / (A - C), which is right with ties."""
    b, k = len(table), len(table[0])
    ranks = [ranks_of(row) for row in table]
    sums = [sum(r[j] for r in ranks) for j in range(k)]
    a = sum(x * x for r in ranks for x in r)
    c = b * k * (k + 1) ** 2 / 4
    chi2 = (k - 1) * (sum(s * s for s in sums) - b * c) / (a - c)
    f = (b - 1) * chi2 / (b * (k - 1) - chi2)
    cd = nemenyi_q(k) * math.sqrt(k * (k + 1) / (6 * b))
    return [s / b for s in sums], chi2, f, f_tail(f, k - 1, (k - 1) * (b - 1)), cd


def bootstrap(values):
    n = len(values)
    means = sorted(sum(r) / n for r in itertools.product(values, repeat=n))
    cut = 0.025 * len(means)
    return means[math.floor(cut)], means[len(means) - 1 - math.floor(cut)]


def numbers(*lists):
    return " ".join(repr(float(x)) for l in lists for x in l)


def write(out):
    rng = random.Random(23)
    for x, a, b in [(1, 2, 4), (3.2, 6, 30), (0.4, 3, 9), (9.5, 16, 112), (2.0, 2, 10), (40.0, 5, 20)]:
        out.write("f %s\n" % numbers([x, a, b, f_tail(x, a, b)]))
    for q, k in [(1.0, 2), (3.5, 3), (4.2, 7), (5.0, 20), (2.0, 40)]:
        out.write("range %s\n" % numbers([q, k, range_tail(q, k)]))
    for k in [*DEMSAR, 17, 40]:
        q = nemenyi_q(k)
        assert k not in DEMSAR or abs(q - DEMSAR[k]) < 1.1e-3, (k, q)  # rounded, some of them cut
        out.write("q %s\n" % numbers([k, q]))
    for values in [[3, 1, 2], [1, 1, 1], [5, 2, 2, 7, 2]]:
        out.write("ranks %d %s\n" % (len(values), numbers(values, ranks_of(values))))
    for blocks, methods, digits in [(6, 3, 6), (10, 7, 6), (5, 4, 0), (40, 17, 1)]:
        table = [[round(rng.gauss(j * 0.4, 1), digits) for j in range(methods)] for _ in range(blocks)]
        mean, *rest = friedman(table)
        out.write("friedman %d %d %s\n" % (blocks, methods,
                                           numbers([x for row in table for x in row], mean, rest)))
    for n in [2, 3, 4, 5, 6]:
        values = [round(rng.gauss(0.5, 1), 4) for _ in range(n)]
        out.write("boot %d %s\n" % (n, numbers(values, bootstrap(values))))


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "fixtures", "statistics.txt"), "w") as out:
        write(out)

"""Graphs that change, and iterations without gossip.

A step is its W [n, n]: row i holds what agent i takes of everyone's; columns sum to one.
"""

import torch

DIRECTED = """# three steps, the last with weights; rows of W do not sum to 1
step
0 > 1
1 > 2
2 > 3
3 > 4
4 > 0
0 > 3
step
1 2
3 4
step
0 > 2 0.3
2 > 0 0.1
4 > 1 0.6
"""


def equal_parts(arrows, n):
    """arrows: (from, to); every sender keeps one part and gives one to each receiver."""
    w = torch.zeros(n, n, dtype=torch.float64)
    for j in range(n):
        to = [b for a, b in arrows if a == j]
        for i in [j] + to:
            w[i, j] = 1.0 / (1 + len(to))
    return w


def directed_steps(n):
    first = equal_parts([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 3)], n)
    second = equal_parts([(1, 2), (2, 1), (3, 4), (4, 3)], n)
    third = torch.eye(n, dtype=torch.float64)
    for a, b, weight in ((0, 2, 0.3), (2, 0, 0.1), (4, 1, 0.6)):
        third[b, a] += weight
        third[a, a] -= weight
    return [first, second, third]


def one_peer_steps(n):
    hops = [2 ** t for t in range(n) if 2 ** t < n]
    return [equal_parts([(i, (i + hop) % n) for i in range(n)], n) for hop in hops]


def gossiping(local_steps, n_iterations):
    """Of every iteration whether it gossips. "1:8": as many equal stages as there are numbers 1, 2,
    4, 8; each begins anew to count its iterations."""
    h, last = (int(part) for part in (local_steps.split(":") * 2)[:2])
    sizes = [h]
    while sizes[-1] < last:
        sizes.append(min(2 * sizes[-1], last))
    result = []
    for k, size in enumerate(sizes):
        end = n_iterations * (k + 1) // len(sizes)
        result += [(i + 1) % size == 0 for i in range(end - len(result))]
    return result

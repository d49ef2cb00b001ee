"""compare.py AGENTS EXPECTED INIT: is a run where the oracle says it should be?

AGENTS is a run's agents.safetensors (or the run directory), EXPECTED a file of
tests/fixtures/expected, INIT the start values of the case. Prints, per agent,
||got - expected|| / ||expected - init||; exits 1 when one exceeds 2e-4.
"""

import os
import sys

import numpy as np

import files

TOLERANCE = 2e-4


def agent_rows(tensors):
    """{agent: {name: values}} from agent.<i>.<name>"""
    rows = {}
    for full, value in tensors.items():
        _, agent, name = full.split(".", 2)
        rows.setdefault(int(agent), {})[name] = value
    return rows


def vector(tensors, names):
    return np.concatenate([tensors[name].astype(np.float64).ravel() for name in names])


def relative_error(got, expected, init):
    names = list(expected)
    assert set(got) == set(names), "tensors differ: %s" % sorted(set(got) ^ set(names))
    target = vector(expected, names)
    moved = np.linalg.norm(target - vector(init, names))
    return np.linalg.norm(vector(got, names) - target) / moved


def main(agents, expected, init):
    if os.path.isdir(agents):
        agents = os.path.join(agents, "agents.safetensors")
    got, want = (agent_rows(files.read_safetensors(path)) for path in (agents, expected))
    start = files.read_safetensors(init)
    assert sorted(got) == sorted(want), "agents differ"
    own = agent_rows(start) if any(name.startswith("agent.") for name in start) else None
    errors = {a: relative_error(got[a], want[a], own[a] if own else start) for a in sorted(want)}
    for a, error in errors.items():
        print("agent %d  %.3g" % (a, error))
    worst = max(errors.values())
    bad = not worst <= TOLERANCE  # nan is bad too
    print("max      %.3g  %s %g" % (worst, "ABOVE" if bad else "within", TOLERANCE))
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

"""Writes tests/fixtures: make_fixtures.py [cases] [related] [nets] (all when none is named)."""

import os
import sys

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")


def main(parts):
    if "cases" in parts:
        import cases
        import sensitivity
        cases.write(FIXTURES)
        sensitivity.report(FIXTURES)
    if "related" in parts:
        import related
        related.write(FIXTURES)
    if "nets" in parts:
        import nets
        nets.write(os.path.join(FIXTURES, "nets"))


if __name__ == "__main__":
    main(sys.argv[1:] or ["cases", "related", "nets"])

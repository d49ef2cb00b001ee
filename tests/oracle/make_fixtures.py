"""Writes tests/fixtures: make_fixtures.py [cases] [related] [compress] [recent] [distill] [async] [nets] [tables] (all when none is named)."""

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
    if "compress" in parts:
        import compressed
        compressed.write(FIXTURES)
    if "async" in parts:
        import asynchronous
        asynchronous.write(FIXTURES)
    if "recent" in parts:
        import recent
        recent.write(FIXTURES)
    if "distill" in parts:
        import distill
        distill.write(FIXTURES)
    if "nets" in parts:
        import nets
        nets.write(os.path.join(FIXTURES, "nets"))
    if "tables" in parts:
        import tables
        tables.write(os.path.join(FIXTURES, "tables"))


if __name__ == "__main__":
    main(sys.argv[1:] or ["cases", "related", "compress", "recent", "distill", "async", "nets", "tables"])

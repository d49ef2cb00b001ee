"""Runs every test: python3 python/tests. The last line is "N passed, N failed, N skipped"."""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Lines(unittest.TestResult):
    """A line per test, as the C programs print."""

    def __init__(self):
        super().__init__()
        self.n_passed = 0
        self.n_failed = 0

    def _tell(self, verdict, test, words=""):
        print(f"{verdict:4} {test.id()}", flush=True)
        if words:
            print(words, flush=True)

    def addSuccess(self, test):
        self.n_passed += 1
        self._tell("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._tell("skip", test, reason)

    def addError(self, test, error):
        super().addError(test, error)
        self._fail(test, self.errors[-1][1])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._fail(test, self.failures[-1][1])

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self._fail(subtest, (self.failures + self.errors)[-1][1])

    def _fail(self, test, words):
        self.n_failed += 1
        print(words, flush=True)
        self._tell("FAIL", test)


def main(patterns):
    sys.path.insert(0, HERE)
    sys.path.append(os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "oracle"))
    suite = unittest.TestSuite()
    for pattern in patterns or ["test_*.py"]:
        suite.addTests(unittest.defaultTestLoader.discover(HERE, pattern))
    result = Lines()
    suite.run(result)
    print(f"{result.n_passed} passed, {result.n_failed} failed, {len(result.skipped)} skipped")
    return 1 if result.n_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

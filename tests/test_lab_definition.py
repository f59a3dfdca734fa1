"""Typed systems: what `system.py` may define, and that a runner cannot change the score it gets."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import repositories
from support import ROOT, TemporaryFolder, read_json, read_lines, run_cli, write, write_lines

import kaizen

DEFINITION = {
    "id": "demo",
    "input": {"type": "integer"},
    "output": {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]},
    "reference": {"type": "integer"},
    "metrics": {
        "type": "object",
        "properties": {"accuracy": {"type": "number", "minimum": 0, "maximum": 1}, "found": {"$ref": "#/$defs/counts"}},
        "$defs": {
            "counts": {
                "type": "object",
                "properties": {key: {"type": "integer", "minimum": 0} for key in ("tp", "fp", "fn")},
                "required": ["tp", "fp", "fn"],
            }
        },
    },
    "metric": {"name": "accuracy", "aggregation": "mean"},
}
HALVES = {"runner": "agent:run", "grader": "grading:grade"}
GRADING = """\
def grade(input, output, reference):
    good = output["answer"] == reference
    return {"accuracy": 1 if good else 0, "found": {"tp": int(good), "fp": int(not good), "fn": 0}}
"""
SYSTEM_MD = "---\ndataset: kaizen/systems/demo/items.jsonl\nmutable:\n  - kaizen/systems/demo/agent.py\n---\n# demo\n"


def changed(path, value):
    """DEFINITION and HALVES with *value* at the place *path*, such as 'metric/name'; None takes it away."""
    found = copy.deepcopy({**DEFINITION, **HALVES})
    *above, last = path.split("/")
    place = found
    for key in above:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return found


class Describing(TemporaryFolder):
    def load(self, text, name="demo"):
        folder = self.folder / "kaizen/systems" / name
        write(folder / "system.py", text)
        return kaizen.load_definition(str(self.folder), str(folder), name)

    def refusal(self, text, name="demo"):
        with self.assertRaises(kaizen.InputError) as caught:
            self.load(text, name)
        return caught.exception.message

    def breaches(self, definition):
        with self.assertRaises(kaizen.BreachesError) as caught:
            kaizen.checked_definition({key: value for key, value in definition.items() if key not in HALVES}, "demo", "system.py")
        return [f"{breach.pointer}: {breach.message}" for breach in caught.exception.breaches]

    def test_types_of_metrics_are_known_without_running_anything(self):
        text = f"SYSTEM = {DEFINITION!r}\ndef boom(*a):\n    open('called', 'w')\n    1 / 0\nclass Grader:\n    def __init__(self):\n        boom()\n"
        found = self.load(text + "SYSTEM.update(runner=boom, grader=Grader)\n")
        self.assertEqual(found.metrics, {"accuracy": "number", "found": "counts"})
        self.assertEqual(found.metric.document(), {"name": "accuracy", "aggregation": "mean", "direction": "higher"})
        self.assertEqual((found.metric.minimum, found.metric.maximum, found.metric.worst), (0, 1, 0))
        self.assertEqual([path.name for path in self.folder.rglob("*")], ["kaizen", "systems", "demo", "system.py"])

    def test_an_object_with_attributes_is_a_definition_too(self):
        found = self.load(f"import types\nSYSTEM = types.SimpleNamespace(**{({**DEFINITION, **HALVES})!r})\n")
        self.assertEqual(found.metric.name, "accuracy")

    def test_messages_name_the_field_and_neither_values_nor_texts_of_exceptions(self):
        secret = "card 4111-1111"
        cases = {
            f"raise ValueError({secret!r})\n": "cannot be loaded: ValueError raised at line 1",
            "import nowhere_to_be_found\n": "cannot be loaded: ModuleNotFoundError for module nowhere_to_be_found raised at line 1",
            "def f(:\n": "cannot be loaded: SyntaxError raised at line 1",
            "x = 1\n": "defines no SYSTEM",
            "import os\nos._exit(3)\n": "its Python ended while it was loaded",
            f"SYSTEM = {({**DEFINITION, 'runner': 'agent:run'})!r}\n": "#/grader: is missing",
            f"SYSTEM = {({**DEFINITION, **HALVES, 'runner': 'agent'})!r}\n": '#/runner: must be a function, a class, or "module:name"',
            f"SYSTEM = {changed('input', {'const': secret, 'x': set()})!r}\n": "#/input: cannot be written as JSON",
        }
        for text, expected in cases.items():
            with self.subTest(expected):
                message = self.refusal(text)
                self.assertTrue(message.endswith(expected) and "systems/demo/system.py" in message, message)
                self.assertNotIn(secret, message)

    def test_debugging_shows_the_original_as_the_cause(self):
        os.environ["KAIZEN_DEBUG"] = "1"
        self.addCleanup(os.environ.pop, "KAIZEN_DEBUG")
        message = self.refusal("raise ValueError('the original')\n")
        self.assertIn("the original", message)
        self.assertIn("The above exception was the direct cause", message)

    def test_the_id_is_the_name_of_the_folder(self):
        message = self.refusal(f"SYSTEM = {({**DEFINITION, **HALVES})!r}\n", "other")
        self.assertIn("system.py#/id: is not 'other', as the folder is called", message)

    def test_every_breach_is_told_with_its_path(self):
        counts = {"type": "object", "properties": {"tp": {"type": "integer", "minimum": 0}}, "required": ["tp"]}
        cases = [
            ("input", [], "/input: must be an object"),
            ("output", {"type": "strong"}, "/output/type: "),
            ("metrics", {"type": "object"}, "/metrics: does not name its fields"),
            ("metrics/properties/accuracy", {"type": "string"}, "/metrics/properties/accuracy: is neither a number nor counts"),
            ("metrics/properties/found", counts, "/metrics/properties/found: is neither a number nor counts"),
            ("metric/name", "speed", "/metric/name: is none of the metrics"),
            ("metric/name", "found", "/metric/aggregation: takes numbers"),
            ("metric/aggregation", "f1", "/metric/aggregation: takes counts"),
            ("metric/aggregation", "percentile", "/metric/percentile: "),
            ("metric/aggregation", None, "/metric: has no 'aggregation'"),
            ("metric/weight", 3, "/metric/weight: unknown key"),
            ("metrics/properties/accuracy", {"type": "number"}, "/metric: the score of an item on which the system fails is not known"),
        ]
        for path, value, expected in cases:
            with self.subTest(path=path, value=value):
                found = self.breaches(changed(path, value))
                self.assertTrue(any(each.startswith(expected) for each in found), found)

    def test_a_schema_that_cannot_be_used_is_told_without_its_values(self):
        found = self.breaches(changed("output", {"type": "secret-type"}))
        self.assertNotIn("secret-type", "".join(found))

    def test_the_worst_score_is_the_bad_end_of_the_range_or_what_is_written(self):
        for metric, worst in (({"direction": "lower"}, 1), ({}, 0), ({"worst": 0.5}, 0.5)):
            parts = changed("metric", {**DEFINITION["metric"], **metric})
            self.assertEqual(kaizen.checked_definition(parts, "demo", "system.py").metric.worst, worst)


class TypedSystem(repositories.Repository):
    """A repository with the typed system `demo`; the dataset has the items 1 to 4, whose right answer is their number."""

    agent = "def run(input):\n    return {'answer': input}\n"

    made: "Path | None" = None

    def setUp(self):
        if TypedSystem.made is None:
            super().setUp()
            self.system = self.repo / "kaizen/systems/demo"
            self.make()
            TypedSystem.made = Path(tempfile.mkdtemp(prefix="kaizen-typed-"))
            unittest.addModuleCleanup(TypedSystem.forget)
            shutil.copytree(self.repo, TypedSystem.made / "repo", symlinks=True)
        else:
            with mock.patch.object(TypedSystem, "git"):
                super().setUp()
            shutil.rmtree(self.repo)
            shutil.copytree(TypedSystem.made / "repo", self.repo, symlinks=True)
        self.system = self.repo / "kaizen/systems/demo"
        os.chdir(self.repo)

    @staticmethod
    def forget():
        shutil.rmtree(TypedSystem.made)
        TypedSystem.made = None

    def make(self):
        kaizen.init_workspace(str(self.repo))
        write(self.repo / "kaizen/config.json", json.dumps({"version": 1, "item_timeout_seconds": 3}))
        write_lines(self.system / "items.jsonl", [{"id": f"i{n}", "input": n, "expected": n} for n in range(1, 5)])
        write(self.system / "system.md", SYSTEM_MD)
        write(self.system / "grading.py", GRADING)
        self.define()
        write(self.system / "agent.py", self.agent)
        self.commit("workspace")

    def define(self, **parts):
        write(self.system / "system.py", f"SYSTEM = {({**DEFINITION, **HALVES, **parts})!r}\n")

    def agent_is(self, text):
        write(self.system / "agent.py", text)
        self.commit("variant")

    def run_demo(self, status=0, **env):
        done = run_cli("run", "--system", "demo", "--variant", "v", "--json", env=env)
        self.assertEqual(done.status, status, done.stdout + done.stderr)
        self.said = done.stdout + done.stderr
        return self.document()

    def document(self):
        return read_json(self.newest() / "run.json")

    def newest(self):
        return max((self.repo / "kaizen/.kaizen/runs").iterdir(), key=lambda path: path.name)

    def lines(self):
        return read_lines(self.newest() / "items.jsonl")

    def statuses(self):
        return [(line["item"], line["status"], line.get("feedback")) for line in self.lines()]


class Answering(TypedSystem):
    def test_a_system_without_an_eval_is_run_and_graded(self):
        self.agent_is("def run(input, *, seed):\n    print('thinking', seed)\n    return {'answer': input if input < 4 else 0}\n")
        document = self.run_demo()
        self.assertEqual(document["result"], {"status": "available", "value": 0.75, "n": 4, "planned": 4})
        self.assertEqual((document["state"], document["separation"]), ("completed", "own_process"))
        self.assertEqual([line["score"] for line in self.lines()], [1, 1, 1, 0])
        self.assertEqual(self.lines()[3]["metrics"], {"accuracy": 0, "found": {"tp": 0, "fp": 1, "fn": 0}})
        self.assertEqual(self.lines()[0]["output"], {"answer": 1})
        self.assertEqual((self.newest() / "err.log").read_text().count("thinking"), 4)

    def test_counts_add_up_to_precision(self):
        self.define(metric={"name": "found", "aggregation": "precision"}, runner="agent:Agent")
        self.agent_is("class Agent:\n    async def run(self, input):\n        return {'answer': 1}\n")
        self.assertEqual(self.run_demo()["result"]["value"], 0.25)

    def test_what_the_system_does_wrong_scores_the_worst_value_and_says_no_value(self):
        self.agent_is(
            "import os\ndef run(input):\n"
            "    if input == 1: raise ValueError('card 4111')\n"
            "    if input == 2: return {'answer': 'card 4111'}\n"
            "    if input == 3: os._exit(0)\n"
            "    return float('nan')\n"
        )
        document = self.run_demo()
        self.assertEqual(
            self.statuses(),
            [
                ("i1", "fail_error", "the runner raised ValueError"),
                ("i2", "fail_error", "output#/answer does not fit its schema"),
                ("i3", "fail_error", "the runner ended"),
                ("i4", "fail_error", "the runner cannot be written as JSON"),
            ],
        )
        self.assertEqual(document["result"]["value"], 0)
        self.assertNotIn("4111", self.said + (self.newest() / "err.log").read_text())

    def test_debugging_puts_the_original_into_the_log(self):
        self.agent_is("def run(input):\n    raise ValueError('the original')\n")
        self.run_demo(KAIZEN_DEBUG="1")
        self.assertIn("ValueError: the original", (self.newest() / "err.log").read_text())

    def test_an_answer_that_takes_too_long_is_a_time_out_of_that_item_alone(self):
        write(self.repo / "kaizen/config.json", json.dumps({"version": 1, "item_timeout_seconds": 0.2}))
        self.agent_is("import time\ndef run(input):\n    time.sleep(60 * (input == 2))\n    return {'answer': input}\n")
        document = self.run_demo()
        self.assertEqual(document["counts"], {"ok": 3, "fail_error": 0, "infra_error": 0, "timeout": 1, "missing": 0})
        self.assertEqual(document["state"], "completed")  # one of four may be missing

    def test_what_the_grader_cannot_grade_is_missing_and_no_failure(self):
        write(self.system / "grading.py", "def grade(input, output, reference):\n    return {'accuracy': 7} if input == 1 else 1 / 0\n")
        self.commit("grader")
        document = self.run_demo(4)
        self.assertEqual((document["state"], document["result"]["status"]), ("incomplete", "unavailable"))
        told = {line["item"]: line["feedback"] for line in self.lines()}
        self.assertEqual((told["i1"], told["i2"]), ("metrics#/accuracy does not fit its schema", "the grader raised ZeroDivisionError"))

    def test_an_item_that_does_not_fit_is_named_by_its_path_alone(self):
        write_lines(self.system / "items.jsonl", [{"id": "i1", "input": 1}])
        self.commit("items")
        document = self.run_demo(4)
        self.assertEqual((document["state"], document["reason"]), ("crashed", "unfit_item"))
        self.assertEqual(document["message"], "demo: item 'i1': reference: is absent, and its schema does not accept null")
        for case, reference, expected in (
            ({"input": "card 4111", "expected": 1}, {}, "input# does not fit its schema"),
            ({"input": 1, "expected": "card 4111"}, {}, "reference# does not fit its schema"),
            ({"input": 1}, {"type": ["integer", "null"]}, None),
            ({"input": 1, "expected": None}, {"type": ["integer", "null"]}, None),
        ):
            definition = kaizen.checked_definition(changed("reference", reference or DEFINITION["reference"]), "demo", "system.py")
            asked = kaizen.AskedItem("i1", 1, 1, 0, 1, kaizen.Case("i1", case, "", 1, ""))
            try:
                kaizen.refuse_unfit_item(definition, asked, kaizen.load_system(kaizen.find_workspace(), "demo"))
                said = None
            except kaizen.AskingEnded as ending:
                said = ending.end.message
            self.assertEqual(said, expected and f"demo: item 'i1': {expected}")

    def test_a_definition_that_needs_the_variant_to_be_loaded_is_refused(self):
        write(self.system / "system.py", f"import agent\nSYSTEM = {DEFINITION!r}\nSYSTEM.update(runner=agent.run, grader='grading:grade')\n")
        self.commit("definition")
        document = self.run_demo(4)
        self.assertEqual((document["state"], document["reason"]), ("crashed", "cannot_load"))
        self.assertIn("ModuleNotFoundError for module agent", document["message"])


class Documented(TypedSystem):
    def test_the_example_of_the_docs_runs_as_it_says(self):
        text = (ROOT / "docs/systems.md").read_text().split("## Systems that name an improvement")[0]
        files = re.findall(r"^`([\w/.]+)`[^\n]*:\n\n```\w+\n(.*?)```", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(files), 4)
        for name, content in files:
            write(self.repo / name, content)
        self.commit("documented")
        done = run_cli("run", "--system", "refunds", "--variant", "last-number")
        self.assertTrue(done.stdout.startswith("r0001: completed; accuracy 0.5 (mean of 2 of 2 items)"), done.stdout + done.stderr)
        self.assertIn("r0001: completed; accuracy 0.5 (mean of 2 of 2 items)\n", text)


HOSTILE = '''\
import builtins, json, os, sys

GRADER = "def grade(input, output, reference):\\n    return {'accuracy': 1, 'found': {'tp': 1, 'fp': 0, 'fn': 0}}\\n"


def patch():
    """Changes whatever can be reached from here so that every answer would be right."""
    builtins.sum = builtins.max = lambda *words: 1
    for module in list(sys.modules.values()):
        for name in ("dumps", "loads", "grade", "answered", "serve", "half_of", "load"):
            if hasattr(module, name) and module.__name__ in ("json", "__main__", "system", "grading"):
                good = {"request": 0, "value": {"accuracy": 1, "found": {"tp": 1, "fp": 0, "fn": 0}}}
                setattr(module, name, (lambda value: lambda *a, **k: value)('{"accuracy": 1}' if name == "dumps" else good))
    import grading
    grading.grade = lambda *words: {"accuracy": 1, "found": {"tp": 1, "fp": 0, "fn": 0}}
    sys.modules["grading"] = sys.modules["json"] = grading
    os.environ.update(PYTHONPATH=os.getcwd(), PYTHONSTARTUP="agent.py", KAIZEN_RESULT="1", KAIZEN_DEBUG="0")


def overwrite():
    """Puts another grader in the place of the one in the tree, and gives it back its face before anybody looks."""
    path = "kaizen/systems/demo/grading.py"
    with open(path) as stream:
        before = stream.read()
    with open(path, "w") as stream:
        stream.write(GRADER)
    import importlib, grading
    importlib.reload(grading)
    with open(path, "w") as stream:
        stream.write(before)


def shout():
    """Writes what a grader would say into every descriptor that is open here."""
    line = b'{"request": 0, "value": {"accuracy": 1, "found": {"tp": 1, "fp": 0, "fn": 0}}}\\n'
    for number in range(256):
        try:
            os.write(number, line)
        except OSError:
            pass


def run(input):
    os.write(2, b"was here\\n")
    overwrite()
    shout()
    if input > 1:
        patch()
    return {"answer": 0}
'''


class Hostility(TypedSystem):
    def test_the_score_stays_true_whatever_the_runner_patches(self):
        self.agent_is(HOSTILE)
        together = "import agent, grading; agent.overwrite(); agent.patch(); print(grading.grade(1, {'answer': 0}, 1)['accuracy'])"
        environment = {**os.environ, "PYTHONPATH": str(self.system), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-c", together], capture_output=True, env=environment, check=False)
        self.assertEqual(done.stdout.split()[-1:], [b"1"], f"in one process it wins: {done.stderr}")
        document = self.run_demo()
        self.assertEqual((document["state"], document["result"]["value"]), ("completed", 0), self.statuses())
        self.assertIn("was here", (self.newest() / "err.log").read_text())

    def test_the_runner_gets_inputs_only(self):
        self.agent_is(
            "import gc, os, sys\ndef run(input):\n"
            "    seen = [each for each in gc.get_objects() if isinstance(each, dict) and 'request' in each and 'arguments' in each]\n"
            "    print(sorted(seen[0]), seen[0]['arguments'], [k for k in os.environ if 'LOCKED' in k], sys.argv)\n"
            "    return {'answer': input}\n"
        )
        self.run_demo()
        said = (self.newest() / "err.log").read_text().split("\n")
        self.assertIn("['arguments', 'context', 'request', 'seed'] [1] []", said[0])
        self.assertNotIn(".kaizen", said[0])

    def test_a_locked_copy_that_the_runner_changes_taints_the_run(self):
        self.agent_is(
            "import glob\ndef run(input):\n"
            "    for path in glob.glob('kaizen/.kaizen/runs/*/locked/kaizen/systems/demo/grading.py'):\n"
            "        open(path, 'w').write('def grade(*words): return {\"accuracy\": 1}')\n"
            "    return {'answer': 0}\n"
        )
        document = self.run_demo(4)
        self.assertEqual((document["state"], document["reason"]), ("tainted", "tree_changed"))
        self.assertEqual([line["score"] for line in self.lines()], [0, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()

"""Trouble that people really had, where it takes the whole job: folders with odd names, hostile text, decisions."""

import html.parser
import json
import re
import shutil
import sys
import unittest

import support
from support import DATA, make_improvement, read_lines, run_cli, run_process, write

PAYLOADS = [line["output"] for line in read_lines(DATA / "field_cases/37-script-breakout/candidate.jsonl")]


class Folders(support.TemporaryFolder):
    """Field case 39: a project folder with spaces and accents."""

    NAME = "Mes données (v2) & l'été 2026"

    def job(self, folder, place, runner, run=run_process):
        """Runs the whole job with *folder* as the current one; returns what gate says of it."""
        for stage in ("baseline", "candidate"):
            done = run("run", place, "--stage", stage, "--progress", "none", "--", sys.executable, runner, stage, cwd=folder)
            self.assertEqual(done.status, 0, done.stdout + done.stderr)
        for argv in (("validate", place), ("evaluate", place), ("review", place)):
            done = run(*argv, cwd=folder)
            self.assertEqual(done.status, 0, done.stdout + done.stderr)
        answer = json.loads(run("gate", place, "--json", cwd=folder).stdout)
        return [answer[key] for key in ("recommendation", "counts", "reasons")]

    def prepare(self, folder):
        """Copies the support agent's improvement below *folder*."""
        place = folder / "improvements" / "change one"
        shutil.copytree(support.ROOT / "examples/support-agent/confirmation-before-action", place)
        (folder / "my runners").mkdir()
        shutil.copy(support.ROOT / "examples/support-agent/agent.py", folder / "my runners/agent.py")
        return place

    def test_the_whole_job_from_inside_and_from_outside(self):
        odd, plain, outside = self.folder / self.NAME, self.folder / "plain", self.folder / "outside" / self.NAME
        self.prepare(odd)
        self.prepare(plain)
        self.prepare(outside)
        expected = self.job(plain, "change one", "my runners/agent.py", run_cli)
        self.assertEqual(self.job(odd, "change one", "my runners/agent.py"), expected)
        self.assertEqual(self.job(self.folder, outside / "improvements/change one", outside / "my runners/agent.py"), expected)
        meta = support.read_json(odd / "improvements/change one/candidate.meta.json")
        self.assertEqual(meta["command"][1:], ["my runners/agent.py", "candidate"])


class Scripts(html.parser.HTMLParser):
    """The script elements and event attributes of a page."""

    def __init__(self):
        super().__init__()
        self.scripts, self.handlers, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "script":
            self.scripts.append(sorted(name for name, _ in attrs))
        self.handlers += [name for name, value in attrs if name.startswith("on") or (value or "").lower().startswith("javascript:")]


def scripts_of(path):
    """A parsed page."""
    parser = Scripts()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


class Breakout(support.TemporaryFolder):
    """Field case 37: model output that closes the script tag, in every place that the page shows."""

    def page(self, name, texts):
        """The review of an improvement whose ids, outputs, reasons, errors, tags and steps hold *texts*."""
        cases = [{"id": text, "input": text, "expected": text, "tags": [text[:60]]} for text in texts]
        check = {"id": texts[0][:60], "type": "contains", "values": "never there"}
        step = {"kind": "tool", "name": texts[0], "args": {texts[0]: texts[0]}, "status": "ok", "result": texts[0]}
        baseline = [{"case_id": text, "output": "never there"} for text in texts]
        candidate = [{"case_id": text, "output": text, "steps": [step]} for text in texts[:-1]]
        error = {"class": "agent", "type": texts[0], "message": texts[0], "stderr_tail": texts[0]}
        candidate.append({"case_id": texts[-1], "status": "error", "error": error})
        folder = make_improvement(name, cases, [check], baseline=baseline, candidate=candidate)
        done = run_cli("review", name)
        self.assertEqual(done.status, 0, done.stderr)
        return folder

    def test_the_page_has_the_elements_of_a_harmless_one(self):
        hostile = self.page("hostile", PAYLOADS)
        harmless = self.page("harmless", [f"text {number}" for number in range(len(PAYLOADS))])
        found, expected = scripts_of(hostile / "review.html"), scripts_of(harmless / "review.html")
        self.assertEqual(found.scripts, expected.scripts)
        self.assertEqual(found.handlers, [])
        self.assertEqual(found.tags, expected.tags)
        text = (hostile / "review.html").read_text(encoding="utf-8")
        for markup in ("<script>document", "<img src=x", "<svg onload"):
            self.assertNotIn(markup, text)

    def test_the_other_reports_hold_no_markup_either(self):
        self.page("hostile", PAYLOADS)
        run_cli("gate", "hostile", "--junit", "report.xml", "--summary", "summary.md")
        for name in ("report.xml", "summary.md", "improvements/hostile/review.md"):
            text = re.sub(r"`[^`\n]*`", "", (self.folder / name).read_text(encoding="utf-8"))  # a code span shows what it holds
            for markup in ("<script", "<img", "<svg"):
                self.assertNotIn(markup, text, name)
        import xml.dom.minidom

        document = xml.dom.minidom.parse(str(self.folder / "report.xml"))
        names = [node.getAttribute("name") for node in document.getElementsByTagName("testcase")]
        self.assertEqual(set(names) - {"recommendation"}, set(PAYLOADS))


class OtherFiles(support.TemporaryFolder):
    """What lies in an improvement folder and is not what its name says."""

    def improvement(self):
        """An improvement with one evaluated stage."""
        return make_improvement("change", [{"id": "a", "input": 1}], [{"id": "x", "type": "contains", "values": "y"}], baseline=[{"case_id": "a", "output": "y"}])

    def test_a_named_pipe_is_refused_and_never_waited_for(self):
        import os

        for name in ("test_cases.jsonl", "evaluation.json", "baseline.jsonl"):
            with self.subTest(name):
                folder = self.improvement()
                (folder / name).unlink()
                os.mkfifo(folder / name)
                done = run_process("evaluate", "change", cwd=self.folder, timeout=20)
                self.assertEqual(done.status, 2)
                self.assertIn("named pipe", done.stderr)
                shutil.rmtree(folder)

    def test_a_device_is_refused_and_never_read_to_an_end_it_has_not(self):
        import os

        folder = self.improvement()
        (folder / "evaluation.json").unlink()
        os.symlink("/dev/zero", folder / "evaluation.json")
        done = run_process("evaluate", "change", cwd=self.folder, timeout=20)
        self.assertEqual(done.status, 2)
        self.assertIn("is a device, not a file", done.stderr)

    def test_recorded_answers_beside_the_stages_are_no_stage(self):
        folder = self.improvement()
        write(folder / "answers.jsonl", '{"case_id": "a", "output": "y"}\n')
        done = run_cli("evaluate", "change", "--json")
        self.assertEqual((done.status, list(json.loads(done.stdout)["stages"])), (0, ["baseline"]))


class Decisions(support.TemporaryFolder):
    """Field case 51: what the engine reads out of a decision written by hand."""

    def test_promotion_follows_the_decision_as_a_person_reads_it(self):
        expected = {"comment": 0, "quoted": 0, "single": 0, "hash-in-word": 2, "pending": 5, "empty": 5}
        for name, status in expected.items():
            with self.subTest(name):
                shutil.rmtree("improvements", ignore_errors=True)
                cases = [{"id": "a", "input": 1, "expected": "yes"}]
                check = {"id": "right", "type": "equals", "value": {"$case": "/expected"}}
                folder = make_improvement(
                    "change", cases, [check], baseline=[{"case_id": "a", "output": "no"}], candidate=[{"case_id": "a", "output": "yes"}]
                )
                run_cli("review", "change")
                evidence = support.read_json(folder / "comparison.json")["evidence"]
                text = (DATA / f"field_cases/51-comment-behind-the-decision/{name}.yaml").read_text(encoding="utf-8")
                text = text.replace("decision:", "status:").replace("reviewer:", "decided_by:")  # our names for the same
                write(folder / "decision.yaml", f"{text.rstrip()}\nevidence: {evidence}\n")
                done = run_cli("promote", "change")
                self.assertEqual(done.status, status, done.stdout + done.stderr)
                if name == "hash-in-word":
                    self.assertIn("#", done.stderr)


if __name__ == "__main__":
    unittest.main()

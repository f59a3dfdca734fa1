"""Which cases are kept back: drawn by cluster, with every label on both sides.

Cases of one cluster, and cases that ask the same, stay together. The draw depends on the
cases and a seed, not on the order of the lines.

Source: K. Sechidis, G. Tsoumakas, I. Vlahavas (2011), On the stratification of multi-label data,
ECML PKDD, 145-158 (iterative stratification).
"""

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from kaizen.cases.case import Case
from kaizen.foundation.errors import RefusedError, UsageError
from kaizen.foundation.jsonio import JsonObject, canonical_json, sha256_hex
from kaizen.foundation.text import counted

LARGE_DATASET = 200  # cases from which on more of them go to the search
SPLIT_SMALL, SPLIT_LARGE = 0.5, 0.6  # share of development below and from LARGE_DATASET on
MINIMUM_CASES = 10  # on either side; with fewer than 8 independent cases no look could ever be a yes (2^-8 < 0.005)
ADVISED_HOLDOUT = 100
ANY_LABEL = ""  # stands for the number of cases itself


class CaseUnit(NamedTuple):
    """Cases that stay together: their ids, how often each label occurs among them, the place in the draw."""

    ids: list[str]
    labels: dict[str, int]
    order: str


def plain_value(value: Any) -> Any:
    """*value* with its texts in compatible form, without case and with single blanks: what a reader takes for the same."""
    import unicodedata

    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFKC", value).casefold().split())
    if isinstance(value, dict):
        return {key: plain_value(item) for key, item in value.items()}
    return [plain_value(item) for item in value] if isinstance(value, list) else value


def question_text(document: JsonObject) -> str:
    """What the case *document* asks, input and context, as canonical JSON of plain values: two cases with one text are one question."""
    return canonical_json([plain_value(document["input"]), plain_value(document.get("context"))])


def case_labels(document: JsonObject) -> list[str]:
    """The failure labels of a case: its tags, and `critical` for one that is."""
    return sorted({*document.get("tags", ()), *(["critical"] if document.get("critical") else [])})


def cluster_names(cases: Iterable[Case]) -> dict[str, str]:
    """{id: name of what the case belongs to}: its cluster, or else the question; cases of one cluster by question are one."""
    joined: dict[str, str] = {}

    def root(name: str) -> str:
        while joined.setdefault(name, name) != name:
            name = joined[name]
        return name

    names = {}
    for case in cases:
        question = "q" + sha256_hex(question_text(case.document))
        name = "c" + case.document["cluster"] if case.document.get("cluster") else question
        joined[max(root(name), root(question))] = min(root(name), root(question))
        names[case.id] = name
    return {case_id: root(name) for case_id, name in names.items()}


def split_share(text: str, cases: int) -> float:
    """The share of development that *text* ('60:40') asks for; without one 1:1 below 200 cases, else 3:2. Raises UsageError."""
    if not text:
        return SPLIT_SMALL if cases < LARGE_DATASET else SPLIT_LARGE
    found = re.fullmatch(r"(\d{1,3}):(\d{1,3})", text)
    if not found or not int(found[1]) or not int(found[2]):
        raise UsageError("--split: is two numbers above 0, DEVELOPMENT:HOLDOUT", "for example: --split 60:40")
    return int(found[1]) / (int(found[1]) + int(found[2]))


def draw_holdout(cases: list[Case], share: float, seed: int, known: Collection[str] = ()) -> list[str]:
    """The ids of *cases* to keep back, in the order of *cases*: about 1 - *share* of them, and of each label.

    Of what holds an id in *known* nothing is kept back.
    """
    names = cluster_names(cases)
    grouped: dict[str, list[Case]] = {}
    for case in cases:
        grouped.setdefault(names[case.id], []).append(case)
    units = []
    for members in grouped.values():
        labels = {ANY_LABEL: len(members)}
        for label in (label for case in members for label in case_labels(case.document)):
            labels[label] = labels.get(label, 0) + 1
        questions = sorted(question_text(case.document) for case in members)
        units.append(CaseUnit([case.id for case in members], labels, sha256_hex(f"{seed}\n{questions}")))
    open_units = [unit for unit in units if not set(known).intersection(unit.ids)]
    held = held_units(open_units, units, share)
    kept_back = {case_id for unit in held for case_id in unit.ids}
    return [case.id for case in cases if case.id in kept_back]


def held_units(open_units: list[CaseUnit], units: list[CaseUnit], share: float) -> list[CaseUnit]:
    """Those of *open_units* that the draw keeps back; the others of *units* are development already."""
    total: dict[str, int] = {}
    for unit in units:
        for label, number in unit.labels.items():
            total[label] = total.get(label, 0) + number
    wanted = ({label: share * number for label, number in total.items()}, {label: (1 - share) * number for label, number in total.items()})
    held: list[CaseUnit] = []

    def assign(unit: CaseUnit, side: int) -> None:
        for label, number in unit.labels.items():
            wanted[side][label] -= number
        if side:
            held.append(unit)

    waiting = {unit.order: unit for unit in sorted(open_units, key=lambda unit: unit.order)}
    for unit in units:
        if unit.order not in waiting:
            assign(unit, 0)
    while waiting:
        left: dict[str, int] = {}
        for unit in waiting.values():
            for label, number in unit.labels.items():
                left[label] = left.get(label, 0) + number
        rarest = min(left, key=lambda label: (label == ANY_LABEL, left[label], label))
        for unit in [unit for unit in waiting.values() if rarest in unit.labels]:
            need = [(wanted[side][rarest], wanted[side][ANY_LABEL]) for side in (0, 1)]
            assign(unit, int(need[1] > need[0]))
            del waiting[unit.order]
    return held


def refuse_small_sides(development: list[Case], holdout: list[Case]) -> None:
    """Raises RefusedError when one side has too few cases, or the holdout too few that are independent, to tell anything."""
    for side, cases in (("development", development), ("the holdout", holdout)):
        if len(cases) < MINIMUM_CASES:
            message = f"{counted(len(cases), 'case')} for {side}; at least {MINIMUM_CASES} on each side can tell anything"
            raise RefusedError(message, f"collect more cases; {ADVISED_HOLDOUT} in the holdout are advised", "too_few_cases")
    clusters = len(set(cluster_names(holdout).values()))
    if clusters < MINIMUM_CASES:
        message = f"the holdout has {counted(clusters, 'cluster')}; at least {MINIMUM_CASES} can tell anything"
        raise RefusedError(message, "collect cases of more incidents, documents or users", "too_few_clusters")

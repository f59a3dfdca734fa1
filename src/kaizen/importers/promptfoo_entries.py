"""The assertions of one promptfoo test as named entries: sets, weights, thresholds."""

import math
from typing import Any

from kaizen.evaluators.registry import is_json_number
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import quoted
from kaizen.importers.gathered import APPROXIMATED, DROPPED, MAPPED, Gathered, ImportDropped
from kaizen.importers.promptfoo_checks import PromptfooCheck, PromptfooContext, core_entry, rendered_template


class PromptfooEntries:
    """Translates the assertions of one test into named entries; notes go to *gathered*."""

    def __init__(self, gathered: Gathered, context: PromptfooContext) -> None:
        self.gathered = gathered
        self.context = context
        self.entries: list[tuple[str, JsonObject]] = []
        self.left_out: list[JsonObject] = []

    def translated(self, document: Any, place: str) -> tuple[PromptfooCheck, JsonObject] | None:
        """(check, core entry) of one assertion, noted; None, and noted, when it is dropped."""
        check = PromptfooCheck(document if isinstance(document, dict) else {"type": "?"}, self.context, place)
        try:
            entry = core_entry(check)
        except ImportDropped as reason:
            self.gathered.note(DROPPED, check.full_type, place, str(reason))
            self.left_out.append(check.document)
            return None
        difference = "; ".join(filter(None, check.differences))
        self.gathered.note(APPROXIMATED if difference else MAPPED, f"{check.full_type} -> {entry['type']}", place, difference)
        return check, entry

    def add_all(self, documents: Any, place: str, threshold: Any = None) -> None:
        """Adds the entries of a list of assertions; with a *threshold* they become one entry that asks for a share of them."""
        documents = documents if isinstance(documents, list) else []
        if threshold is not None:
            self.add_share(documents, place, threshold, "test threshold")
            return
        for index, document in enumerate(documents):
            here = f"{place}.assert[{index}]"
            if isinstance(document, dict) and document.get("type") == "assert-set":
                self.add_set(document, here)
            elif found := self.translated(document, here):
                self.add(*found)

    def add(self, check: PromptfooCheck, entry: JsonObject) -> None:
        """Adds a top-level entry with its envelope."""
        self.entries.append((check.full_type, {**entry, **self.envelope(check.document, check.place, entry["type"] == "judge")}))

    def envelope(self, document: JsonObject, place: str, is_judge: bool = False) -> JsonObject:
        """metric, weight and severity of an assertion or a set."""
        made: JsonObject = {}
        metric, weight = document.get("metric"), document.get("weight", 1)
        if isinstance(metric, str) and metric:
            try:
                made["metric"] = rendered_template(metric, self.context.variables)
            except ImportDropped as reason:
                self.gathered.note(DROPPED, "metric", place, str(reason))
        if is_json_number(weight) and 0 <= weight <= 1e9 and weight != 1:
            made["weight"] = weight
        if weight == 0:
            told = "promptfoo lets it pass whatever it finds; here it keeps its status, and severity info gates nothing"
            self.gathered.note(APPROXIMATED, "weight 0", place, told)
        if weight == 0 or is_judge:
            made["severity"] = "info"
        return made

    def add_set(self, document: JsonObject, place: str) -> None:
        """Adds an assert-set: all of its entries, or with a threshold a share of them."""
        threshold = document.get("threshold")
        if threshold is not None:
            self.add_share(document.get("assert"), place, threshold, "assert-set threshold", document)
            return
        self.gathered.note(MAPPED, "assert-set -> all", place)
        children = self.children(document.get("assert"), place)
        if children:
            self.entries.append(("assert-set", {"type": "all", "of": children, **self.envelope(document, place)}))

    def children(self, documents: Any, place: str) -> list[JsonObject]:
        """Core entries of the assertions of a set; those that decide nothing (judges, weight 0) become entries of their own."""
        children = []
        for index, document in enumerate(documents if isinstance(documents, list) else []):
            here = f"{place}.assert[{index}]"
            if isinstance(document, dict) and document.get("type") == "assert-set":
                inner = self.children(document.get("assert"), here)
                children += [{"type": "all", "of": inner}] if inner else []
                continue
            found = self.translated(document, here)
            if found is None:
                continue
            if found[1]["type"] == "judge" or found[0].document.get("weight") == 0:
                self.add(*found)
            else:
                children.append(found[1])
        return children

    def add_share(self, documents: Any, place: str, threshold: Any, what: str, outer: JsonObject | None = None) -> None:
        """Adds one entry that asks for the share *threshold* of the assertions."""
        children = self.children(documents, place)
        if not is_json_number(threshold) or not children:
            if children:
                self.gathered.note(DROPPED, what, place, f"{quoted(str(threshold), 40)} is no number, so all have to pass")
                self.entries.append(("assert-set", {"type": "all", "of": children}))
            return
        needed = math.ceil(threshold * len(children) - 1e-9)
        envelope = self.envelope(outer or {}, place)
        if needed <= 0:
            self.gathered.note(APPROXIMATED, what, place, "it is 0, so nothing has to pass: the entry is only shown")
            envelope, needed = {**envelope, "severity": "info"}, 1
        told = "a number of checks out of all that were mapped, without weights and parts of a score"
        self.gathered.note(APPROXIMATED, f"{what} -> at_least", place, told)
        self.entries.append(("assert-set", {"type": "at_least", "n": min(needed, len(children)), "of": children, **envelope}))

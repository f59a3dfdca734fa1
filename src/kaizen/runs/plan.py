"""What a run is asked to do: which cases, and with which seeds."""

import hashlib

from kaizen.cases.case import Case
from kaizen.cases.dataset import Dataset
from kaizen.foundation.errors import UsageError
from kaizen.foundation.text import did_you_mean, listed, quoted


def trial_seed(seed: int, case_id: str, trial: int) -> int:
    """The seed of one trial, in 0..2^31-1; it depends on nothing else, so both stages get the same.

    >>> trial_seed(4242, "refund-001", 1) == trial_seed(4242, "refund-001", 1) != trial_seed(4242, "refund-001", 2)
    True
    """
    digest = hashlib.sha256(f"{seed}\n{case_id}\n{trial}".encode()).digest()  # an id holds no line end
    return int.from_bytes(digest[:4], "big") >> 1


def select_cases(dataset: Dataset, ids: list[str], tags: list[str], splits: list[str]) -> list[Case]:
    """The cases that have one of *ids*, one of *tags* and one of *splits* (an empty list asks nothing), in dataset order.

    Raises UsageError that repeats the selector when one of its values matches no case, or all together match none.
    """
    if not dataset.cases:
        raise UsageError("there are no test cases, so there is nothing to run", "add cases to test_cases.jsonl", "no_cases")
    for option, values, found_in in (("--id", ids, case_ids), ("--tag", tags, case_tags), ("--split", splits, case_splits)):
        known = {name for case in dataset.cases.values() for name in found_in(case)}
        # A misspelt name must not be answered with one that only the holdout has.
        shown = {name for case in dataset.cases.values() if case.id not in dataset.holdout for name in found_in(case)}
        for value in values:
            if value not in known:
                hint = did_you_mean(value, shown)
                raise UsageError(f"{option} {quoted(value)} matches no case; nothing was run", hint, "no_case_selected")
    chosen = [
        case
        for case in dataset.cases.values()
        if (not ids or case.id in ids)
        and (not tags or not set(tags).isdisjoint(case_tags(case)))
        and (not splits or not set(splits).isdisjoint(case_splits(case)))
    ]
    if not chosen:
        selectors = [f"--id {quoted(name)}" for name in ids]
        selectors += [f"--tag {quoted(name)}" for name in tags] + [f"--split {quoted(name)}" for name in splits]
        hint = "a case must meet each kind of selector"
        raise UsageError(f"no case meets {listed(selectors)}; nothing was run", hint, "no_case_selected")
    return chosen


def case_ids(case: Case) -> list[str]:
    """The id of *case*, in a list."""
    return [case.id]


def case_tags(case: Case) -> list[str]:
    """The tags of *case*."""
    return list(case.document.get("tags") or ())


def case_splits(case: Case) -> list[str]:
    """The split of *case* in a list; none when it has none."""
    split = case.document.get("split")
    return [split] if split else []

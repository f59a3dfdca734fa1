"""The holdout behind a seal: what feedback asks for, and how a change is noticed.

A seal holds a salted hash of each whole holdout case. Whoever changes, removes or adds one
between two exports is found out; the seal itself tells nothing of a case to a reader without it.
"""

import os
from typing import NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.dataset import Dataset
from kaizen.foundation.errors import RefusedError
from kaizen.foundation.jsonio import JsonObject, canonical_json, sha256_hex
from kaizen.foundation.text import counted, listed

SALT_BYTES = 16


class SealBreach(NamedTuple):
    """How many sealed cases are no longer there as they were, and how many are there that were not sealed."""

    lost: int
    new: int


def refuse_open_dataset(dataset: Dataset) -> None:
    """Raises RefusedError unless the dataset keeps a holdout apart: every case has a split and at least one is held out."""
    if dataset.is_legacy:
        raise RefusedError(
            "no case has a split, so nothing can be kept back from an optimizer",
            'give every case a "split": development, regression, challenge or holdout',
            "legacy_dataset",
        )
    bare = [f"{case.path}:{case.line}" for case in dataset.cases.values() if "split" not in case.document]
    if bare:
        text = f"{counted(len(bare), 'case')} without a split ({listed(bare, 3)}), so it is not known whether they may be shown"
        raise RefusedError(text, 'give every case a "split"', "case_without_split")
    if not dataset.holdout:
        raise RefusedError("no case is held out, so nothing can show what an optimizer could not know", HOLDOUT_HINT, "no_holdout")


HOLDOUT_HINT = 'set "split": "holdout" on cases that were not used for tuning, at least 100 where you can'


def case_seal(case: Case, salt: str) -> str:
    """The salted SHA-256 of the whole case."""
    return sha256_hex(salt + canonical_json(case.document))


def holdout_seal(dataset: Dataset) -> JsonObject:
    """A new seal of the holdout of *dataset*: salt, number of cases, their hashes in no order that tells anything."""
    salt = os.urandom(SALT_BYTES).hex()
    return {"salt": salt, "cases": len(dataset.holdout), "sha256": sorted(case_seal(dataset.cases[name], salt) for name in dataset.holdout)}


def seal_breach(dataset: Dataset, seal: JsonObject) -> SealBreach | None:
    """How the holdout differs from what *seal* holds; None when it does not."""
    salt, sealed = str(seal.get("salt", "")), list(seal.get("sha256", ()))
    now = {case_seal(dataset.cases[name], salt) for name in dataset.holdout}
    lost, new = len(set(sealed) - now), len(now - set(sealed))
    return SealBreach(lost, new) if lost or new else None

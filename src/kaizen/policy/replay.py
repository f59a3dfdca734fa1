"""Kept evidence under another policy: what flips, without running the agent."""

from kaizen.foundation.jsonio import JsonObject


def flips_document(before: JsonObject, after: JsonObject, holdout: frozenset[str]) -> JsonObject:
    """What differs between two documents of comparison.json about the same evidence: recommendation, reasons, cases.

    Ids in *holdout* are counted and not named.
    """
    changes = {row["id"]: row["change"] for row in before["cases"]}
    moved = [
        {"id": row["id"], "before": changes.get(row["id"]), "after": row["change"]}
        for row in after["cases"]
        if changes.get(row["id"]) != row["change"]
    ]
    shown = [entry for entry in moved if entry["id"] not in holdout]
    return {
        "flips": before["recommendation"] != after["recommendation"],
        "before": side_of_flip(before),
        "after": side_of_flip(after),
        "cases": shown,
        "holdout_cases": len(moved) - len(shown),
    }


def side_of_flip(comparison: JsonObject) -> JsonObject:
    """Recommendation, reasons and rates of one side of a replay, without ids of cases."""
    reasons = [{key: reason[key] for key in ("code", "rule", "text")} for reason in comparison["reasons"]]
    return {key: comparison[key] for key in ("recommendation", "counts", "rates", "delta", "evidence")} | {"reasons": reasons}

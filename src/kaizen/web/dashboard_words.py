"""What the dashboard answers in words: better, eligible, regressed, unchanged.

Every number was archived with the run that it is of; none is computed here, and none of two
cohorts are put together.
"""

from typing import NamedTuple

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, duration, listed, money, visible
from kaizen.web.dashboard_data import Board
from kaizen.web.review_words import (
    NOT_MEASURED,
    VERDICTS,
    basis_text,
    capitalised,
    change_sentence,
    delta_text,
    interval_text,
    rate_percent,
    sentence_end,
)

NAMED_REGRESSIONS = 6


class BoardAnswer(NamedTuple):
    """A tone, the word that it is for, a sentence, what supports it."""

    tone: str
    word: str
    sentence: str
    lead: str


def subject_row(board: Board) -> JsonObject | None:
    """The run that the page is about: the newest compared one that no later record replaces, else the newest; None without any."""
    trusted = [row for row in board.rows if not row["problem"]]
    compared = [row for row in trusted if row["recommendation"] is not None and not row["superseded_by"]]
    return next(reversed(compared or trusted), None)


def champion_row(board: Board) -> JsonObject | None:
    """The row of the champion; None when there is none."""
    return next((row for row in board.rows if row["is_champion"]), None)


def run_name(row: JsonObject) -> str:
    """'v2 (run 2)'; the number alone of a run that cannot be trusted."""
    return f"run {row['seq']}" if row["problem"] else f"{visible(row['agent_version'], 40)} (run {row['seq']})"


def day(text: str) -> str:
    """The day of a recorded time."""
    return str(text)[:10]


def board_verdict(board: Board) -> BoardAnswer:
    """The sentence at the top of the page."""
    row, champion = subject_row(board), champion_row(board)
    if board.problems:
        lead = "What stands below is shown as far as it can be read. Decide and promote nothing before the history is repaired."
        return BoardAnswer("bad", "Not what was written", f"{counted(len(board.problems), 'problem')} found in this history.", lead)
    if row is None:
        return BoardAnswer("calm", "Nothing is recorded yet", "The first entry is the anchor that candidates are compared with.", "")
    standing = f"Champion: {run_name(champion)} since {day(champion['promoted_at'][-1])}." if champion else "No version is champion yet."
    if row["recommendation"] is None:
        sentence = f"{run_name(row)} passes {rate_percent(row['rates']['candidate']['rate'])}; there is no candidate to compare with it."
        return BoardAnswer("calm", "Measured, not compared", sentence, standing)
    lead = f"{change_sentence(row)} {standing}"
    because = reason_text(row)
    rejected = row["decision"] is not None and row["decision"]["status"] == "rejected"
    if row["is_champion"]:
        said = better_than_before(board, row)
        return BoardAnswer(said.tone, said.word, said.sentence, change_sentence(row))
    if row["promoted_at"]:
        return BoardAnswer("good", "Promoted once", f"{run_name(row)}: {change_of(board, row)}.", lead)
    if rejected:
        return BoardAnswer(
            "bad",
            "Rejected",
            f"{run_name(row)} was rejected by {visible(row['decision']['decided_by'] or 'nobody named')}: {because}",
            lead,
        )
    tone = {"eligible": "good", "rejected": "bad"}.get(row["recommendation"], "warn")
    is_open = any(each.row["id"] == row["id"] for each in board.decisions)
    word = VERDICTS[row["recommendation"]] + (", decision open" if is_open else "")
    return BoardAnswer(tone, word, f"{run_name(row)}: {because if row['reasons'] else change_of(board, row) + '.'}", lead)


def reason_text(row: JsonObject) -> str:
    """The reason that decided; what was gained when none spoke against it."""
    if row["reasons"]:
        return sentence_end(visible(str(row["reasons"][0]["text"]), 300))
    return f"{counted(row['counts']['improved'], 'improvement')}, no rule speaks against it."


def change_of(board: Board, row: JsonObject) -> str:
    """'pass rate +25 percentage points against v2 (run 4)', as archived with *row*."""
    against = next((run_name(each) for each in board.rows if each["id"] == row["compared_with"]), "its baseline")
    return f"pass rate {delta_text(row)} against {against}"


def better_than_before(board: Board, row: JsonObject) -> BoardAnswer:
    """Whether the champion's *row* is better than what it was compared with."""
    delta = row["delta"]
    small = f"{rates_text(row)}. Recommendation {str(row['recommendation']).replace('_', ' ')}, {sentence_end(decided_text(row))}"
    sentence = f"{run_name(row)}: {change_of(board, row)}."
    if delta is None:
        return BoardAnswer("odd", "Not measured", sentence, small)
    sign = (delta["numerator"] > 0) - (delta["numerator"] < 0)
    tone, word = {1: ("good", "Better than before"), 0: ("calm", "The same as before"), -1: ("warn", "A lower pass rate than before")}[sign]
    return BoardAnswer(tone, word, sentence, small)


def decided_text(row: JsonObject) -> str:
    """'accepted by Ada on 2026-02-01', or that nobody has decided."""
    decision = row["decision"]
    if decision is None or decision["status"] == "pending":
        return "no decision is recorded"
    by = f"{decision['status'].replace('_', ' ')} by {visible(decision['decided_by'] or 'nobody named', 60)}"
    via = f" from inside {visible(decision['via'], 40)}" if decision["via"] else ""
    return f"{by}{via} on {visible(day(decision['decided_at'])) or 'an unknown day'}"


def rates_text(row: JsonObject) -> str:
    """'58.33 % before, 83.33 % after', with the interval of the latter."""
    rates = row["rates"]
    before = f"{rate_percent(rates['baseline']['rate'])} before, " if "baseline" in rates else ""
    small = ", ".join(filter(None, (interval_text(rates["candidate"]), basis_text(rates["candidate"]))))
    return f"{before}{rate_percent(rates['candidate']['rate'])}{' after' if before else ''} ({small})"


def board_answers(board: Board) -> list[tuple[str, BoardAnswer]]:
    """(question, answer) of the four questions that the page is for; a broken history is only quoted."""
    row, champion = subject_row(board), champion_row(board)
    compared = row if row and row["recommendation"] is not None else None
    answers = [
        ("Are we better than before?", champion_answer(board, champion)),
        ("Is the candidate eligible?", eligible_answer(board, compared)),
        ("Did anything regress?", regressed_answer(board, compared)),
    ]
    if board.problems:
        answers = [
            (question, BoardAnswer("odd", "Not to be relied on", f"The record says: {said.sentence}", "")) for question, said in answers
        ]
    return [*answers, ("Has a record been changed?", trust_answer(board))]


def champion_answer(board: Board, champion: JsonObject | None) -> BoardAnswer:
    """The answer to the first question."""
    if champion is None:
        return BoardAnswer("calm", "Not known", "No version has been promoted.", "")
    if champion["problem"]:
        return BoardAnswer("bad", "Not known", f"the champion is {run_name(champion)}, whose manifest cannot be trusted.", "")
    return better_than_before(board, champion)


def eligible_answer(board: Board, row: JsonObject | None) -> BoardAnswer:
    """The answer to the second question."""
    if row is None:
        return BoardAnswer("calm", "No candidate", "No candidate has been recorded and compared.", "")
    tone = {"eligible": "good", "rejected": "bad"}.get(row["recommendation"], "warn")
    more = [visible(str(each["text"]), 300) for each in row["reasons"][1:]]
    small = " ".join([sentence_end(capitalised(decided_text(row))), *[f"Also: {sentence_end(text)}" for text in more]])
    return BoardAnswer(
        tone, VERDICTS[row["recommendation"]], f"{run_name(row)}: {reason_text(row)}", f"{capitalised(change_of(board, row))}. {small}"
    )


def regressed_answer(board: Board, row: JsonObject | None) -> BoardAnswer:
    """The answer to the third question, with the cases that may be named."""
    if row is None:
        return BoardAnswer("calm", "Not compared", "There is no candidate to compare.", "")
    counts = row["counts"]
    lost = [f"{counted(counts[key], 'case')} {key}" for key in ("regressed", "weakened") if counts[key]]
    unknown = f"{counted(counts['not_comparable'], 'case')} could not be compared" if counts["not_comparable"] else ""
    cells = board.cases.cells(row["id"])
    names = [name for name, cell in cells.items() if cell[0] == "regressed"]
    small = f"Regressed: {case_names(names, counts['regressed'])}." if counts["regressed"] and cells else change_sentence(row)
    sentence = f"{run_name(row)}: {listed([*lost, *([unknown] if unknown else [])]) or 'no case passes less often'}."
    if lost:
        return BoardAnswer("bad" if counts["regressed"] else "warn", "Yes" if counts["regressed"] else "Weakened", sentence, small)
    return BoardAnswer("odd", "Not all known", sentence, "") if unknown else BoardAnswer("good", "No", sentence, change_sentence(row))


def case_names(names: list[str], count: int) -> str:
    """The first of *names*, and how many of *count* are not named (more, or of the holdout)."""
    shown = [visible(name, 80) for name in names[:NAMED_REGRESSIONS]]
    parts = shown + ([f"{len(names) - len(shown):,} more"] if len(names) > len(shown) else [])
    parts += [counted(count - len(names), "holdout case")] if count > len(names) else []
    return listed(parts, NAMED_REGRESSIONS + 2)


def trust_answer(board: Board) -> BoardAnswer:
    """The answer to the fourth question."""
    sizes = f"{counted(board.entries, 'entry', 'entries')}, {counted(len(board.rows), 'run')}"
    if board.problems:
        broken = sum(1 for problems in board.checks.values() if problems)
        small = f"{sizes}; {counted(broken, 'run')} with files that are not what was recorded."
        return BoardAnswer("bad", "Yes", f"{counted(len(board.problems), 'problem')}, listed at the top.", small)
    if not board.entries:
        return BoardAnswer("calm", "Nothing to check", "There is no record yet.", "")
    return BoardAnswer(
        "good", "No", f"Every hash verifies: {sizes}.", f"Anchor digest {board.anchor}; compare it with one that was kept elsewhere."
    )


def trial_cost(rates: JsonObject) -> str:
    """Mean cost of a trial; 'not measured' for none."""
    return NOT_MEASURED if rates.get("mean_cost_usd") is None else f"{money(rates['mean_cost_usd'])} USD"


def trial_time(rates: JsonObject) -> str:
    """Median duration of a trial; 'not measured' for none."""
    return NOT_MEASURED if rates.get("median_duration_ms") is None else duration(rates["median_duration_ms"] / 1000)


def stated_text(row: JsonObject) -> str:
    """The decision of *row* in one clause."""
    if row["superseded_by"] and not row["promoted_at"]:
        return "recorded again later"
    if row["recommendation"] is None:
        return "nothing to decide"
    decision = row["decision"]
    if decision is None or decision["status"] == "pending":
        return "pending"
    return f"{decision['status'].replace('_', ' ')} by {visible(decision['decided_by'] or 'nobody named', 60)}"

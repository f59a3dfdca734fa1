"""`kaizen dashboard`: the history on one page."""

import os
from argparse import Namespace

from kaizen.cases.decision import PENDING
from kaizen.commands.context import decision_of
from kaizen.commands.history import HISTORY, improvement_of_run, required_history
from kaizen.commands.table import Answer, command
from kaizen.foundation.errors import EXIT_NO, InputError
from kaizen.foundation.files import shown_path, write_file
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, visible
from kaizen.history.promotion import ACCEPTED_STATUSES, rule_obstacle
from kaizen.history.reading import History, HistoryRun
from kaizen.history.validation import DASHBOARD_FILE
from kaizen.web.dashboard import dashboard_page
from kaizen.web.dashboard_data import OpenDecision, read_board
from kaizen.web.dashboard_words import board_verdict


@command(
    "dashboard",
    "Writes dashboard.html: champion over time, the open decision, regressions, each case in each run, hash status; exits 1 when broken.",
    [HISTORY],
    "kaizen dashboard",
    group="history",
)
def command_dashboard(args: Namespace) -> Answer:
    """Writes the page beside the ledger. A history that is not what was written gets a page that says so first."""
    folder = required_history(args.history)
    board = read_board(folder, open_decision)
    path = os.path.join(folder, DASHBOARD_FILE)
    write_file(path, dashboard_page(board))
    verdict = board_verdict(board)
    message = visible(f"{verdict.word}: {verdict.sentence}", 300)
    lines = [message, *[f"  {visible(problem.text(), 300)}" for problem in board.problems[:10]]]
    lines += [f"  and {counted(len(board.problems) - 10, 'more problem')}"] if len(board.problems) > 10 else []
    lines += [f"  open: {visible(each.row['id'])}: {visible(each.text, 300)}" for each in board.decisions[:5]]
    lines += [f"  left out of the map, its outcomes cannot be read: {name}" for name in board.cases.unread[:10]]
    lines.append(f"page: {shown_path(path)}")
    champion = next((row["id"] for row in board.rows if row["is_champion"]), None)
    data: JsonObject = {"files": {"html": shown_path(path)}, "runs": len(board.rows), "champion": champion}
    data.update(open=[each.row["id"] for each in board.decisions], problems=[problem.text() for problem in board.problems])
    reason = board.problems[0].code if board.problems else "written"
    return Answer(EXIT_NO if board.problems else 0, reason, message, lines, data, f"open {shown_path(path)}")


def open_decision(history: History, run: HistoryRun, row: JsonObject) -> OpenDecision | None:
    """What a person has to decide about *run*, as its improvement stands; None when it was rejected meanwhile."""
    from shlex import quote

    place = run.manifest["improvement"]
    command = f"kaizen decide {quote(str(place.get('path') or place.get('name', '')))} --status {{}} --by NAME --because TEXT"
    obstacle = rule_obstacle(history, run)
    blocked = f"; it could not be promoted: {obstacle.text.removeprefix(f'{run.id}: ')}" if obstacle else ""
    try:
        improvement = improvement_of_run(history.folder, run)
        live = decision_of(improvement) if improvement else None
    except InputError:
        return OpenDecision(row, "decision.yaml of its improvement cannot be read", "", bool(obstacle))
    stated = live._asdict() if live and live.evidence == row["evidence"] else row["decision"] or {}
    status = stated.get("status") or PENDING
    if status == "rejected":
        return None
    if status in ACCEPTED_STATUSES:
        text = f"Accepted by {stated['decided_by'] or 'nobody named'}, and not promoted{blocked}"
        return OpenDecision(row, text, "" if obstacle else f"kaizen history promote {run.id}", bool(obstacle))
    text = f"Nobody has decided yet{blocked}"
    if improvement is None:
        return OpenDecision(row, f"{text}; the folder of its improvement is gone", "", True)
    if live is not None and live.evidence != row["evidence"]:
        return OpenDecision(row, f"{text}; its improvement has other evidence by now: review and record that", "", True)
    return OpenDecision(row, text, command.format("rejected" if obstacle else "accepted"), bool(obstacle))

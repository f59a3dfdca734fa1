"""`kaizen run --system ID`: a scored run of the commit at hand; and `kaizen resume`."""

from argparse import Namespace

from kaizen.campaigns.campaign import load_campaign, open_campaigns
from kaizen.campaigns.measuring import BASELINE_RUN, SCREENING
from kaizen.campaigns.screening import Screened, campaign_run, resume_in_campaign
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import EXIT_DONE, EXIT_INCOMPLETE, EXIT_INTERRUPTED, UsageError
from kaizen.foundation.jsonio import JsonObject, without_surrogates
from kaizen.foundation.text import counted, dollars, duration, listed, quoted, visible
from kaizen.lab.execution import RunOptions, RunOutcome, resume_run, start_run
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import BROKEN_OFF, DONE, TAINTED
from kaizen.lab.workspace import find_workspace

LONGEST_VARIANT = 200


def run_of_system(args: Namespace, others: list[str]) -> Answer:
    """Starts the run that *args* describe. Raises UsageError when *others*, options for improvements, were given as well."""
    if others:
        raise UsageError(f"{listed(others)} cannot go with --system", "the eval of the system says how items are run")
    if not args.variant or len(args.variant) > LONGEST_VARIANT or not args.variant.isprintable():
        message = "--variant NAME is missing" if not args.variant else f"--variant {quoted(args.variant)} is no name"
        raise UsageError(message, f"it names the idea that this commit tries, in up to {LONGEST_VARIANT} printable characters")
    title, description, hypothesis = (without_surrogates(text) for text in (args.title, args.description, args.hypothesis))
    options = RunOptions(args.system, args.variant, title, description, hypothesis, bool(args.diagnostic), args.max_items)
    options = options._replace(idea=args.idea, label=args.label, predict=args.predict)
    workspace = find_workspace()
    campaigns = open_campaigns(workspace, options.system)
    if campaigns:
        return screened_answer(campaign_run(workspace, campaigns[-1], options))
    beyond = [f"--{name}" for name in ("idea", "label", "predict") if getattr(args, name)]
    if beyond:
        raise UsageError(f"{listed(beyond)}: no campaign of {options.system} is open", "they belong to one: kaizen campaign open")
    return outcome_answer(start_run(workspace, options))


@command(
    "resume",
    "Goes on with a run of the lab that did not complete, or begins it anew from its commit.",
    [
        Argument("run", "RUN", "id of the run, such as r0042"),
        Argument("--restart", "", "begin anew; what was there is moved to attempt-N"),
    ],
    "kaizen resume r0042\nkaizen resume r0042 --restart",
    group="lab",
)
def command_resume(args: Namespace) -> Answer:
    """Goes on with the run; exit codes as for `kaizen run --system`."""
    workspace = find_workspace()
    own = run_store(workspace).read(args.run).get("campaign")
    if own:
        return screened_answer(resume_in_campaign(workspace, load_campaign(workspace, own["id"]), args.run, bool(args.restart)))
    return outcome_answer(resume_run(workspace, args.run, bool(args.restart)))


def outcome_answer(outcome: RunOutcome) -> Answer:
    """What is said of a run that has ended: exit 0 completed, 130 interrupted, else 4."""
    document = outcome.document
    run, state = document["id"], document["state"]
    message = f"{run}: {state}" + (f", {visible(document['message'])}" if document["message"] else "")
    message += f"; {result_words(document)}"
    following = {DONE: "", TAINTED: f"kaizen resume {run} --restart"}.get(state, f"kaizen resume {run}")
    code = EXIT_DONE if state == DONE else EXIT_INTERRUPTED if state == BROKEN_OFF else EXIT_INCOMPLETE
    lines = [f"{message}, {duration(document['seconds'])}", *(f"  {line}" for line in [*further_words(document), *outcome.notes])]
    return Answer(code, document["reason"] or state, message, lines, {"run": document}, following)


def result_words(document: JsonObject) -> str:
    """'accuracy 0.75 (mean of 3 of 4 items)', or why there is no number."""
    metric, result = document["metric"], document["result"]
    name = visible(metric["name"], 40)
    if result["status"] != "available":
        return f"{name} unavailable: {result['reason'].replace('_', ' ')}"
    return f"{name} {result['value']:.6g} ({metric['aggregation']} of {result['n']:,} of {counted(result['planned'], 'item')})"


def further_words(document: JsonObject) -> list[str]:
    """What else is to be known about the run: what kind it is, how items ended, cost, source."""
    counts = listed([f"{number:,} {status}" for status, number in document["counts"].items() if number])
    kind = [word for word in ("diagnostic", "limited") if document[word]]
    verdict = [] if document.get("campaign", {}).get("purpose") == SCREENING else [document["verdict"]]  # a screen has its own
    cost = [] if document["cost_usd"] is None else [f"cost {dollars(document['cost_usd'])}"]
    return [
        "; ".join(filter(None, [counts, f"commit {str(document['commit']['hash'])[:12]}", listed([*kind, *verdict])])),
        *cost,
    ]


# --- Inside a campaign -----------------------------------------------------------------

SCREEN_WORDS = {
    "promising": "promising: fresh trials are worth it",
    "worse": "worse",
    "no_signal": "no signal",
    "incomplete": "not judged, because too much is missing",
    "crashed": "not judged, because the run crashed",
    "tainted": "not judged, because what was measured is not one commit",
}


def screened_answer(screened: Screened) -> Answer:
    """What is said of a run inside a campaign: what became of it, the verdict in one sentence, and what comes next."""
    answer = outcome_answer(screened.outcome)
    body, system = screened.screen, screened.campaign.system
    if body is None:
        is_baseline = screened.purpose == BASELINE_RUN and answer.code == EXIT_DONE
        return answer._replace(next=f"kaizen noise --system {system}" if is_baseline else answer.next or "kaizen next")
    name, verdict = visible(body["variant"], 60), str(body["verdict"])
    sentence = f"{name} is {SCREEN_WORDS[verdict]}"
    if body["gain"] is not None:
        scale = "" if body["z"] is None else f", z {body['z']:.2f}"
        sentence += f"; gain {body['gain']:+.4g} over {visible(body['leader'], 60)} on {counted(body['n'], 'item')}{scale}"
    if body["label_z"] is not None:
        sentence += f"; on {quoted(body['label'])} {body['label_gain']:+.4g}, z {body['label_z']:.2f}"
    notes = ["the race was lost, so the rest was not asked"] if body["race_stopped"] else []
    if body["memorised"]:
        notes.append(f"holds text of {counted(body['memorised'], 'development item')}: it may have learnt the answers")
    following = {"promising": f"kaizen replicate {name}"}.get(verdict, f'kaizen discard {name} --lesson "…"')
    is_judged = verdict in ("promising", "worse", "no_signal")
    lines = [sentence, *[f"  note: {note}" for note in notes], *[f"  {line.strip()}" for line in answer.lines]]
    kept = answer._replace(message=sentence, lines=lines, data={**answer.data, "screen": body})
    return kept._replace(code=EXIT_DONE, reason=verdict, next=following) if is_judged else kept

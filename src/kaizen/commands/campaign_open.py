"""`kaizen campaign open`: freezes the contract, seals the holdout, commits both."""

from argparse import Namespace

from kaizen.campaigns.admission import OpeningRequest, prepare_opening
from kaizen.campaigns.contract import ContractTerms, contract_words, parsed_guards
from kaizen.campaigns.opening import open_campaign
from kaizen.commands.table import Answer, Argument, command
from kaizen.foundation.errors import UsageError
from kaizen.foundation.files import shown_path
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted
from kaizen.lab.workspace import find_workspace

MANY = {"action": "append", "default": []}
# Option, its key in the terms, and the least value it may have; 0 is excluded where it would mean nothing.
LEAST_TERMS = {
    "looks": 1,
    "look_trials": 1,
    "replicate_passes": 1,
    "budget_variants": 1,
    "budget_evaluations": 1,
    "min_effect": 0.0,
    "budget_usd": 0.0,
    "budget_hours": 0.0,
}


@command(
    "campaign open",
    "Opens a campaign: splits and seals the cases, freezes the contract, and commits both.",
    [
        Argument("--system", "ID", "the system to improve", {"required": True}),
        Argument("--sealed", "DIR", "new or empty folder outside the repository for the holdout and its looks", {"required": True}),
        Argument("--holdout", "FILE", "take the holdout from this JSONL file outside the repository", {"default": ""}),
        Argument("--split", "D:H", "development to holdout, where no case has a split (1:1; from 200 cases on 3:2)", {"default": ""}),
        Argument("--min-effect", "X", "smallest gain worth having, in units of the metric (0)", {"type": float, "default": 0.0}),
        Argument("--target", "X", "value of the metric at which the goal is reached", {"type": float, "default": None}),
        Argument("--guard", "METRIC=MARGIN", "metric that must not get worse by more than MARGIN; repeatable", MANY),
        Argument("--hard-gate", "METRIC", "metric that every case must pass; repeatable", MANY),
        Argument("--looks", "N", "questions to the holdout in all (5)", {"type": int, "default": None}),
        Argument("--alpha", "A", "chance of any false claim (0.05)", {"type": float, "default": None}),
        Argument("--look-trials", "N", "trials of each case and arm in a look (4)", {"type": int, "default": 4}),
        Argument("--replicate-passes", "N", "fresh passes of each arm in a replicate (3)", {"type": int, "default": 3}),
        Argument("--budget-variants", "N", "variants at most (40)", {"type": int, "default": 40}),
        Argument("--budget-evaluations", "N", "evaluations of a case at most", {"type": int, "default": None}),
        Argument("--budget-usd", "X", "US dollars at most", {"type": float, "default": None}),
        Argument("--budget-hours", "X", "hours at most", {"type": float, "default": None}),
        Argument("--guarded", "TEXT", "what keeps the agent from reading DIR, as you state it; repeatable", MANY),
        Argument("--dry-run", "", "show the contract and what it rests on; write nothing", {"action": "store_true"}),
    ],
    "kaizen campaign open --system refunds --sealed ~/sealed/refunds --min-effect 0.02",
    group="campaigns",
)
def command_campaign_open(args: Namespace) -> Answer:
    """Opens it, or says what it would be."""
    request = OpeningRequest(args.system, args.sealed, opening_terms(args), args.holdout, args.split, tuple(args.guarded))
    workspace = find_workspace()
    if args.dry_run:
        opening = prepare_opening(workspace, request)
        message = f"{opening.contract['campaign']} of {args.system} can be opened; nothing was written"
        return opening_answer("would_open", message, opening.contract, opening.notes, opening.sealed, None)
    campaign, notes, is_finished = open_campaign(workspace, request)
    body = campaign.events[0]["body"]
    message = f"{campaign.id} of {campaign.system} is open, commit {body['commit'][:12]}"
    return opening_answer("finished" if is_finished else "opened", message, campaign.contract, notes, body["sealed"], body["commit"])


def opening_terms(args: Namespace) -> ContractTerms:
    """The terms that the options name. Raises UsageError for one that is out of range."""
    for key, least in LEAST_TERMS.items():
        value = getattr(args, key)
        if value is not None and not least <= value < 1e12:
            raise UsageError(f"--{key.replace('_', '-')}: is at least {least:g}")
    if args.alpha is not None and not 0 < args.alpha <= 0.5:
        raise UsageError("--alpha: lies above 0, at most 0.5", "0.05 is usual")
    if args.target is not None and not abs(args.target) < 1e12:
        raise UsageError("--target: is a finite number")
    given = {key: getattr(args, key) for key in ContractTerms._fields if key != "guards"}
    return ContractTerms(**given, guards=parsed_guards(args.guard, args.hard_gate))


def opening_answer(reason: str, message: str, contract: JsonObject, notes: list[str], sealed: str, commit: str | None) -> Answer:
    """What was opened, in plain words."""
    words = contract_words(contract)
    sealed_line = f"sealed: {counted(contract['holdout']['cases'], 'case')} in {shown_path(sealed)}"
    lines = [message, *[f"  {line}" for line in (*words, sealed_line)], *[f"  note: {note}" for note in notes]]
    data: JsonObject = {"campaign": contract["campaign"], "commit": commit, "sealed": shown_path(sealed), "contract": contract}
    following = "kaizen next" if commit else "the same command without --dry-run"
    return Answer(0, reason, message, lines, {**data, "words": words, "notes": notes}, following)

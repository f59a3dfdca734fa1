"""A look: leader against reference on the sealed holdout; yes, no or void.

    begun   look 3, its level, both commits       in the ledger before anything is measured
    look    the answer                            spends the look that was begun

A look that was broken off goes on where it was, with the commits and the answers that it has in the sealed place: who kills it gets
no other draw. Where the sealed place cannot be written its runs lie in a temporary folder, and are gone
with the process: such a look is void when it was broken off. Whatever else goes wrong is void too.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from kaizen.campaigns.campaign import LOOKS_FILE, Campaign, record, writing_journal
from kaizen.campaigns.contamination import scan_diff
from kaizen.campaigns.measuring import (
    LOOK_RUN,
    Arm,
    Bench,
    Measure,
    arm_runs,
    holding_campaign,
    make_bench,
    report_integrity,
)
from kaizen.campaigns.rules import LOOKS_FOR_CLOSE, look_answer
from kaizen.campaigns.sealed import (
    append_look,
    can_write_sealed,
    copy_ledger,
    ledger,
    looks_so_far,
    open_sealed,
    sealed_folder,
    sealed_obstacle,
)
from kaizen.campaigns.splitting import cluster_names
from kaizen.campaigns.state import LOOK_TOLD, CampaignState, campaign_state, run_terms
from kaizen.cases.case import Case
from kaizen.foundation.chain import read_chain
from kaizen.foundation.errors import Interrupted, RefusedError
from kaizen.foundation.files import make_folder
from kaizen.foundation.jsonio import JsonObject, encode_compact
from kaizen.foundation.text import counted
from kaizen.lab.preflight import SIGNS
from kaizen.lab.provenance import commit_named, read_checkout
from kaizen.lab.runstore import DONE, INCOMPLETE
from kaizen.lab.workspace import Workspace
from kaizen.runs.workers import WorkFolders
from kaizen.stats.looks import look_level
from kaizen.stats.paired_runs import look_p_value, noise_floor

BEGUN, VOID = "begun", "void"
LOOK_BEGUN = "look_begun"  # in the journal, so that a ledger that was cut is noticed where it has no copy
LOOKS_FOLDER = "looks"
PASSED_ON = ("sealed_missing", "sealed_unreadable")  # a look is not spent where the holdout cannot be reached
SIGN_REASONS = tuple(reason for _, reason, _, _ in SIGNS)


class VoidLook(Exception):
    """A look that says nothing; its text is a stable code."""


def take_look(workspace: Workspace, campaign: Campaign, is_closing: bool = False) -> str:
    """`yes`, `no` or `void`: whether the leader is better than the reference, on the holdout, at the level of this look.

    Only with *is_closing* is the last look taken. Raises RefusedError, and spends nothing: no_looks_left, look_reserved,
    nothing_to_claim, and what forbids measuring here. Raises Interrupted when it was stopped; the same call goes on.
    """
    with ExitStack() as held:
        holding_campaign(held, workspace, campaign)
        refuse_short_ledger(campaign)
        told = untold_look(campaign)
        if told is not None:
            return told
        state = campaign_state(campaign)
        begun = begun_look(campaign)
        obstacle = sealed_obstacle(campaign)
        if obstacle and obstacle.reason in PASSED_ON:
            raise obstacle
        is_new = begun is None
        if begun is None:
            checkout = read_checkout(workspace.root)
            for version in (state.leader, state.reference):  # a commit that is not here costs no look
                commit_named(checkout, version.commit)
            begun = begin_look(campaign, state, is_closing)
        if all(event["body"]["look"] != begun["look"] for event in campaign.events if event["type"] == LOOK_BEGUN):
            record(campaign, LOOK_BEGUN, look=begun["look"])
        answer, reason = VOID, "broken_off"
        if is_new or begun["kept"]:
            answer, reason = measured_answer(workspace, campaign, state, begun)
        commits = begun["leader_commit"], begun["reference_commit"]
        append_look(campaign, answer, begun["level"], *commits, void_reason=reason)
        return untold_look(campaign) or answer


def refuse_short_ledger(campaign: Campaign) -> None:
    """Raises RefusedError (`ledger_changed`), and records it, when the journal knows of more looks, or beginnings, than the ledger."""
    events = read_chain(campaign.file(LOOKS_FILE))
    for kind, known in (("look", "look"), (LOOK_BEGUN, BEGUN)):
        lost = sum(event["type"] == kind for event in campaign.events) - sum(event["type"] == known for event in events)
        if lost > 0:
            message = f"the ledger of looks has lost {counted(lost, 'line')} that the journal knows of"
            report_integrity(campaign, "ledger_changed", message)
            raise RefusedError(message, "put back the file that Kaizen wrote; no look is taken until then", "ledger_changed")


def begun_look(campaign: Campaign) -> JsonObject | None:
    """The look that was begun and has no answer yet."""
    events = read_chain(campaign.file(LOOKS_FILE))
    body: JsonObject = events[-1]["body"] if events and events[-1]["type"] == BEGUN else {}
    return body or None


def begin_look(campaign: Campaign, state: CampaignState, is_closing: bool) -> JsonObject:
    """The body of the ledger's line that a look begins, which is on disk. Raises RefusedError when none may be taken."""
    terms = campaign.contract["looks"]
    spent, yes = looks_so_far(campaign)
    if spent >= terms["number"]:
        message = f"all {counted(terms['number'], 'look')} of {campaign.id} are spent"
        raise RefusedError(message, f"close it: kaizen campaign close --campaign {campaign.id}", "no_looks_left")
    if terms["number"] - spent <= LOOKS_FOR_CLOSE and not is_closing:
        message = f"the last look of {campaign.id} is kept for its close"
        raise RefusedError(message, f"close it: kaizen campaign close --campaign {campaign.id}", "look_reserved")
    if state.leader.commit == state.reference.commit:
        hint = "keep a variant first: kaizen next says which"
        raise RefusedError("the leader is what was confirmed last: there is nothing to claim", hint, "nothing_to_claim")
    body = {"look": spent + 1, "yes_before": yes, "level": look_level(terms["alpha"], terms["number"], spent + 1, yes)}
    sides = {"leader": state.leader.variant, "reference": state.reference.variant}
    commits = {"leader_commit": state.leader.commit, "reference_commit": state.reference.commit}
    is_kept = sealed_obstacle(campaign) is None and can_write_sealed(campaign)
    with writing_journal(campaign, LOOKS_FILE) as log:
        event = log.append(BEGUN, {**body, **sides, **commits, "kept": is_kept, "copied": is_kept})
    if is_kept:
        copy_ledger(campaign)
    found: JsonObject = event["body"]
    return found


def untold_look(campaign: Campaign) -> str | None:
    """The answer of the last look in the ledger that the journal does not have yet, and now has; None when it has all."""
    told = sum(event["type"] == "look" for event in campaign.events)
    answer = None
    begun = [event["body"] for event in read_chain(campaign.file(LOOKS_FILE)) if event["type"] == BEGUN]
    for number, body in enumerate(ledger(campaign)):
        if number >= told:
            answer = str(body["answer"])
            names = next(each for each in begun if each["look"] == body["look"])
            record(campaign, "look", **{key: body[key] for key in LOOK_TOLD}, leader=names["leader"], reference=names["reference"])
    return answer


# --- Measuring -------------------------------------------------------------------------


def measured_answer(workspace: Workspace, campaign: Campaign, state: CampaignState, begun: JsonObject) -> tuple[str, str]:
    """(answer, why it is void or '') of the look *begun*. Raises Interrupted, and RefusedError for PAUSE and STOP, as it may go on."""
    try:
        with look_bench(workspace, campaign, begun) as (bench, cases):
            return look_compared(bench, state, begun, cases), ""
    except Interrupted:
        raise
    except VoidLook as error:
        return VOID, str(error)
    except RefusedError as error:
        if error.reason in SIGN_REASONS:
            raise
        if error.reason == "sealed_changed":
            report_integrity(campaign, "sealed_changed", error.message)
        return VOID, error.reason
    except Exception as error:  # whatever it says may hold text of the holdout
        return VOID, type(error).__name__


@contextmanager
def look_bench(workspace: Workspace, campaign: Campaign, begun: JsonObject) -> Iterator[tuple[Bench, dict[str, Case]]]:
    """While the block runs, (the bench in the sealed place or a temporary folder, the sealed cases). Raises RefusedError."""
    cases = open_sealed(campaign)
    lines = [{key: value for key, value in case.document.items() if key != "split"} for case in cases.values()]
    data = b"".join(encode_compact(line).encode("utf-8") + b"\n" for line in lines)
    with WorkFolders() as folders:
        if begun["kept"]:
            folder = os.path.join(sealed_folder(campaign), LOOKS_FOLDER, str(begun["look"]))
            make_folder(folder)
        else:
            folder = folders.make()
        others = {str(campaign.contract["dataset"]["path"]): data}
        yield make_bench(workspace, campaign, read_checkout(workspace.root), folders, folder, others), cases


def look_compared(bench: Bench, state: CampaignState, begun: JsonObject, cases: dict[str, Case]) -> str:
    """The answer that fresh trials of both sides give. Raises VoidLook when one is not whole, or the leader has seen the holdout."""
    refuse_contaminated(bench, begun)
    trials = int(bench.campaign.contract["looks"]["trials"])
    arms = [Arm("leader", begun["leader"], begun["leader_commit"]), Arm("reference", begun["reference"], begun["reference_commit"])]
    items = tuple(name for name in bench.order() if name in cases)
    with arm_runs(bench, arms, Measure(LOOK_RUN, f"look\n{begun['look']}", items)) as pair:
        pair.measure(trials)
        states = pair.finish()
        leader, reference = pair.scores("leader"), pair.scores("reference")
    failed = sorted(set(states) - {DONE}, key=lambda state: state == INCOMPLETE)  # a run is incomplete because the other one failed
    if failed:
        raise VoidLook(failed[0])
    variance, passes = run_terms(state, [noise_floor(leader), noise_floor(reference)])
    found = look_p_value(leader, reference, cluster_names(cases.values()), variance, (trials, trials), passes)
    return look_answer(found.p, float(begun["level"]))


def refuse_contaminated(bench: Bench, begun: JsonObject) -> None:
    """Raises VoidLook when what the leader adds to the reference holds text of the holdout, which is recorded, or that cannot be told."""
    found = scan_diff(bench.campaign, bench.checkout._replace(head=begun["leader_commit"]), begun["reference_commit"])
    if found.canary or found.holdout_hits:
        message = "what the leader adds to the reference holds text of the sealed holdout"
        report_integrity(bench.campaign, "contaminated", message, variant=begun["leader"], commit=begun["leader_commit"], verdict=VOID)
        raise VoidLook("contaminated")
    if found.holdout_hits is None:
        raise VoidLook("not_scanned")

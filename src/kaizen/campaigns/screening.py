"""A run inside a campaign: may it begin, and what does one pass say of the variant.

Beyond what lab/preflight.py asks, in this order, the first that fails is told:

    budget_spent       variants, evaluations, money or hours of the contract are used up
    locked_changed     a locked file, or what system.md says of scoring, is not that of the opening (integrity)
    out_of_scope       the diff to the leader leaves the mutable globs, or links to what is outside of them
    duplicate          a complete run of this epoch had this tree, or this patch to this leader
    contaminated       an added line holds text of the holdout (integrity)
    hypothesis_missing a run that is no diagnostic has neither --hypothesis nor --idea

A screen is one pass in the frozen random order against the leader's stored trials, given up when the
race is lost, and fresh paired trials on the items of the label that the hypothesis names.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from kaizen.campaigns.arms import opening_commit, system_notes
from kaizen.campaigns.campaign import Campaign, record, refuse_closed
from kaizen.campaigns.contamination import scan_diff
from kaizen.campaigns.ideas import NO_LABEL
from kaizen.campaigns.measuring import (
    BASELINE_RUN,
    DIAGNOSTIC_RUN,
    LABEL_RUN,
    NOISE_RUN,
    REPLICATE_RUN,
    SCREENING,
    Arm,
    Bench,
    Measure,
    arm_runs,
    arm_scores,
    campaign_fields,
    check_recorded,
    difference_of,
    found_run,
    make_bench,
    merged_scores,
    passes_of,
    refuse_spent,
    report_integrity,
    scaled_effect,
    scaled_score,
    tell_end,
    tell_start,
)
from kaizen.campaigns.rules import LABEL_ITEMS, Ruling, screen_verdict
from kaizen.campaigns.state import UNCHANGED, CampaignState, campaign_state
from kaizen.foundation.errors import InputError, Interrupted, RefusedError, UsageError
from kaizen.foundation.globs import glob_test
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.process import kill_marked
from kaizen.foundation.text import counted, listed, quoted, visible
from kaizen.lab.definition import load_whole_system
from kaizen.lab.eval_runner import RUN_MARK
from kaizen.lab.execution import (
    ITEM_EVALUATORS,
    Place,
    RunOptions,
    RunOutcome,
    ask_rounds,
    copy_locked,
    finish_run,
    locked_hashes,
    open_session,
    patch_since,
    planned_items,
    refuse_state,
    run_document,
    run_notes,
)
from kaizen.lab.git import git_answer
from kaizen.lab.preflight import checked_tree, held_locks, refuse_signs
from kaizen.lab.provenance import Checkout, changed_paths, tree_hash
from kaizen.lab.reading import RACE_STOPPED
from kaizen.lab.runstore import BROKEN_OFF, CRASHED, DONE, INCOMPLETE, TAINTED, TIMED_OUT, RunWriter
from kaizen.lab.session import RunEnd, RunSession
from kaizen.lab.system import COUNT_AGGREGATIONS, SYSTEMS_FOLDER, System, front_matter
from kaizen.lab.watch import TreeWatch
from kaizen.lab.workspace import WORKSPACE_FOLDER, Workspace
from kaizen.runs.bridge import refuse_windows
from kaizen.runs.workers import WorkFolders
from kaizen.stats.paired_runs import Difference, Scores
from kaizen.stats.sequential import FutilityRace

GOES_ON = {
    NOISE_RUN: "kaizen noise --system {0}",
    LABEL_RUN: "kaizen run --system {0} again, as the screen was begun",
    REPLICATE_RUN: "kaizen replicate again, with the variant that it is about",
}
OWN_GLOBS = ("system.md", "lessons.md", "campaigns/**")  # of a system's folder, which the engine and notes change
UNFINISHED_VERDICTS = {INCOMPLETE: "incomplete", TIMED_OUT: "incomplete", CRASHED: "crashed", TAINTED: "tainted"}


class Screened(NamedTuple):
    """What became of a run inside a campaign: run.json with notes, the body of its screen event (None without a verdict), its campaign."""

    outcome: RunOutcome
    purpose: str
    screen: JsonObject | None
    campaign: Campaign


# --- Preflight -------------------------------------------------------------------------


def scoring_change(workspace: Workspace, here: System, bench: Bench) -> str | None:
    """What of the tree at hand decides the score and is not as it was when the campaign opened, in one sentence; None for nothing."""
    name = system_notes(bench.campaign)
    before, _ = front_matter(git_answer(workspace.root, "show", f"{opening_commit(bench.campaign)}:./{name}"), name)
    after, _ = front_matter(git_answer(workspace.root, "show", f"HEAD:./{name}"), name)
    for key in sorted(before.keys() | after.keys()):
        if key != "best_run" and before.get(key) != after.get(key):
            return f"system.md has another `{key}` than when the campaign opened"
    locked, now = bench.campaign.contract["locked"], locked_hashes(workspace, here)
    path = next((path for path in sorted(locked.keys() | now.keys()) if locked.get(path) != now.get(path)), None)
    return None if path is None else f"the locked file {quoted(path)} is not the one with which the campaign opened"


def variant_paths(workspace: Workspace, campaign: Campaign, checkout: Checkout, base: str) -> list[str]:
    """The paths, relative to the root, that HEAD changed since the commit *base*, without those that are the engine's own and notes."""
    prefix = os.path.relpath(workspace.root, os.path.realpath(checkout.root))
    own = f"{WORKSPACE_FOLDER}/{SYSTEMS_FOLDER}/{campaign.system}"
    is_own = glob_test(f"{own}/{name}" for name in OWN_GLOBS)
    return [path for path in (os.path.relpath(each, prefix) for each in changed_paths(checkout, base)) if not is_own(path)]


def refuse_out_of_scope(campaign: Campaign, paths: Sequence[str]) -> None:
    """Raises RefusedError (`out_of_scope`) for a path that no mutable glob means."""
    is_mutable = glob_test(campaign.contract["mutable"])
    beyond = [quoted(path) for path in paths if not is_mutable(path)]
    if beyond:
        message = f"{listed(beyond, 5)} may not change in {campaign.id}: only {listed(map(quoted, campaign.contract['mutable']), 10)} may"
        raise RefusedError(message, "take that change back, commit, and run again", "out_of_scope")


def refuse_links(workspace: Workspace, campaign: Campaign, paths: Sequence[str]) -> None:
    """Raises RefusedError (`out_of_scope`) for a symbolic link among *paths* to what no commit fixes, or what may not change."""
    is_mutable, root = glob_test(campaign.contract["mutable"]), os.path.realpath(workspace.root)
    for path in paths:
        place = workspace.path(path)
        if os.path.islink(place):
            target = os.path.relpath(os.path.realpath(place), root)
            if os.path.isabs(os.readlink(place)) or not is_mutable(target):
                message = f"{quoted(path)} is a symbolic link to a place that may not change in {campaign.id}, or that no commit fixes"
                raise RefusedError(message, "put the file itself there, commit, and run again", "out_of_scope")


def refuse_duplicate(bench: Bench, state: CampaignState, tree: str, patch: str, base: str) -> None:
    """Raises RefusedError (`duplicate`) when a complete, full run of this epoch had this tree, or this patch to the same leader."""
    for run, body in state.runs.items():
        if body.get("purpose") not in (SCREENING, BASELINE_RUN) or body.get("state") != DONE:
            continue
        is_same = body["tree"] == tree
        if not is_same and patch and body["patch_id"] == patch:
            with suppress(InputError):
                is_same = bench.store.read(run)["campaign"].get("base") == base
        if is_same:
            message = f"{run} measured just this, as {visible(body['variant'], 60)}: asking until the score is right is no measurement"
            raise RefusedError(message, "change something, or: kaizen replicate for fresh trials of a promising variant", "duplicate")


def refuse_unchanged(state: CampaignState, purpose: str, paths: Sequence[str]) -> None:
    """Raises RefusedError (`duplicate`) for a variant that differs from the leader in notes alone."""
    if purpose == SCREENING and not paths:
        message = f"this is {visible(state.leader.variant, 60)}, the leader, which {listed(state.stored, 3)} measured"
        raise RefusedError(message, "change something first", "duplicate")


def checked_hypothesis(bench: Bench, state: CampaignState, options: RunOptions) -> RunOptions:
    """*options* with the hypothesis and label of the idea. Raises RefusedError, UsageError or InputError when they do not go together."""
    idea = state.ideas.get(options.idea)
    if options.idea and idea is None:
        raise InputError(f"there is no idea {quoted(options.idea)} in {bench.campaign.id}", "kaizen idea list shows them", "no_idea")
    own = str((idea or {}).get("label") or "")
    if idea is not None and options.label and options.label != own:
        message = f"--label {quoted(options.label)}: {options.idea} was written down with {quoted(own) if own else 'no label'}"
        raise UsageError(message, "the label is frozen with the idea; another label is another idea")
    label = "" if (options.label or own) == NO_LABEL else options.label or own
    hypothesis = options.hypothesis or str((idea or {}).get("hypothesis") or "")
    if not hypothesis:
        hint = 'write it down first: kaizen idea add, then --idea I; or --hypothesis "if …, then …, because …"'
        raise RefusedError("a run inside a campaign needs a hypothesis: say what is tried and why", hint, "hypothesis_missing")
    is_small = bool(label) and len(bench.tagged(label)) < LABEL_ITEMS
    if is_small and idea is None:  # an idea was told so when it was written down
        message = f"the label {quoted(label)} has {counted(len(bench.tagged(label)), 'development item')}, and needs {LABEL_ITEMS}"
        raise InputError(message, "run without a label, or name a larger one", "label_too_small")
    label = "" if is_small else label
    return options._replace(hypothesis=hypothesis, label=label, title=options.title or str((idea or {}).get("title") or ""))


def memorised_items(campaign: Campaign, checkout: Checkout, variant: str, base: str) -> int:
    """How many development items stand in what HEAD adds to the commit *base*; 0 below two. Raises RefusedError (`contaminated`).

    Then it holds text of the holdout, which is recorded; so is a sealed place that was changed.
    """
    try:
        found = scan_diff(campaign, checkout, base)
    except RefusedError as error:
        if error.reason == "sealed_changed":
            report_integrity(campaign, error.reason, error.message)
        raise
    breach = found.integrity()
    if breach:
        report_integrity(campaign, "contaminated", breach, variant=variant, commit=checkout.head, verdict="void")
        hint = "a variant that has seen the holdout can never be confirmed; how it came by that is for a person to find out"
        raise RefusedError(f"{visible(variant, 60)} is void: {breach}", hint, "contaminated")
    return len(found.development_items) if found.is_memorised() else 0


def purpose_of(state: CampaignState, options: RunOptions, paths: Sequence[str]) -> str:
    """What the run is for. Raises RefusedError: not_baseline, no_baseline, no_noise."""
    if options.is_diagnostic or options.max_items is not None:
        return DIAGNOSTIC_RUN
    if options.variant == UNCHANGED:
        if paths:
            message = f"{quoted(UNCHANGED)} is the unchanged system, and {counted(len(paths), 'path')} changed since the opening"
            raise RefusedError(message, "name the variant otherwise, or run it from the commit of the opening", "not_baseline")
        return BASELINE_RUN
    if state.baseline is None:
        hint = f"from the unchanged tree: kaizen run --system {state.contract['system']} --variant {UNCHANGED}"
        raise RefusedError("there is no baseline yet to compare a variant with", hint, "no_baseline")
    if not state.stored:
        hint = f"kaizen noise --system {state.contract['system']}"
        raise RefusedError("there are no stored trials of the leader to compare a variant with", hint, "no_noise")
    return SCREENING


# --- The run ---------------------------------------------------------------------------


def campaign_run(workspace: Workspace, campaign: Campaign, options: RunOptions) -> Screened:
    """Records, executes and judges a run of the commit at hand. Raises RefusedError when the preflight forbids it."""
    refuse_windows()
    refuse_closed(campaign)
    here = load_whole_system(workspace, options.system)
    with held_locks(workspace, here), WorkFolders() as folders:
        refuse_signs(workspace)
        bench, state, checkout = bench_in_tree(workspace, campaign, here, folders, options)
        base = state.leader.commit
        paths = variant_paths(workspace, campaign, checkout, base)
        unfinished = unfinished_run(bench, options, str(checkout.head))
        if unfinished:
            return go_on(bench, checkout, unfinished, False)
        purpose = purpose_of(state, options, paths)
        refuse_out_of_scope(campaign, paths)
        refuse_links(workspace, campaign, paths)
        tree, (patch, text) = tree_hash(checkout), patch_since(checkout, base)
        if purpose != DIAGNOSTIC_RUN:
            refuse_duplicate(bench, state, tree, patch or "", base)
            refuse_unchanged(state, purpose, paths)
        memorised = memorised_items(campaign, checkout, options.variant, base) if paths else 0
        if purpose == SCREENING:
            options = checked_hypothesis(bench, state, options)
        evaluator = ITEM_EVALUATORS[here.kind](bench.judge, bench.system)
        items = bench.order()[: options.max_items]
        document = run_document(bench.judge, bench.system, options, checkout, bench.items, evaluator)
        of = campaign_fields(campaign, own_measure(purpose, str(checkout.head))._replace(idea=options.idea, label=options.label))
        document |= {
            "patch_id": patch,
            "population": {**document["population"], "selected_item_ids": list(items)},
            "seed": campaign.contract["seed"],
            "campaign": {**of, "base": base, "memorised": memorised, "predict": options.predict},
        }
        run = bench.store.create(document)
        tell_start(campaign, bench.store.read(run))
        with bench.store.writing(run) as writer:
            writer.event("planned", commit=checkout.head, tree=tree)
            if text:
                writer.keep_patch(text)
            outcome = execute_here(bench, checkout, writer, False)
        return judged(bench, outcome)


def bench_in_tree(
    workspace: Workspace, campaign: Campaign, here: System, folders: WorkFolders, options: RunOptions
) -> tuple[Bench, CampaignState, Checkout]:
    """(bench, state, checkout) of a run of the tree at hand. Raises RefusedError: budget_spent, dirty_tree …, integrity, locked_changed."""
    state = campaign_state(campaign)
    is_new = options.variant not in state.variants and not options.is_diagnostic and options.variant != UNCHANGED
    refuse_spent(campaign, state, int(campaign.contract["dataset"]["items"]), int(is_new))
    checkout = checked_tree(workspace)
    bench = make_bench(workspace, campaign, checkout, folders)
    check_recorded(campaign, bench.store, state.stored)
    changed = scoring_change(workspace, here, bench)
    if changed:
        report_integrity(campaign, "locked_changed", changed, variant=options.variant, commit=checkout.head)
        raise RefusedError(changed, "put it back as it was committed; another eval or dataset is another campaign", "locked_changed")
    return bench, state, checkout


def unfinished_run(bench: Bench, options: RunOptions, commit: str) -> str:
    """The screen of this variant and commit that was broken off, or ended before it was judged; '' for none."""
    if options.is_diagnostic or options.max_items is not None:
        return ""
    purpose = BASELINE_RUN if options.variant == UNCHANGED else SCREENING
    run = found_run(bench, Arm("", options.variant, commit), own_measure(purpose, commit))
    return "" if is_judged(bench.campaign, run) else run


def own_measure(purpose: str, commit: str) -> Measure:
    """The measurement that a run of *commit* in its own tree is."""
    return Measure(purpose, f"{purpose}\n{commit}", ())


def is_judged(campaign: Campaign, run: str) -> bool:
    """True when the journal holds what *run* said."""
    return any(event["type"] in ("screen", "baseline") and event["body"]["run"] == run for event in campaign.events)


def execute_here(bench: Bench, checkout: Checkout, writer: RunWriter, has_new_chance: bool) -> RunOutcome:
    """Has the run that *writer* holds answered in the tree at hand; a screen is given up when its race is lost."""
    document = writer.document()
    evaluator = ITEM_EVALUATORS[bench.system.kind](bench.judge, bench.system)
    copy_locked(bench.judge, writer)
    watch = TreeWatch(checkout, {bench.workspace.path(path): digest for path, digest in document["hashes"]["locked"].items()})
    with open_session(Place(bench.judge, bench.workspace.root, watch), bench.system, bench.store, writer, bench.limits) as session:
        if document["campaign"]["purpose"] == SCREENING:
            session.gives_up = ScreenRace(bench, document, session).end
        end = ask_rounds(session, evaluator, planned_items(document, bench.items), has_new_chance)
    finish_run(session, end, evaluator)
    tell_end(bench.campaign, writer.document())
    return RunOutcome(writer.document(), run_notes(writer, bench.items))


def resume_in_campaign(workspace: Workspace, campaign: Campaign, run: str, is_restart: bool) -> Screened:
    """Goes on with a run of *campaign*, or begins it anew, and judges it. Raises RefusedError when state or tree forbid it."""
    refuse_windows()
    refuse_closed(campaign)
    here = load_whole_system(workspace, campaign.system)
    with held_locks(workspace, here), WorkFolders() as folders:
        refuse_signs(workspace)
        options = RunOptions(campaign.system, UNCHANGED)
        bench, _, checkout = bench_in_tree(workspace, campaign, here, folders, options)
        return go_on(bench, checkout, run, is_restart)


def go_on(bench: Bench, checkout: Checkout, run: str, is_restart: bool) -> Screened:
    """Goes on with *run* from its own commit, and judges it."""
    before = bench.store.read(run)
    own = before["campaign"]["purpose"]
    if own not in (SCREENING, BASELINE_RUN, DIAGNOSTIC_RUN):
        hint = GOES_ON.get(own, "kaizen look").format(bench.campaign.system)
        raise RefusedError(f"{run} is a part of a measurement that its own command goes on with", hint, "part_of_measurement")
    if before["commit"]["hash"] != checkout.head:
        commit = str(before["commit"]["hash"])[:12]
        message = f"{run} was made from commit {commit}, and HEAD is {str(checkout.head)[:12]}"
        raise RefusedError(message, f"check that commit out, here or in a worktree: git switch --detach {commit}", "other_commit")
    tell_start(bench.campaign, before)
    is_over = before["state"] == DONE or before.get("reason") == RACE_STOPPED
    if is_over and not is_judged(bench.campaign, run) and own != DIAGNOSTIC_RUN:
        tell_end(bench.campaign, before)
        return judged(bench, RunOutcome(before, []))
    refuse_state({**before, "state": DONE} if is_over else before, is_restart)
    if is_restart:
        bench.store.restart(run)
    with bench.store.writing(run) as writer:
        writer.event("resumed", after=before["state"], restart=is_restart, mended=writer.notes)
        kill_marked(RUN_MARK + b"=" + str(before["mark"]).encode())
        outcome = execute_here(bench, checkout, writer, before["state"] in (INCOMPLETE, TIMED_OUT))
    return judged(bench, outcome)


# --- The race --------------------------------------------------------------------------


def race_end(order: Sequence[str], candidate: Scores, stored: Scores, effect: float, has_label: bool) -> int | None:
    """After how many items of *order* the race is lost, of scores in 0 to 1; None while it is not.

    Where a label is named the wish is only that nothing is harmed, and no rest can make the variant hopeless. An item that is not
    measured yet ends what can be said: what comes in another order would not be blind to it.
    """
    paired = [item for item in order if stored.get(item)]
    means = {item: sum(stored[item]) / len(stored[item]) for item in paired}
    headroom = None if has_label else sum(1 - mean for mean in means.values())
    race = FutilityRace(0.0 if has_label else effect, headroom)
    for number, item in enumerate(paired, 1):
        if not candidate.get(item):
            return None
        if race.add(candidate[item][0] - means[item], 1 - means[item]):
            return number
    return None


class ScreenRace:
    """The race of a screen while its answers come in."""

    def __init__(self, bench: Bench, document: JsonObject, session: RunSession) -> None:
        self.session, self.document, self.effect = session, document, scaled_effect(bench.campaign.contract)
        self.stored = merged_scores(bench.store, bench.state().stored)
        self.seen = 0

    def end(self) -> RunEnd | None:
        """The end of the run when the race is lost."""
        if len(self.session.last) == self.seen or not can_race(self.document):
            return None
        self.seen = len(self.session.last)
        found = {key[0]: scaled_score(line, self.document) for key, line in self.session.last.items()}
        scores = {item: [score] for item, score in found.items() if score is not None}
        label = self.document["campaign"]["label"]
        number = race_end(self.document["population"]["selected_item_ids"], scores, self.stored, self.effect, bool(label))
        return None if number is None else RunEnd(INCOMPLETE, RACE_STOPPED, f"given up after {counted(number, 'item')}: the race is lost")


def can_race(document: JsonObject) -> bool:
    """True when differences of scores lie within -1 to 1."""
    return document["campaign"]["range"] is not None or document["metric"]["aggregation"] in COUNT_AGGREGATIONS


# --- The verdict -----------------------------------------------------------------------


def judged(bench: Bench, outcome: RunOutcome) -> Screened:
    """What the run says, which is recorded. Raises Interrupted when it was broken off."""
    document, campaign = outcome.document, bench.campaign
    purpose, run = str(document["campaign"]["purpose"]), str(document["id"])
    if document["state"] == BROKEN_OFF:
        raise Interrupted(f"{run}: stopped by a signal; kaizen resume {run} goes on")
    if purpose == BASELINE_RUN and document["state"] == DONE:
        if bench.state().baseline is None:
            record(campaign, "baseline", run=run, commit=document["commit"]["hash"])
        return Screened(outcome, purpose, None, campaign)
    if purpose != SCREENING:
        return Screened(outcome, purpose, None, campaign)
    body = screen_body(bench, document)
    record(campaign, "screen", **body)
    return Screened(outcome, purpose, body, campaign)


def screen_body(bench: Bench, document: JsonObject) -> JsonObject:
    """The body of the screen event of the run of *document*; its fresh label trials are measured here."""
    state, own, run = bench.state(), document["campaign"], str(document["id"])
    leader = state.leader
    body: JsonObject = {"variant": document["variant"], "commit": document["commit"]["hash"], "run": run, "label_runs": None}
    body |= {"idea": own["idea"], "label": own["label"] or None, "predict": own["predict"], "leader": leader.variant}
    body |= {"leader_commit": leader.commit, **dict.fromkeys(("n", "gain", "se", "z", "label_n", "label_gain", "label_z"))}
    body |= {"verdict": "", "reasons": [], "memorised": own["memorised"], "race_stopped": False}
    raced = document["reason"] == RACE_STOPPED
    if document["state"] != DONE and not raced:
        return {**body, "verdict": UNFINISHED_VERDICTS[document["state"]], "reasons": [document["reason"]]}
    check_recorded(bench.campaign, bench.store, [run, *state.stored])
    candidate, stored = arm_scores(bench.store, run), merged_scores(bench.store, state.stored)
    order = document["population"]["selected_item_ids"]
    number = race_end(order, candidate, stored, scaled_effect(bench.campaign.contract), bool(own["label"])) if can_race(document) else None
    if number is not None:
        candidate = {item: candidate[item] for item in [item for item in order if stored.get(item)][:number]}
    overall = difference_of(state, bench.clusters(), candidate, stored, (1, passes_of(bench.store, state.stored)))
    body |= {"n": overall.n, "gain": overall.gain, "se": overall.se, "z": overall.z, "race_stopped": number is not None}
    label = None
    if own["label"] and number is None and (overall.z is None or overall.z > -1):
        label_runs, label = label_trials(bench, document, state)
        body |= {"label_runs": label_runs, "label_n": label.n, "label_gain": label.gain, "label_z": label.z}
    ruling = screen_verdict(overall, label)
    if number is not None and ruling.verdict != "worse":
        ruling = Ruling("no_signal", (RACE_STOPPED,))
    return {**body, "verdict": ruling.verdict, "reasons": list(ruling.reasons)}


def label_trials(bench: Bench, document: JsonObject, state: CampaignState) -> tuple[list[str], Difference]:
    """(runs of candidate and leader, how they differ) of fresh paired trials on the items of the label; not measured when a run failed."""
    own, leader, commit = document["campaign"], state.leader, str(document["commit"]["hash"])
    arms = [Arm("candidate", document["variant"], commit), Arm("leader", leader.variant, leader.commit)]
    measure = Measure(LABEL_RUN, f"label\n{commit}\n{leader.commit}", bench.tagged(own["label"]), idea=own["idea"], label=own["label"])
    trials = int(bench.campaign.contract["label_trials"])
    with arm_runs(bench, arms, measure, leader.commit) as pair:
        pair.measure(trials)
        is_whole = set(pair.finish()) == {DONE}
        runs = pair.ids()
    check_recorded(bench.campaign, bench.store, list(runs.values()))
    scores = [arm_scores(bench.store, runs[role]) if is_whole else {} for role in ("candidate", "leader")]
    return list(runs.values()), difference_of(state, bench.clusters(), scores[0], scores[1], (trials, trials))

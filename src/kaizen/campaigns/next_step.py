"""The next step of a campaign: one command, why, and what has to be remembered.

A function of the files alone: no clock, no environment, and the same bytes when it is asked twice. The first of these that
holds decides: a person is needed, a run is at work, one was interrupted or tainted, the tree is not a commit, something has
not been measured yet, a promising variant wants fresh trials, a variant wants a decision, a look is due, a rule says stop.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from kaizen.campaigns.campaign import Campaign
from kaizen.campaigns.conduct import contains_commit
from kaizen.campaigns.measuring import BASELINE_RUN, DIAGNOSTIC_RUN, LABEL_RUN, NOISE_RUN, REPLICATE_RUN, SCREENING
from kaizen.campaigns.rules import TAINTS
from kaizen.campaigns.screening import variant_paths
from kaizen.campaigns.standing import (
    campaign_stops,
    failures_by_label,
    is_look_due,
    is_unresolved,
    leader_scores,
    mean_score,
    memory_document,
    situation_document,
    verdict_words,
)
from kaizen.campaigns.state import (
    DISCARDED_IDEA,
    EXTEND,
    KEEPABLE,
    OPEN_IDEA,
    PROMISING,
    UNCHANGED,
    UNJUDGED,
    CampaignState,
    CampaignVariant,
    campaign_state,
)
from kaizen.foundation.errors import EXIT_DONE, EXIT_HUMAN, EXIT_NO, KaizenError
from kaizen.foundation.jsonio import JsonObject, encode_readable
from kaizen.foundation.text import counted, listed, visible
from kaizen.lab.preflight import SIGNS, tree_document
from kaizen.lab.provenance import git_write_obstacle, read_checkout
from kaizen.lab.runfolder import run_store
from kaizen.lab.runstore import BROKEN_OFF, DONE, PLANNED, RUNNING, TAINTED
from kaizen.lab.workspace import Workspace

MOST_BYTES = 6000  # of the whole document: it must survive in a small memory
DIAGNOSTIC_ITEMS = 5
PATHS_TOLD = 10
IN_TREE = (BASELINE_RUN, DIAGNOSTIC_RUN, SCREENING)  # purposes of runs that take place in the tree at hand
NEED_GIT = ("keep", "discard", "propose", "checkout")  # actions that make commits or move HEAD
STOP_ACTION, HUMAN_ACTION, CLOSE_ACTION, PROPOSE = "stop", "human", "close", "propose"


class Facts(NamedTuple):
    """What the files say beside the journal: signs of a person, the tree, and {run: state} of runs that the journal saw no end of."""

    signs: list[str]
    tree: JsonObject
    open_runs: dict[str, str]
    contains_leader: bool
    has_changes: bool  # HEAD follows the leader, and more than notes differ
    contains: dict[str, bool]  # by variant that waits for a decision: whether HEAD contains it


class Step(NamedTuple):
    """What is to be done: action, command, why, the variant and idea it is about ('' for none)."""

    action: str
    command: list[str]
    why: str
    variant: str = ""
    idea: str = ""


def read_facts(workspace: Workspace, campaign: Campaign, state: CampaignState) -> Facts:
    """The facts of now."""
    store = run_store(workspace)
    signs = [name for name, *_ in SIGNS if os.path.lexists(os.path.join(workspace.store_folder, name))]
    runs = [run for run, body in state.runs.items() if body.get("state") in (None, BROKEN_OFF)]
    open_runs = {}
    for run in runs:
        try:
            open_runs[run] = str(store.read(run)["state"])
        except KaizenError:
            open_runs[run] = "missing"
    tree = tree_document(workspace)
    if tree["head"] is None:
        return Facts(signs, tree, open_runs, False, False, {})
    checkout = read_checkout(workspace.root)
    waiting = {each.name: contains_commit(checkout, each.commit) for each in state.undecided()}
    follows = contains_commit(checkout, state.leader.commit)
    has_changes = follows and bool(variant_paths(workspace, campaign, checkout, state.leader.commit))
    return Facts(signs, tree, open_runs, follows, has_changes, waiting)


# --- The list --------------------------------------------------------------------------


class Steps:
    """The steps that could be next, by rule; each is None when its rule does not hold."""

    def __init__(self, campaign: Campaign, state: CampaignState, facts: Facts, stops: list[str]) -> None:
        self.campaign, self.state, self.facts, self.stops = campaign, state, facts, stops
        self.named = ["--campaign", campaign.id]
        self.status = ["kaizen", "campaign", "status", *self.named]

    def first(self) -> Step:
        """The first step whose rule holds."""
        return next(step for step in self.all() if step is not None)

    def all(self) -> Iterator["Step | None"]:
        """The steps by rank."""
        yield self.closed_or_person()
        yield self.at_work()
        yield self.interrupted()
        yield self.tainted()
        yield self.unclean()
        yield self.unmeasured()
        yield self.replicate()
        yield self.decide()
        yield self.look()
        yield self.stop()
        yield self.propose()

    def run_words(self, variant: str, *more: str) -> list[str]:
        """`kaizen run` of *variant*."""
        return ["kaizen", "run", "--system", self.campaign.system, "--variant", variant, *more]

    def closed_or_person(self) -> "Step | None":
        """The campaign is over, or a person has to look."""
        if self.state.closed:
            return Step(STOP_ACTION, self.status, f"{self.campaign.id} is closed")
        if "STOP" in self.facts.signs:
            return Step(STOP_ACTION, self.status, "a person has put the file STOP into the store")
        if "PAUSE" in self.facts.signs:
            return Step(HUMAN_ACTION, self.status, "a person has put the file PAUSE into the store; it goes on when the file is gone")
        lost = [run for run, state in self.facts.open_runs.items() if state == "missing"]
        if lost:
            return Step(HUMAN_ACTION, self.status, f"integrity: {listed(lost, 3)} of the journal cannot be read")
        if "integrity" in self.stops:
            worst = self.state.unsettled()[-1]
            what = visible(str(worst.get("message") or worst.get("kind")), 300)
            return Step(HUMAN_ACTION, self.status, f"integrity: {what}; a person settles it: kaizen note TEXT --accept-integrity NAME")
        return None

    def at_work(self) -> "Step | None":
        """A run is at work: wait."""
        live = [run for run, state in self.facts.open_runs.items() if state in (PLANNED, RUNNING)]
        if not live:
            return None
        return Step("wait", ["kaizen", "status", "--json"], f"{listed(live, 3)} at work: wait until it has ended, then ask again")

    def is_here(self, run: str) -> bool:
        """True when HEAD is the commit of *run*, and nothing else is in the tree."""
        tree = self.facts.tree
        return self.state.runs[run].get("commit") == tree["head"] and not tree["dirty"] and not tree["obstacle"]

    def interrupted(self) -> "Step | None":
        """A run was broken off, or not judged: the same command goes on."""
        for run, body in self.state.runs.items():
            purpose, variant = str(body.get("purpose")), str(body.get("variant"))
            is_open = run in self.facts.open_runs and self.facts.open_runs[run] != DONE
            if purpose == SCREENING and not self.is_judged(run, variant):
                return self.resume(run, variant, str(body.get("commit")))
            if is_open and purpose == BASELINE_RUN and self.state.baseline is None and self.is_here(run):
                return self.resume(run, variant, str(body.get("commit")))
            again = self.same_command(purpose, variant) if is_open else []
            if again:
                return Step("resume", again, f"{run}, a {purpose} run, was interrupted: the same command goes on with it", variant)
        return None

    def is_judged(self, run: str, variant: str) -> bool:
        """True when the screen *run* has its verdict, is not the last of its variant, or is tainted, which is another step's matter."""
        found = self.state.variants[variant]
        is_last = found.runs[-1:] == [run]
        return not is_last or bool(found.decision) or found.verdict != UNJUDGED or self.state.runs[run].get("state") == TAINTED

    def resume(self, run: str, variant: str, commit: str) -> "Step | None":
        """Goes on with *run* where it can be; None in a tree that is not clean, which comes first."""
        if self.is_here(run):
            return Step("resume", ["kaizen", "resume", run], f"{run} of {visible(variant, 60)} has no verdict yet: it goes on", variant)
        if self.facts.tree["dirty"] or self.facts.tree["obstacle"] or not commit:
            return None
        return self.go_to(commit, f"{run} of {visible(variant, 60)} was interrupted, and goes on from its own commit")

    def is_decided(self, variant: str) -> bool:
        """True for a variant that was decided about."""
        found = self.state.variants.get(variant)
        return found is not None and bool(found.decision)

    def same_command(self, purpose: str, variant: str) -> list[str]:
        """The command that goes on with arms of *purpose*; [] for a purpose whose runs take place in the tree, or that is settled."""
        if purpose == NOISE_RUN and not self.state.stored:
            return ["kaizen", "noise", "--system", self.campaign.system]
        waiting = [each.name for each in self.state.undecided() if each.verdict == PROMISING]
        name = variant if variant in waiting else waiting[0] if waiting else ""
        return ["kaizen", "replicate", name, *self.named] if purpose == REPLICATE_RUN and name else []

    def tainted(self) -> "Step | None":
        """The tree changed under a run: begin it anew, unless that has happened twice."""
        if self.state.taints >= TAINTS:
            return None
        for run, body in reversed(self.state.runs.items()):
            if body.get("purpose") not in (LABEL_RUN, None):
                variant = str(body.get("variant"))
                is_open = body.get("state") == TAINTED and body["purpose"] in IN_TREE and not self.is_decided(variant)
                if is_open and self.is_here(run):
                    why = f"{run} of {visible(variant, 60)} is tainted: the tree changed while it was at work"
                    return Step("restart", ["kaizen", "resume", run, "--restart"], why, variant)
                return None
        return None

    def unclean(self) -> "Step | None":
        """The tree is not exactly a commit."""
        tree = self.facts.tree
        if tree["obstacle"]:
            return Step("clean", ["kaizen", "status", "--json"], f"{tree['obstacle']['message']}: {tree['obstacle']['hint']}")
        if tree["dirty"]:
            paths = listed([visible(each["path"], 60) for each in tree["dirty"]], 3)
            why = f"{counted(len(tree['dirty']), 'path')} not as committed ({paths}): commit what belongs to the variant, by hand"
            return Step("clean", ["kaizen", "status", "--json"], why)
        return None

    def unmeasured(self) -> "Step | None":
        """Baseline, noise floor, whether the effect can be seen at all, drift."""
        state = self.state
        if state.baseline is None:
            if self.facts.has_changes or not self.facts.contains_leader:
                return self.go_to(state.leader.head, "the baseline is measured at the commit with which the campaign opened")
            seen = [body for body in state.runs.values() if body.get("purpose") == DIAGNOSTIC_RUN and body.get("state") == DONE]
            if not seen:
                words = self.run_words(UNCHANGED, "--diagnostic", "--max-items", str(DIAGNOSTIC_ITEMS))
                return Step("diagnostic", words, "no run yet: look at a few answers, and whether they are scored rightly")
            return Step("baseline", self.run_words(UNCHANGED), "no full run of the unchanged system yet")
        noise = ["kaizen", "noise", "--system", self.campaign.system]
        if state.noise is None:
            return Step("noise", noise, "how much scores vary by themselves is not known yet")
        if is_unresolved(state):
            least = f"{state.mde():.3g}" if state.mde() is not None else "not known"
            why = f"the smallest gain that can be seen ({least}) is above what is wanted: more items or trials, or a person accepts it"
            return Step("guide", ["kaizen", "plan", "--system", self.campaign.system], why)
        if state.is_drifted or not state.stored:
            why = "the leader's stored trials drifted" if state.is_drifted else "the leader has no stored trials"
            return Step("baseline", noise, f"{why}: measure it anew")
        return None

    def go_to(self, commit: str, why: str) -> Step:
        """Check *commit* out, by hand."""
        return Step("checkout", ["git", "switch", "--detach", commit], why)

    def replicate(self) -> "Step | None":
        """The best promising variant wants fresh trials."""
        waiting = [each for each in self.state.undecided() if self.wants_trials(each)]
        if not waiting:
            return None
        best = max(waiting, key=lambda each: (each.screen or {}).get("z") or 0.0)
        found = best.replicate
        words = verdict_words(self.state, best.name)
        why = f"screen {words}: fresh trials are missing" if found is None else f"fresh trials say {found['verdict']}: {words}"
        return Step("replicate", ["kaizen", "replicate", best.name, *self.named], why, best.name)

    def wants_trials(self, variant: CampaignVariant) -> bool:
        """Whether *variant* is promising against the leader of now, and its fresh trials are missing, too few, or once incomplete."""
        found = variant.replicate
        if found is not None:
            return found.get("leader") == self.state.leader.variant and (
                found["verdict"] == EXTEND or (found["verdict"] == "incomplete" and variant.replicates == 1)
            )
        return variant.verdict == PROMISING and (variant.screen or {}).get("leader") == self.state.leader.variant

    def decide(self) -> "Step | None":
        """A variant has its verdict: keep it or give it up."""
        for variant in self.state.undecided():
            found, name = variant.replicate, variant.name
            is_keepable = found is not None and found["verdict"] == KEEPABLE and found.get("leader") == self.state.leader.variant
            if is_keepable and not variant.is_memorised():
                if not self.facts.contains.get(name):
                    return self.go_to(variant.commit, f"{visible(name, 60)} is to be kept, and HEAD does not contain it")
                words = verdict_words(self.state, name).replace(PROMISING, KEEPABLE)
                return Step("keep", ["kaizen", "keep", name, *self.named], f"{words} on fresh trials, guards passed", name)
            return self.discard(variant, is_keepable)
        for variant in reversed(self.state.variants.values()):
            if variant.is_parked and variant.decision != DISCARDED_IDEA:
                return self.discard(variant, False)
        return None

    def discard(self, variant: CampaignVariant, is_keepable: bool) -> Step:
        """Give *variant* up, with what is known as the lesson unless there is a better one."""
        words = verdict_words(self.state, variant.name)
        why = f"{words}: say in the lesson what was expected, what happened, and what that rules out"
        if variant.is_parked:
            words = "parked: the holdout said no twice to what development items said was there"
            why = f"{words}; the leader is {visible(self.state.leader.variant, 60)} again"
        elif is_keepable:
            words = f"{words}, but it holds text of development items"
            why = f"{words}: only a person may keep it, with --accept-memorised NAME"
        elif variant.verdict == PROMISING:
            words = f"{words}, against a leader that is no more"
            why = f"{words}: bring it onto {visible(self.state.leader.variant, 60)} and run it as another variant"
        return Step("discard", ["kaizen", "discard", variant.name, "--lesson", words, *self.named], why, variant.name)

    def look(self) -> "Step | None":
        """The leader has gained enough for a question to the holdout."""
        if not is_look_due(self.state):
            return None
        why = f"the leader has gained {self.state.leader_gain()[0]:+.3g} over the reference, enough for a look to see"
        return Step("look", ["kaizen", "look", *self.named], why)

    def stop(self) -> "Step | None":
        """A rule ends the search."""
        if not self.stops:
            return None
        why = f"{listed([code.replace('_', ' ') for code in self.stops])}: the search ends"
        return Step(CLOSE_ACTION, ["kaizen", "campaign", "close", *self.named], why)

    def propose(self) -> Step:
        """Another idea, or the one that waits."""
        ideas = [name for name in self.state.ideas if self.state.idea_status(name) == OPEN_IDEA]
        head, leader = self.facts.tree["head"], self.state.leader
        if not self.facts.contains_leader:
            return self.go_to(leader.head, "variants begin at the leader, and HEAD does not contain it")
        if not ideas:
            why = "write one hypothesis down: kaizen idea add; read the worst failures first, and what is to be avoided"
            if self.state.is_fresh_context:
                why = f"a plateau: go on in a new session that knows nothing but this; {why}"
            return Step(PROPOSE, ["kaizen", "idea", "list", *self.named], why)
        tested = {each.commit for each in self.state.variants.values()} | {each.head for each in self.state.versions.values()}
        if head in tested or not self.facts.has_changes:
            why = f"make {ideas[0]} ({visible(self.state.ideas[ideas[0]]['title'], 80)}), commit it, and ask again"
            return Step(PROPOSE, ["kaizen", "idea", "list", "--status", OPEN_IDEA, *self.named], why, idea=ideas[0])
        why = f"the commit at hand was not measured yet: {visible(self.state.ideas[ideas[0]]['title'], 80)}"
        return Step("run", self.run_words(self.free_name(), "--idea", ideas[0]), why, self.free_name(), ideas[0])

    def free_name(self) -> str:
        """The next name of the form v001."""
        numbers = [int(name[1:]) for name in self.state.variants if name[:1] == "v" and name[1:].isdecimal() and name.isascii()]
        return f"v{max(numbers, default=0) + 1:03d}"


# --- The document ----------------------------------------------------------------------


class NextStep(NamedTuple):
    """The step, its exit code, and the document of --json."""

    step: Step
    code: int
    document: JsonObject


def next_step(workspace: Workspace, campaign: Campaign) -> NextStep:
    """What is next in *campaign*. Raises RefusedError when its files were changed."""
    state = campaign_state(campaign)
    facts = read_facts(workspace, campaign, state)
    scores = leader_scores(run_store(workspace), state)
    dev_score = mean_score(scores)
    stops = campaign_stops(state, dev_score, facts.signs)
    step = where_git_writes(workspace, campaign, state, Steps(campaign, state, facts, stops).first())
    code = {STOP_ACTION: EXIT_NO, CLOSE_ACTION: EXIT_NO, HUMAN_ACTION: EXIT_HUMAN, "guide": EXIT_HUMAN}.get(step.action, EXIT_DONE)
    document: JsonObject = {
        "schema": 1,
        "campaign": campaign.id,
        "system": campaign.system,
        "action": step.action,
        "variant": step.variant or None,
        "idea": step.idea or None,
        "command": step.command,
        "why": step.why,
        "should_continue": code == EXIT_DONE and not stops,
        "stop": stops,
        "fresh_context": state.is_fresh_context,
        "situation": situation_document(state, dev_score),
        "memory": memory_document(campaign, state, failures_by_label(workspace, state, scores)),
    }
    if facts.tree["dirty"]:
        document["paths"] = [visible(each["path"], 80) for each in facts.tree["dirty"][:PATHS_TOLD]]
    return NextStep(step, code, document)


def where_git_writes(workspace: Workspace, campaign: Campaign, state: CampaignState, step: Step) -> Step:
    """*step*, or where it needs commits and none can be made here, the way to a clone in which they can."""
    if step.action not in NEED_GIT:
        return step
    obstacle = git_write_obstacle(read_checkout(workspace.root))
    if obstacle is None:
        return step
    words = ["kaizen", "lab", "open", "--campaign", campaign.id, "--from", state.leader.head]
    return Step("clone", words, f"{obstacle.message}: go on in the clone of {campaign.id}")


def command_line(words: list[str]) -> str:
    """*words* as one line for a shell."""
    import shlex

    return shlex.join(words)


def fitted(document: JsonObject, outside: int) -> JsonObject:
    """*document* with the oldest and least of its memory left out, until it and *outside* bytes around it take at most 6 kB."""
    memory = document["memory"]
    while len(encode_readable(document).encode()) + outside > MOST_BYTES:
        longest = max(memory, key=lambda name: len(encode_readable(memory[name])))
        if not memory[longest]:
            break
        if longest == "failures_top":
            memory[longest].pop()  # most first
        else:
            memory[longest].pop(0)  # oldest first
    return document

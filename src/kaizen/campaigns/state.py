"""Where a campaign stands: all that follows from its journal, its ideas and its ledger.

Nothing is kept that does not follow from these files, so that any prefix of a journal has a state, and the same files give
the same one. What was not measured is None. Gains are only ever sums of paired estimates that were measured at the same time.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kaizen.campaigns.campaign import CLOSED, IDEAS_FILE, LOOKS_FILE, Campaign, read_events
from kaizen.campaigns.rules import KEEP_Z, PLATEAU_CATEGORIES, PLATEAU_VARIANTS, overfit_suspected
from kaizen.foundation.errors import RefusedError
from kaizen.foundation.jsonio import JsonObject
from kaizen.lab.runstore import CRASHED, TAINTED
from kaizen.stats.looks import expected_false_keeps, look_level, luck_line
from kaizen.stats.paired_runs import NoiseFloor, pooled_run_variance

UNCHANGED = "baseline"  # the variant of the unchanged system
SCREEN_RUN = "screen"  # the purpose of a run that screens a variant
UNJUDGED, PROMISING, NOT_REPLICATED, GUARD_FAILED = "unjudged", "promising", "not_replicated", "guard_failed"
KEPT, SIMPLIFIED, CONFIRMED, NOT_CONFIRMED = "kept", "simplified", "confirmed", "not_confirmed"
KEEPABLE, EXTEND, NEAR_MISS = "keepable", "extend", "near_miss"
# What a variant is called after its replication; one that may be kept, or goes on, stays promising.
REPLICATED_AS = {KEEPABLE: PROMISING, EXTEND: PROMISING}
LOOK_TOLD = ("look", "yes_before", "level", "answer", "leader_commit", "reference_commit")  # of the ledger, in the journal
VOID_VERDICT, INTEGRITY_ACCEPTED = "void", "integrity"
OPEN_IDEA, RUNNING_IDEA, DISCARDED_IDEA, PARKED_IDEA = "open", "running", "discarded", "parked"


class Version(NamedTuple):
    """A commit that others are compared with, the variant that it is, and the commit to go back to: with what `keep` wrote on top."""

    variant: str
    commit: str
    head: str


class CampaignVariant:
    """One idea as one commit. `verdict` is of the vocabulary; `decision` is '', kept, simplified or discarded.

    `screen` and `replicate` are the bodies of the last events of that type, or None. `is_parked`: kept once, and then taken back
    because the looks said no to what development items said was there.
    """

    def __init__(self, name: str) -> None:
        self.name, self.commit, self.idea, self.label, self.lesson = name, "", "", "", ""
        self.verdict, self.decision = UNJUDGED, ""
        self.screen: JsonObject | None = None
        self.replicate: JsonObject | None = None
        self.keep: JsonObject | None = None
        self.is_parked = False
        self.replicates = 0  # how often it was replicated
        self.runs: list[str] = []

    def is_memorised(self) -> bool:
        """True when the diff of the variant holds text of development items."""
        return bool(self.screen and self.screen.get("memorised"))

    def is_near_miss(self) -> bool:
        """True when something was there, and not enough of it."""
        gain = [each.get("z") or 0.0 for each in (self.screen, self.replicate) if each]
        return self.verdict in ("no_signal", NOT_REPLICATED) and bool(gain) and gain[-1] > 0


class LookCount(NamedTuple):
    """The looks: how many are spent (`done`, with those inherited) and said yes, how many are `left` of `number`, the next one's level."""

    done: int
    yes: int
    number: int
    left: int
    next_level: float | None


class Spent(NamedTuple):
    """What was used up: `usd` is what is known, of all but `unknown_costs` runs; looks are not in it."""

    variants: int
    evaluations: int
    usd: float | None
    unknown_costs: int
    hours: float


class CampaignState:
    """The state, made by `campaign_state`.

    `stored` are the runs with the leader's stored trials ([] when they have to be measured anew); `keeps` the bodies of the keeps between
    reference and leader; `noes` how many looks said no since the last yes; `runs` {run: its body of run_started, with `state` and
    `reason` once it has ended}; `lessons` [{variant, verdict, lesson}] of what was kept or given up, oldest first; `since_keep`
    variants judged since the last keep or fresh context.
    """

    def __init__(self, campaign: Campaign) -> None:
        opened = campaign.events[0]["body"] if campaign.events else {}
        self.contract = campaign.contract
        base = str(opened.get("commit") or self.contract.get("base_commit", ""))
        self.leader = self.reference = Version(UNCHANGED, base, base)
        self.versions = {UNCHANGED: self.leader}
        self.opened: JsonObject = opened
        self.baseline: JsonObject | None = None
        self.noise: JsonObject | None = None
        self.stored: list[str] = []
        self.variants: dict[str, CampaignVariant] = {}
        self.ideas: dict[str, JsonObject] = {}
        self.runs: dict[str, JsonObject] = {}
        self.keeps: list[JsonObject] = []
        self.looks: list[JsonObject] = []
        self.look_count = LookCount(0, 0, 0, 0, None)
        self.noes = 0
        self.drift_zs: list[float] = []
        self.is_drifted = self.is_overfit = self.is_fresh_context = False
        self.since_keep = self.fresh_contexts = 0
        self.categories: set[str] = set()
        self.equal_crashes = self.taints = 0
        self.last_crash = ""
        self.usd = self.hours = 0.0
        self.evaluations = self.known_costs = self.unknown_costs = self.replicated = 0
        self.lessons: list[JsonObject] = []
        self.notes: list[JsonObject] = []
        self.integrity: list[JsonObject] = []
        self.accepted: list[JsonObject] = []
        self.settled = 0  # of the breaches of integrity
        self.closed: JsonObject | None = None

    # --- What follows ------------------------------------------------------------------

    def screened(self) -> list[CampaignVariant]:
        """The variants that were screened or are being, in order of appearance."""
        return [each for each in self.variants.values() if each.name != UNCHANGED and (each.screen or each.runs)]

    def undecided(self) -> list[CampaignVariant]:
        """The variants with a verdict that were neither kept nor discarded, in order of appearance."""
        return [each for each in self.variants.values() if each.verdict != UNJUDGED and not each.decision]

    def open_runs(self) -> list[str]:
        """The runs that the journal saw begin and not end."""
        return [run for run, body in self.runs.items() if "state" not in body]

    def leader_gain(self) -> tuple[float | None, float | None]:
        """(gain, SE) of the leader over the reference: the sum of the paired estimates of the keeps between; (0, 0) when they are one."""
        if any(each.get(key) is None for each in self.keeps for key in ("gain", "se")):
            return None, None
        return math.fsum(each["gain"] for each in self.keeps), math.sqrt(math.fsum(each["se"] ** 2 for each in self.keeps))

    def spent(self) -> Spent:
        """What was used up so far."""
        usd = self.usd if self.known_costs or not self.unknown_costs else None
        return Spent(len(self.screened()), self.evaluations, usd, self.unknown_costs, self.hours)

    def mde(self, trials: int | None = None) -> float | None:
        """The smallest effect that development items show with *trials* (those of a replication); None before the noise is known."""
        found = (self.noise or {}).get("mde") or {}
        value = found.get(str(trials or self.contract.get("replicate", {}).get("passes", 3)))
        return None if value is None else float(value)

    def look_mde(self, level: float | None) -> float | None:
        """The smallest gain that a look at *level* sees four times out of five; None before the noise is known, or without a level."""
        noise, holdout = self.noise or {}, self.contract.get("holdout") or {}
        if noise.get("se_pass") is None or not level or not noise.get("items"):
            return None
        floor = NoiseFloor(int(noise["items"]), int(noise.get("passes") or 0), None, noise["se_pass"], run_terms(self)[0])
        return floor.mde_at(int(holdout.get("clusters") or holdout["cases"]), int(self.contract["looks"]["trials"]), level)

    def luck_line(self) -> float | None:
        """How much the best of so many useless variants would seem to gain; None without a noise floor or a variant."""
        se_pass = (self.noise or {}).get("se_pass")
        return None if se_pass is None else luck_line(se_pass, len(self.screened()))

    def false_keeps(self) -> float:
        """How many of the replicated variants would be keepable if none of them changed anything."""
        return expected_false_keeps(self.replicated, KEEP_Z)

    def idea_status(self, idea: str) -> str:
        """open, running, discarded, kept, confirmed, crashed or parked: that of the last variant that tried *idea*."""
        tried = [each for each in self.variants.values() if each.idea == idea]
        if not tried:
            return OPEN_IDEA
        last = tried[-1]
        if last.is_parked:
            return PARKED_IDEA
        if last.verdict in (CONFIRMED, CRASHED):
            return last.verdict
        if last.decision in (KEPT, SIMPLIFIED):
            return KEPT
        return DISCARDED_IDEA if last.decision else RUNNING_IDEA

    def unsettled(self) -> list[JsonObject]:
        """The breaches of integrity that no person has looked at since."""
        return self.integrity[self.settled :]

    # --- Events ------------------------------------------------------------------------

    def variant(self, name: object) -> CampaignVariant:
        """The variant *name*, new when it was not seen before."""
        return self.variants.setdefault(str(name), CampaignVariant(str(name)))

    def learn(self, variant: CampaignVariant, body: JsonObject) -> None:
        """Takes over the lesson of a decision about *variant*."""
        variant.lesson = str(body.get("lesson") or variant.lesson)
        if body.get("lesson"):
            self.lessons.append({"variant": variant.name, "verdict": variant.verdict, "lesson": variant.lesson})

    def see_run_started(self, body: JsonObject, time: str) -> None:
        """A run of some purpose began."""
        self.runs[str(body["run"])] = {**body, "since": time}
        if body.get("purpose") == SCREEN_RUN:
            variant = self.variant(body["variant"])
            if variant.decision == DISCARDED_IDEA:  # the name is used again
                variant = self.variants[variant.name] = CampaignVariant(variant.name)
            variant.commit, variant.idea = str(body.get("commit") or ""), str(body.get("idea") or "")
            variant.runs.append(str(body["run"]))
            self.is_fresh_context = False

    def see_run_ended(self, body: JsonObject, time: str) -> None:
        """A run ended: what it cost, and whether it is one more of a row of equal crashes or of taints."""
        run = self.runs.setdefault(str(body["run"]), {**body, "since": time})
        state, reason = body.get("state"), str(body.get("reason") or "")
        run |= {"state": state, "reason": reason}
        self.evaluations += int(body.get("evaluations") or 0)
        cost = body.get("cost_usd")
        self.usd += cost or 0.0
        self.known_costs += cost is not None
        self.unknown_costs += cost is None
        seconds = body.get("seconds")
        self.hours += (seconds if seconds is not None else seconds_between(run["since"], time)) / 3600
        self.taints = self.taints + 1 if state == TAINTED else 0
        is_equal = state == CRASHED and reason == self.last_crash
        self.equal_crashes = self.equal_crashes + 1 if is_equal else int(state == CRASHED)
        self.last_crash = reason if state == CRASHED else ""

    def see_baseline(self, body: JsonObject, time: str) -> None:
        """The first full run of the unchanged system."""
        self.baseline = body

    def see_noise(self, body: JsonObject, time: str) -> None:
        """The noise floor, whose passes are the leader's stored trials from then on."""
        self.noise, self.stored = body, list(body.get("runs") or [])
        self.is_drifted, self.drift_zs = False, []

    def see_screen(self, body: JsonObject, time: str) -> None:
        """The verdict of a screen; a variant screened again keeps its place."""
        variant = self.variant(body["variant"])
        is_first = variant.screen is None
        variant.commit = str(body.get("commit") or variant.commit)
        variant.screen, variant.verdict = body, str(body.get("verdict") or UNJUDGED)
        variant.idea, variant.label = str(body.get("idea") or variant.idea), str(body.get("label") or "")
        self.categories.add(str(self.ideas.get(variant.idea, {}).get("category") or ""))
        self.since_keep += is_first
        if self.since_keep >= PLATEAU_VARIANTS and len(self.categories - {""}) >= PLATEAU_CATEGORIES and not self.fresh_contexts:
            self.fresh_contexts, self.since_keep, self.is_fresh_context = 1, 0, True

    def see_replicate(self, body: JsonObject, time: str) -> None:
        """The verdict of fresh passes of candidate and leader."""
        variant = self.variant(body["variant"])
        self.replicated += variant.replicate is None
        variant.replicates += 1
        variant.replicate, variant.commit = body, str(body.get("commit") or variant.commit)
        verdict = str(body.get("verdict") or "incomplete")
        variant.verdict = REPLICATED_AS.get(verdict, verdict)
        if body.get("drift_z") is not None:
            self.drift_zs.append(float(body["drift_z"]))

    def see_drift(self, body: JsonObject, time: str) -> None:
        """The leader's stored trials are out of date."""
        self.is_drifted, self.stored, self.drift_zs = True, [], []

    def see_keep(self, body: JsonObject, time: str) -> None:
        """A bet: the variant is the leader, with its fresh trials."""
        variant = self.variant(body["variant"])
        variant.commit, variant.keep = str(body.get("commit") or variant.commit), body
        variant.decision = variant.verdict = SIMPLIFIED if body.get("how") == SIMPLIFIED else KEPT
        self.learn(variant, body)
        self.leader = Version(variant.name, variant.commit, str(body.get("head") or variant.commit))
        self.versions[variant.name], self.stored = self.leader, list(body.get("runs") or [])
        self.keeps.append(body)
        self.since_keep = self.fresh_contexts = 0
        self.categories, self.is_fresh_context, self.drift_zs = set(), False, []

    def see_discard(self, body: JsonObject, time: str) -> None:
        """The variant is given up, or the parked one taken back."""
        variant = self.variant(body["variant"])
        variant.decision = DISCARDED_IDEA
        self.learn(variant, body)

    def see_look(self, body: JsonObject, time: str) -> None:
        """One answer about the holdout; a yes makes the leader of the look the reference."""
        self.looks.append(body)
        variant, answer = self.variants.get(str(body.get("leader"))), body.get("answer")
        if answer == "yes":
            self.reference = self.versions.get(str(body.get("leader")), self.leader)
            self.keeps, self.noes = [], 0
        self.noes += answer == "no"
        if answer == "no" and overfit_suspected(self.noes, self.leader_gain()[0], self.look_mde(body.get("level"))):
            self.see_overfit_suspected(body, time)
            return
        if variant and variant.verdict != CONFIRMED:
            variant.verdict = {"yes": CONFIRMED, "no": NOT_CONFIRMED}.get(str(answer), variant.verdict)

    def see_overfit_suspected(self, body: JsonObject, time: str) -> None:
        """The leader goes back to the reference; what was kept since is parked. It follows from the looks, whether or not it is told."""
        for keep in self.keeps:
            self.variant(keep["variant"]).is_parked = True
        self.leader, self.keeps, self.stored, self.is_overfit, self.noes = self.reference, [], [], True, 0

    def see_note(self, body: JsonObject, time: str) -> None:
        """A note, of a variant or of the campaign."""
        self.notes.append(body)

    def see_integrity(self, body: JsonObject, time: str) -> None:
        """Something that makes the record untrustworthy; a variant that it is about is void."""
        self.integrity.append(body)
        if body.get("variant") and body.get("verdict") == VOID_VERDICT:
            variant = self.variant(body["variant"])
            variant.commit, variant.verdict = str(body.get("commit") or variant.commit), VOID_VERDICT

    def see_accepted(self, body: JsonObject, time: str) -> None:
        """A person has accepted something; of breaches of integrity all that there were."""
        self.accepted.append(body)
        if body.get("what") == INTEGRITY_ACCEPTED:
            self.settled = len(self.integrity)

    def see_closed(self, body: JsonObject, time: str) -> None:
        """The end."""
        self.closed = body


SEEN = {
    "run_started": CampaignState.see_run_started,
    "run_ended": CampaignState.see_run_ended,
    "baseline": CampaignState.see_baseline,
    "noise": CampaignState.see_noise,
    "screen": CampaignState.see_screen,
    "replicate": CampaignState.see_replicate,
    "drift": CampaignState.see_drift,
    "keep": CampaignState.see_keep,
    "discard": CampaignState.see_discard,
    "look": CampaignState.see_look,
    "overfit_suspected": CampaignState.see_overfit_suspected,
    "note": CampaignState.see_note,
    "integrity": CampaignState.see_integrity,
    "accepted": CampaignState.see_accepted,
    CLOSED: CampaignState.see_closed,
}


def campaign_state(campaign: Campaign) -> CampaignState:
    """Where *campaign* stands. Raises RefusedError: `broken_chain`, `ledger_changed` when journal, ideas or ledger were changed."""
    state = CampaignState(campaign)
    state.ideas = {str(body["id"]): body for body in chain_bodies(campaign, IDEAS_FILE, "idea")}
    for event in campaign.events:
        see = SEEN.get(event["type"])
        if see is not None:
            see(state, event["body"], event["time"])
    ledger = list(chain_bodies(campaign, LOOKS_FILE, "look"))
    if len(state.looks) > len(ledger) or any(
        told.get(key) != own.get(key) for told, own in zip(state.looks, ledger, strict=False) for key in LOOK_TOLD
    ):
        message = f"{campaign.id}: the journal tells of looks that the ledger does not know"
        raise RefusedError(message, "put back the files that Kaizen wrote; nothing can be claimed until then", "ledger_changed")
    state.look_count = counted_looks(state, ledger)
    return state


def run_terms(state: CampaignState, own: Sequence[NoiseFloor] = ()) -> tuple[float, int]:
    """(run variance, passes) for a paired difference, pooled over the passes of the noise floor, of every replicate, and of its *own*.

    Three passes alone leave two degrees of freedom: pooled, a look is not refused for a variance that is not there.
    """
    noise = state.noise or {}
    groups = [(int(noise.get("passes") or 0), noise.get("excess", noise.get("run_variance")))]
    for variant in state.variants.values():
        body = variant.replicate or {}
        groups += [(int(body.get("passes") or 0), excess) for excess in body.get("excess") or ()]
    return pooled_run_variance([*(NoiseFloor(0, passes, excess=excess) for passes, excess in groups if passes > 1), *own])


def chain_bodies(campaign: Campaign, name: str, kind: str) -> Iterator[JsonObject]:
    """The bodies of the events of type *kind* in the file *name* of the campaign. Raises RefusedError (`broken_chain`)."""
    return (event["body"] for event in read_events(campaign.file(name)) if event["type"] == kind)


def counted_looks(state: CampaignState, ledger: list[JsonObject]) -> LookCount:
    """How many looks are spent, as the ledger or the journal says, whichever has more; the ledger is written first."""
    inherited = state.contract.get("inherited") or state.opened.get("inherited") or {}
    own = max([state.looks, ledger], key=len)
    done = int(inherited.get("looks") or 0) + len(own)
    yes = int(inherited.get("yes") or 0) + sum(each.get("answer") == "yes" for each in own)
    frozen = state.contract.get("looks") or {}
    number = int(frozen.get("number") or 0)
    level = look_level(float(frozen["alpha"]), number, done + 1, yes) if done < number else None
    return LookCount(done, yes, number, max(0, number - done), level)


def seconds_between(start: str, end: str) -> float:
    """The seconds from *start* to *end*, as `utc_now` writes them; 0 when they cannot be read or go back."""
    from datetime import datetime

    try:
        before, after = (datetime.fromisoformat(text.rstrip("Z")) for text in (start, end))
    except ValueError:
        return 0.0
    return max(0.0, (after - before).total_seconds())

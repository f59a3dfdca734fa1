"""What evaluators need from outside: answers of judges, and programs that are run.

A stage is evaluated in the order of its observations, while what some of them need is on its
way: only a few observations are held at a time, and neither the order nor the number of jobs
shows in the results. Without leave nothing is started; the entries then are errors.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from kaizen.cases.case import Case
from kaizen.cases.dataset import Dataset
from kaizen.cases.improvement import Improvement
from kaizen.evaluators.decimals import exact_value
from kaizen.evaluators.envelope import PreparedEntry
from kaizen.evaluators.judge import JUDGE, JudgeQuestion
from kaizen.evaluators.judgements import JUDGEMENTS, KeptJudgements, judgement_document, open_judgements
from kaizen.evaluators.limits import number_at
from kaizen.evaluators.outcomes import ConfigurationError, NothingAsked, NotMeasurable
from kaizen.evaluators.programs import ProgramPlace, ProgramQuestion
from kaizen.evaluators.regex_timer import PatternTimeout
from kaizen.evaluators.registry import View
from kaizen.evaluators.suite import PROGRAM_TYPES, Suite
from kaizen.foundation.journals import AppendLog
from kaizen.foundation.jsonio import JsonObject, Line, canonical_json, fingerprint, without_surrogates
from kaizen.foundation.process import StopSwitch, heeding_signals
from kaizen.foundation.redact import environment_secrets, redact_arguments
from kaizen.foundation.text import counted, listed, visible
from kaizen.runs.crew import Crew, Toolbox
from kaizen.runs.journal import FILES
from kaizen.runs.judges import Judge, JudgeCommand, JudgeStopped

OUTSIDE_TYPES = (JUDGE, *PROGRAM_TYPES)
UNNAMED_JUDGE = "a judge that does not say who it is"


class Leave(NamedTuple):
    """What evaluating may start: a judge (None: none), which is asked anew where *rejudge*, and programs; *jobs* of them at a time.

    With *again* above 1 a question is the same one asked for that time, to measure the judge.
    """

    judge: JudgeCommand | None = None
    rejudge: bool = False
    allow_programs: bool = False
    jobs: int = 1
    again: int = 1


NO_LEAVE = Leave()


class Needs(NamedTuple):
    """One observation on its way: its line, the memo in which answers are collected, what is asked, how much is still to come."""

    line: Line
    memo: JsonObject
    questions: list[JudgeQuestion]
    observation_fingerprint: str
    pending: set[str]


class JudgeTally:
    """What was answered under one rubric: identities with the number of answers each, cost, usage."""

    def __init__(self, sha256: str) -> None:
        self.document: JsonObject = {"rubric_sha256": sha256, "answers": 0, "unanswered": 0, "cost_usd": None, "priced": 0, "usage": {}}
        self.identities: dict[str, tuple[JsonObject, int]] = {}
        self.cost: Any = 0

    def add(self, judgement: JsonObject | None) -> None:
        """Counts what is known of one question."""
        answer = judgement.get("answer") if judgement else None
        if answer is None:
            self.document["unanswered"] += 1
            return
        self.document["answers"] += 1
        identity = {name: answer["judge"][name] for name in ("name", "version", "model") if name in answer.get("judge", {})}
        key = canonical_json(identity)
        self.identities[key] = (identity, self.identities.get(key, (identity, 0))[1] + 1)
        price = number_at(answer, "cost", "total_usd")
        if price is not None:
            self.cost += exact_value(price)
            self.document["priced"] += 1
        for name in ("input_tokens", "output_tokens", "total_tokens"):
            used = number_at(answer, "usage", name)
            if used is not None:
                self.document["usage"][name] = self.document["usage"].get(name, 0) + used

    def summary(self) -> JsonObject:
        """What the meta file says of the rubric; the cost is that of the priced answers, None when there is none."""
        cost = float(self.cost) if self.document["priced"] else None
        judges = [{**identity, "answers": number} for _, (identity, number) in sorted(self.identities.items())]
        return {**self.document, "cost_usd": cost, "judges": judges}


class Outside:
    """Brings each observation of one stage what its evaluators need from outside, as far as *leave* goes.

    `open_outside` makes it; a caller that only has kept answers gets one without a crew.
    """

    def __init__(self, improvement: Improvement, stage: str, dataset: Dataset, suite: Suite, leave: Leave) -> None:
        self.dataset, self.suite, self.leave = dataset, suite, leave
        self.is_needed = not suite.types_used.isdisjoint(OUTSIDE_TYPES)
        self.place = ProgramPlace(improvement.folder, improvement.stage_file(stage, FILES))
        self.path = improvement.stage_file(stage, JUDGEMENTS)
        self.kept = KeptJudgements(self.path) if self.is_needed else None
        self.crew: Crew | None = None
        self.log: AppendLog | None = None
        self.tallies: dict[str, JudgeTally] = {}
        self.failures: dict[str, int] = {}  # reasons of judges' failures about cases that may be shown
        self.commands: set[str] = set()
        self.shown: set[str] = set()  # rubrics about cases that may be shown
        self.asked = 0
        self.secrets = environment_secrets(os.environ)
        command = leave.judge.command if leave.judge else []
        self.command = redact_arguments(without_surrogates(command), self.secrets)

    def close(self) -> None:
        """Closes the journal."""
        if self.log is not None:
            self.log.close()
        if self.kept is not None:
            self.kept.close()

    def with_memos(self, lines: Iterator[Line]) -> Iterator[tuple[Line, JsonObject]]:
        """(line, memo with what its evaluators need) of each observation in *lines*, in their order."""
        if not self.is_needed:
            yield from ((line, {}) for line in lines)
            return
        waiting: deque[Needs] = deque()
        room = 2 * self.leave.jobs if self.crew else 0
        for line in lines:
            waiting.append(self.needs_of(line))
            while waiting and (len(waiting) > room or not waiting[0].pending):
                yield self.ready(waiting.popleft())
        while waiting:
            yield self.ready(waiting.popleft())

    def needs_of(self, line: Line) -> Needs:
        """What the observation of *line* needs, with what is kept of it; the rest is on its way."""
        needs = Needs(line, {}, [], "", set())
        case = usable_case(line.value, self.dataset)
        if case is None:
            return needs
        view = View(None, line.value, case.document, needs.memo)
        for question in asked_questions(self.suite.entries_for(case), view):
            if isinstance(question, JudgeQuestion):
                needs = needs._replace(observation_fingerprint=needs.observation_fingerprint or fingerprint(line.value))
                needs.questions.append(question)
                self.look_up(needs, question)
            elif self.crew and self.leave.allow_programs and question.key not in needs.pending:
                needs.pending.add(question.key)
                self.crew.submit(self.program_task(needs, question))
        return needs

    def look_up(self, needs: Needs, question: JudgeQuestion) -> None:
        """Puts the kept answer to *question* into the memo, or has it asked."""
        if question.key in needs.memo or question.key in needs.pending:
            return
        observed, again = needs.observation_fingerprint, self.leave.again
        known = self.kept.find(observed, question, again) if self.kept and not self.leave.rejudge else None
        if self.crew and self.leave.judge and (known is None or "error" in known):
            needs.pending.add(question.key)
            self.crew.submit(self.judge_task(needs, question))
        elif known is not None:
            needs.memo[question.key] = known

    def program_task(self, needs: Needs, question: ProgramQuestion) -> Callable[[Toolbox], None]:
        """The task to run a program for an observation."""

        def run(tools: Toolbox) -> None:
            ended = question.check.run(tools, self.place, question.view)
            if self.crew and ended is not None:
                with self.crew.changed:
                    needs.memo[question.key] = ended
                    needs.pending.discard(question.key)

        return run

    def judge_task(self, needs: Needs, question: JudgeQuestion) -> Callable[[Toolbox], None]:
        """The task to ask a judge about an observation, and to keep what it says."""

        def ask(tools: Toolbox) -> None:
            assert self.crew is not None and self.leave.judge is not None
            judge: Judge = tools.held.setdefault(JUDGE, Judge(self.leave.judge, tools))
            try:
                judged = judge.ask(question.request)
            except JudgeStopped:
                return
            observed = needs.observation_fingerprint
            document = judgement_document(observed, needs.line.value, question, self.leave.again, judged, self.command, self.secrets)
            with self.crew.changed:
                if self.log is None:
                    self.log = open_judgements(self.path)
                self.log.append(document)
                self.asked += 1
                needs.memo[question.key] = document
                needs.pending.discard(question.key)

        return ask

    def ready(self, needs: Needs) -> tuple[Line, JsonObject]:
        """The line and the memo of *needs*, once all has come."""
        if self.crew and needs.pending:
            self.crew.wait(lambda: not needs.pending, self.sync_if_due)
        for question in needs.questions:
            judgement = needs.memo.get(question.key)
            self.tallies.setdefault(question.rubric.id, JudgeTally(question.rubric.sha256)).add(judgement)
            if judgement:
                self.commands.add(canonical_json(judgement.get("command")))
            if needs.line.value["case_id"] in self.dataset.holdout:
                continue
            self.shown.add(question.rubric.id)
            if judgement and "error" in judgement:
                reason = f"{judgement['error']['code']}: {judgement['error']['message']}"
                self.failures[reason] = self.failures.get(reason, 0) + 1
        return needs.line, needs.memo

    def sync_if_due(self) -> None:
        """Syncs what judges have said."""
        if self.log is not None:
            self.log.sync_if_due()

    def judges(self) -> JsonObject:
        """{id of a rubric: what was answered under it, and by whom}; {} without judges."""
        return {name: tally.summary() for name, tally in sorted(self.tallies.items())}


@contextmanager
def open_outside(improvement: Improvement, stage: str, dataset: Dataset, suite: Suite, leave: Leave = NO_LEAVE) -> Iterator[Outside]:
    """What *stage* needs from outside, as far as *leave* goes; threads and programs are gone when the block ends."""
    outside = Outside(improvement, stage, dataset, suite, leave)
    try:
        if not outside.is_needed or not (leave.judge or leave.allow_programs):
            yield outside
            return
        stop = StopSwitch()
        try:
            with heeding_signals(stop), Crew(leave.jobs, stop) as outside.crew:
                yield outside
        finally:
            stop.close()
    finally:
        outside.close()


def usable_case(observation: JsonObject, dataset: Dataset) -> Case | None:
    """The case of a completed *observation*; None when it is gone, or had another input then, or nothing completed."""
    case = dataset.cases.get(observation["case_id"])
    if case is None or observation["status"] != "completed":
        return None
    return case if observation.get("input_fingerprint", case.input_fingerprint) == case.input_fingerprint else None


def asked_questions(entries: list[PreparedEntry], view: View) -> Iterator["JudgeQuestion | ProgramQuestion"]:
    """What *entries*, and those inside them, have to ask of outside about the observation in *view*."""
    for entry in entries:
        if not entry.versions.keys() & set(OUTSIDE_TYPES):
            continue
        try:
            if entry.when is not None and entry.when(view.case):
                continue
            check: Any = None if entry.children else entry.check or entry.check_for(view.case)
            found = check.questions(view) if check else asked_questions(entry.children, view)
        except (NotMeasurable, NothingAsked, ConfigurationError, PatternTimeout, RecursionError):
            continue  # which evaluating the entry will say
        yield from found


# --- Fingerprints, and what may be compared ------------------------------------------------


def judge_identities(entry: PreparedEntry, judges: JsonObject) -> list[JsonObject]:
    """Who answered for *entry*, without how often: [{"name", "version", "model"}]."""
    rubrics = [judges.get(entry.id, {})] if entry.type.name == JUDGE else list(judges.values())
    found = {canonical_json(who): who for rubric in rubrics for who in map(without_count, rubric.get("judges", ()))}
    return [found[key] for key in sorted(found)]


def without_count(judge: JsonObject) -> JsonObject:
    """*judge* without the number of its answers."""
    return {name: value for name, value in judge.items() if name != "answers"}


def judged_fingerprints(suite: Suite, judges: JsonObject) -> tuple[str, dict[str, str]]:
    """(evaluator fingerprint, {id: fingerprint}) of *suite* with who answered under its rubrics, as `Outside.judges` tells."""
    known = {name: [*map(without_count, rubric["judges"])] for name, rubric in judges.items() if rubric["judges"]}
    if not known:
        return suite.fingerprint, suite.entry_fingerprints
    named = dict(suite.entry_fingerprints)
    for entry in suite.entries:
        if JUDGE in entry.versions:
            named[entry.id] = fingerprint({"entry": named[entry.id], "judges": judge_identities(entry, judges)})
    return fingerprint({"suite": suite.fingerprint, "judges": known}), named


def judge_name(judge: JsonObject) -> str:
    """'tone-judge 1.2 (small-model)' as far as a judge says who it is."""
    words = [visible(str(judge[name]), 60) for name in ("name", "version") if judge.get(name)]
    model = judge.get("model")
    return " ".join([*words, *([f"({visible(str(model), 60)})" if words else visible(str(model), 60)] if model else [])]) or UNNAMED_JUDGE


def judge_counts(judges: list[JsonObject]) -> str:
    """'tone-judge 1 (10 answers) and tone-judge 2 (2 answers)'."""
    return listed(f"{judge_name(who)} ({counted(who.get('answers', 0), 'answer')})" for who in judges)


def mixed_judges(stage: str, judges: JsonObject) -> list[str]:
    """A sentence for each rubric under which more than one judge has answered: the scores have no common measure then."""
    return [
        f"{stage}: {visible(name, 60)} was judged by {judge_counts(rubric['judges'])}; ask one of them about all, with --rejudge"
        for name, rubric in judges.items()
        if len(rubric["judges"]) > 1
    ]

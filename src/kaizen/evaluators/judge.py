"""The evaluator `judge`: a program of the user's scores what no rule can see.

What a judge is asked is known from the observation and the case alone; its answers are brought
to the check in the view's memo, by whoever may ask (outside.py). A check that finds none there
is an error, so evaluating never starts anything by itself.
"""

from typing import Any, NamedTuple

from kaizen.evaluators.decimals import exact_mean, exact_value, json_number
from kaizen.evaluators.outcomes import FAIL, PASS, ConfigurationError, NotMeasurable, Outcome, errored
from kaizen.evaluators.paths import ROOT_READERS
from kaizen.evaluators.registry import REQUIRED, Check, Parameter, View, evaluator
from kaizen.evaluators.trail import view_trail
from kaizen.foundation.jsonio import JsonObject, encode_compact, fingerprint, sha256_hex, without_surrogates
from kaizen.foundation.text import did_you_mean, listed, quoted, visible
from kaizen.runs.judge_protocol import Rubric, judge_request

JUDGE = "judge"
SEEN_BY_DEFAULT = ("input", "output", "steps", "context")
NEEDED_BY_DEFAULT = ("input", "output")
MAY_SEE = ("input", "context", "expected", "output", "steps", "agents", "state", "files", "evidence", "finish_reason")
MAX_SAMPLES = 100
JUDGE_EVIDENCE_SHOWN = 20
REASON_SHOWN = 1000  # characters of a judge's reason in a result; the journal has more
PLACE_SHOWN = 300
NOT_ASKED = "judge_not_asked: no answer is kept, and evaluate was given no judge to ask"


class JudgeQuestion(NamedTuple):
    """One question: its key in the memo of its observation, the request, and what its answer is kept under beside the observation."""

    key: str
    rubric: Rubric
    data: JsonObject
    data_fingerprint: str
    sample: int

    @property
    def request(self) -> JsonObject:
        """What the judge gets."""
        return judge_request(self.rubric, self.data)


class JudgeCheck:
    """The check of one entry of type judge."""

    def __init__(self, settings: JsonObject) -> None:
        text, see = settings["rubric"], settings["see"]
        if not text.strip():
            raise ConfigurationError("/rubric", "is empty, which asks nothing")
        for index, name in enumerate(see or ()):
            if name not in MAY_SEE:
                message = f"{quoted(str(name))} cannot be shown to a judge"
                raise ConfigurationError(f"/see/{index}", message, did_you_mean(str(name), MAY_SEE))
        if not 1 <= settings["samples"] <= MAX_SAMPLES:
            raise ConfigurationError("/samples", f"samples is not between 1 and {MAX_SAMPLES}")
        if settings["threshold"] is None:
            raise ConfigurationError("", "type judge needs threshold", "the least score that passes")
        if not settings["threshold"]:
            raise ConfigurationError("/threshold", "is 0, which passes whatever the judge says")
        digest = sha256_hex(without_surrogates(text))
        self.rubric = Rubric(settings["id"] or f"rubric-{digest[:12]}", text, digest)
        self.see: list[str] = see
        self.samples: int = settings["samples"]
        self.threshold: float = settings["threshold"]

    def data(self, view: View) -> JsonObject:
        """What the judge gets to see of the observation and its case. Raises NotMeasurable when something of it is absent."""
        found = {}
        for name in self.see or SEEN_BY_DEFAULT:
            try:
                found[name] = seen_value(name, view)
            except NotMeasurable:
                if self.see or name in NEEDED_BY_DEFAULT:
                    raise
        return without_surrogates(found)  # type: ignore[no-any-return]

    def questions(self, view: View) -> list[JudgeQuestion]:
        """What is to be asked about the observation, one for each sample. Raises NotMeasurable."""
        data = self.data(view)
        seen = fingerprint(data)
        numbers = range(1, self.samples + 1)
        return [JudgeQuestion(f"judge {self.rubric.sha256} {seen} {number}", self.rubric, data, seen, number) for number in numbers]

    def __call__(self, view: View) -> Outcome:
        answers = [view.memo.get(question.key) for question in self.questions(view)]
        return self.verdict(answers)

    def verdict(self, judgements: "list[JsonObject | None]") -> Outcome:
        """What the kept *judgements* of all samples come to. Raises NotMeasurable for an abstention."""
        answers: list[JsonObject] = []
        for judgement in judgements:
            if judgement is None:
                return errored(NOT_ASKED)
            if "error" in judgement:
                return errored(f"{judgement['error']['code']}: {judgement['error']['message']}")
            answers.append(judgement["answer"])
        for answer in answers:
            if answer.get("abstain"):
                raise NotMeasurable(f"the judge abstained{told_reason(answer)}")
        scores = [answer["score"] if "score" in answer else float(answer["passed"]) for answer in answers]
        spread = f"{min(scores)!r} to {max(scores)!r}"
        if min(scores) < self.threshold <= max(scores):
            raise NotMeasurable(f"the samples disagree, so the judge abstains: scores from {spread}, threshold {self.threshold!r}")
        score = exact_mean((each, 1) for each in scores)
        several = f"{len(scores)} samples from {spread}" if len(scores) > 1 else "the judge"
        reason = several + (told_reason(answers[0]) or (f" says {score!r}" if len(scores) == 1 else ""))
        value: Any = score
        if len(scores) > 1:
            value = {"samples": scores, "spread": json_number(exact_value(max(scores)) - exact_value(min(scores)))}
        return Outcome(PASS if scores[0] >= self.threshold else FAIL, score, reason, value, told_evidence(answers[0]))


def seen_value(name: str, view: View) -> Any:
    """What stands under *name* in the data of a question. Raises NotMeasurable when there is nothing."""
    if name == "steps":
        return view_trail(view).steps
    if name == "expected":
        if name not in view.case:
            raise NotMeasurable("the case has no expected")
        return view.case[name]
    found = ROOT_READERS[name](view.observation, view.case)
    if not found.found:
        raise NotMeasurable(found.reason, found.agent_fault)
    return found.value


def told_reason(answer: JsonObject) -> str:
    """': …' with the judge's reason on one line; '' when it gave none."""
    reason = str(answer.get("reason") or "").strip()
    return f": {visible(reason, REASON_SHOWN)}" if reason else ""


def told_evidence(answer: JsonObject) -> tuple[Any, ...]:
    """The first places that the judge points at; a text counts as a quotation."""
    places = answer.get("evidence", [])[:JUDGE_EVIDENCE_SHOWN]
    shown = ({"quote": visible(place, PLACE_SHOWN)} if isinstance(place, str) else place for place in places)
    return tuple(place for place in shown if isinstance(place, dict) and len(encode_compact(place)) <= 2 * PLACE_SHOWN)


@evaluator(
    JUDGE,
    1,
    "A judge, given behind `--`, scores what no rule can see by a rubric.",
    [
        Parameter("rubric", "text", REQUIRED, 'what to judge by: a text, or {"$file": "rubrics/tone.md"}'),
        Parameter(
            "see", "list", None,
            f"what the judge sees: any of {listed(MAY_SEE, 20)}. What is named has to be there; without it: input and output, and "
            "steps and context where there are any",
        ),
        Parameter("samples", "integer", 1, "how often the judge is asked about each trial; where the answers disagree, it abstains"),
    ],
    example={
        "entry": {"id": "tone", "type": "judge", "rubric": "Friendly, and to the point?", "threshold": 0.7, "on_missing": "not_applicable"},
        "observation": {"output": "Your refund is on its way."},
        "outcome": "error",
    },
    selects=False,
)  # fmt: skip
def evaluate_judge(settings: JsonObject) -> Check:
    """Needs a `threshold`, above 0. An abstention, and samples on both sides of the threshold, follow `on_missing`. `passed` counts
    only where an answer has no score, as 1 or 0. Without an answer it is an error: judge_not_asked, judge_timeout, judge_failed,
    judge_error, or judge_protocol for what is not exactly one JSON object. See docs/judges.md."""
    return JudgeCheck(settings)

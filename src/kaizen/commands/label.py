"""`kaizen label`: an expert labels the cases of a stage in the terminal, one at a time.

What the rater sees is the input, the context and what the agent answered: no evaluator's result,
no expected value, nobody else's label. Each label is on disk before the next case is shown.
"""

import os
import sys
from argparse import Namespace
from typing import Any

from kaizen.cases.case import Case
from kaizen.cases.labels import LABELS_FILE, Labels, output_fingerprint, read_labels
from kaizen.commands.agreement import LABELS_OPTION, OF_EVALUATOR, Subject, labels_path, subject_of
from kaizen.commands.context import Project, diagnose, load_project, require_stage
from kaizen.commands.openings import record_opening
from kaizen.commands.table import IMPROVEMENT, Answer, Argument, command
from kaizen.foundation.errors import EXIT_DONE, EXIT_INCOMPLETE, Breaches, Interrupted, UsageError
from kaizen.foundation.files import truncate_file
from kaizen.foundation.journals import AppendLog
from kaizen.foundation.jsonio import JsonObject, encode_readable
from kaizen.foundation.locks import FileLock
from kaizen.foundation.text import counted, visible, visible_lines
from kaizen.runs.journal import mend_last_line
from kaizen.web.evidence import LineFile, object_on_line

MAX_RATER = 100
SHOWN_TEXT = 4000  # characters of a text, until more is asked for
COMMAND_KEYS = {"-": "abstain", "s": "skip", "u": "undo", "n": "note", "m": "more", "?": "help", "q": "quit"}
LABEL_KEYS = "123456789abcdefghijklopr"
END = "q"


@command(
    "label",
    "Shows the cases of a stage one at a time in the terminal and records your label; blind to the judge and to other raters.",
    [
        IMPROVEMENT,
        Argument("--rater", "NAME", "who labels", {"required": True}),
        Argument("--stage", "S", "stage whose answers are labelled (candidate)", {"default": "candidate"}),
        OF_EVALUATOR,
        LABELS_OPTION,
        Argument("--open-holdout", "", "show holdout cases, too; the opening is recorded and shown from then on"),
    ],
    "kaizen label refund --rater ada\nkaizen label refund --rater ada --of tone --stage baseline",
    group="further questions",
)
def command_label(args: Namespace) -> Answer:
    """Exits 0 when this rater has labelled everything, 4 when cases are left."""
    if not args.rater.strip() or len(args.rater) > MAX_RATER or visible(args.rater) != args.rater:
        raise UsageError(f"--rater is a name of 1 to {MAX_RATER} characters, none of them unseen")
    project = load_project(args.improvement)
    require_stage(project.improvement, args.stage)
    subject = subject_of(project, args.of)
    path = labels_path(project, args.labels)
    if args.open_holdout:
        record_opening(project.improvement, "label")
    with FileLock(path.removesuffix(".jsonl") + ".lock", "the file of labels"):
        session = LabelSession(project, subject, args, path)
        try:
            session.run()
        except KeyboardInterrupt:
            raise Interrupted(f"stopped; {session.told()}", f"go on with: {session.again}", "interrupted") from None
        finally:
            session.close()
    data: JsonObject = {"rater": args.rater, "stage": args.stage, "of": subject.name or None}
    data.update(labelled=session.labelled, remaining=len(session.queue), holdout=session.hidden, labels=session.labels_shown)
    following = session.again if session.queue else f"kaizen agreement {project.improvement.argument()} --stage {args.stage}{session.of}"
    code, reason = (EXIT_INCOMPLETE, "cases_left") if session.queue else (EXIT_DONE, "labelled")
    return Answer(code, reason, session.told(), [], data, following)


class LabelSession:
    """One rater at work: the cases still to label, what was done and can be undone, the open files."""

    def __init__(self, project: Project, subject: Subject, args: Namespace, path: str) -> None:
        from shlex import quote

        self.project, self.subject, self.rater, self.path = project, subject, args.rater, path
        self.of = f" --of {quote(subject.name)}" if subject.name else ""
        given = f" --labels {quote(args.labels)}" if args.labels else ""
        holdout = " --open-holdout" if args.open_holdout else ""
        improvement = project.improvement
        self.again = f"kaizen label {improvement.argument()} --rater {quote(args.rater)} --stage {args.stage}{self.of}{given}{holdout}"
        self.labels_shown = improvement.shown(LABELS_FILE) if not args.labels else args.labels
        self.keys = dict(zip(LABEL_KEYS, subject.labels))  # noqa: B905 (more labels than keys: those have to be written out)
        self.words = {**{word: word for word in subject.labels}, **self.keys}
        self.note = ""
        self.answers = Answers()
        self.undone: list[tuple[str, int, int, int]] = []  # case, line of its observation, size of the file before and behind its label
        self.log: AppendLog | None = None
        self.labelled = self.hidden = self.not_completed = 0
        own = self.own_labels()
        self.stage_file = LineFile(improvement.stage_file(args.stage))
        self.queue = self.open_cases(own, args.open_holdout)

    def open_cases(self, own: dict[str, str], is_open: bool) -> list[tuple[str, int]]:
        """(case id, line of its first trial) of every case that this rater has not labelled yet, in the order of the dataset."""
        dataset = self.project.dataset
        found: dict[str, int] = {}
        for number, raw in self.stage_file.lines():
            observation = object_on_line(raw) or {}
            case_id = observation.get("case_id")
            if observation.get("trial") != 1 or case_id not in dataset.cases:
                continue
            if observation.get("status") != "completed":
                self.not_completed += 1
            elif own.get(case_id) in ("", output_fingerprint(observation)):
                self.labelled += 1
            elif case_id in dataset.holdout and not is_open:
                self.hidden += 1
            else:
                found[case_id] = number
        return [(case_id, found[case_id]) for case_id in dataset.cases if case_id in found]

    def own_labels(self) -> dict[str, str]:
        """Fingerprint of the output that this rater labelled ('' when not noted) by case. Raises BreachesError for a broken file."""
        labels = Labels({}, 0, 0, "")
        if os.path.exists(self.path):
            mended = mend_last_line(self.path, lambda value, place: value)
            if mended:
                diagnose(mended)
            breaches, dataset, subject = Breaches(), self.project.dataset, self.subject
            labels = read_labels(self.path, subject.name, subject.default, subject.labels, dataset.cases, breaches, dataset.holdout)
            breaches.raise_if_any()
        return {case_id: row[self.rater].output for case_id, row in labels.by_case.items() if self.rater in row}

    def run(self) -> None:
        """Asks until nothing is left, everything that is left was skipped, or the rater leaves."""
        self.show_task()
        skipped, wants_more = 0, False
        while self.queue and skipped < len(self.queue):
            observation = self.stage_file.line(self.queue[0][1])
            self.show_case(observation, wants_more)
            wants_more = False
            answer = self.asked()
            if answer == END:
                return
            if answer == "s":
                self.queue.append(self.queue.pop(0))
                skipped += 1
            elif answer == "m":
                wants_more = True
            elif answer == "u":
                self.undo()
                skipped = 0
            else:
                self.record(observation, answer)
                skipped = 0
        diagnose("" if not self.queue else "only cases that you skipped are left")

    def asked(self) -> str:
        """What the rater answers: a label, '-' to abstain, or the key of a command; notes and mistakes are dealt with here."""
        while True:
            text = self.answers.key_or_line(f"{self.rater}> ")
            if text is None:
                return END
            word, _, rest = text.strip().partition(" ")
            if text.strip() in self.words:
                return self.words[text.strip()]
            word = next((key for key, name in COMMAND_KEYS.items() if word == name), word)
            if word == "n":
                self.note = rest.strip() or self.answers.line("note: ").strip()
                diagnose(f"noted for this case: {visible(self.note)}")
            elif word == "?":
                self.show_task()
            elif word in COMMAND_KEYS:
                return word
            elif word:
                diagnose(f"{visible(text.strip(), 40)} is no key here; {self.key_line()}")

    def record(self, observation: JsonObject, answer: str) -> None:
        """Appends the label to the file, synced, and goes on to the next case."""
        case_id, line = self.queue.pop(0)
        label: JsonObject = {"case_id": case_id, "rater": self.rater}
        label.update({"of": self.subject.name} if self.subject.name else {})
        label.update({"abstain": True} if answer == "-" else {"label": answer})
        label["output"] = output_fingerprint(observation)
        label.update({"note": self.note} if self.note else {})
        self.note = ""
        self.log = self.log or AppendLog(self.path)
        before = os.path.getsize(self.path)
        self.undone.append((case_id, line, before, before + len(self.log.append(label))))
        self.log.sync()
        self.labelled += 1

    def undo(self) -> None:
        """Takes the last label of this session back out of the file, and asks for that case again."""
        if not self.undone:
            diagnose("there is nothing to undo")
            return
        case_id, line, before, behind = self.undone.pop()
        if os.path.getsize(self.path) != behind:
            diagnose("the file has been changed by something else; label the case again to replace the label")
            return
        truncate_file(self.path, before)
        self.queue.insert(0, (case_id, line))
        self.labelled -= 1
        diagnose("taken back")

    def show_task(self) -> None:
        """What is asked, and the keys."""
        entry = next((each for each in self.project.suite.entries if each.id == self.subject.name), None)
        rubric = entry.document.get("rubric") if entry else None
        block = self.project.evaluation.judge
        name = self.subject.name or (block["name"] if block else "")
        diagnose(f"{self.told()}. What do you say of '{visible(name)}'?")
        if isinstance(rubric, str):
            diagnose(visible_lines(rubric))
        for count, what in ((self.hidden, "holdout case"), (self.not_completed, "trial without an answer")):
            if count:
                diagnose(f"left out: {counted(count, what, what.replace('trial', 'trials') if 'trial' in what else '')}")
        diagnose(self.key_line())

    def show_case(self, observation: JsonObject, is_whole: bool) -> None:
        """Input, context and answer of the first case in the queue, texts cut unless *is_whole*."""
        case: Case = self.project.dataset.cases[self.queue[0][0]]
        diagnose(f"\n=== {visible(case.id)} ({counted(len(self.queue), 'case')} to go)")
        parts: list[tuple[str, Any]] = [(key, case.document.get(key)) for key in ("input", "context")]
        steps = observation.get("steps") or observation.get("tool_calls")
        if steps and not is_whole:
            diagnose(f"--- {counted(len(steps), 'step')} recorded; m shows them")
        parts += [("steps", steps if is_whole else None), ("answer", observation.get("output"))]
        for title, value in parts:
            if value is not None:
                diagnose(f"--- {title}\n{label_text(value, None if is_whole else SHOWN_TEXT)}")
        diagnose(f"--- {self.key_line()}")

    def key_line(self) -> str:
        """'1 approve  2 reject  - abstain  s skip …'."""
        labels = [f"{key} {visible(word, 40)}" for key, word in self.keys.items()]
        return "  ".join([*labels, *[f"{key} {word}" for key, word in COMMAND_KEYS.items()]])

    def told(self) -> str:
        """How far this rater has come."""
        total = self.labelled + len(self.queue)
        return f"{self.rater} has labelled {self.labelled:,} of {counted(total, 'case')}"

    def close(self) -> None:
        """Closes the files."""
        self.stage_file.close()
        if self.log is not None:
            self.log.close()


def label_text(value: Any, limit: int | None) -> str:
    """*value* for the terminal: line ends kept, whatever else could move the cursor made visible, cut to *limit* characters."""
    text = value if isinstance(value, str) else encode_readable(value)
    left_out = len(text) - limit if limit is not None and len(text) > limit else 0
    shown = visible_lines(text[:limit] if left_out else text)
    return f"{shown}\n… ({left_out:,} more characters; m shows them)" if left_out else shown


class Answers:
    """Standard input as a source of answers: keys of a terminal, else lines. None is the end."""

    def __init__(self) -> None:
        self.typed = ""  # keys that were typed ahead

    def key_or_line(self, prompt: str) -> str | None:
        """One key from a terminal, shown as it was understood; else one line."""
        if not sys.stdin.isatty() or not self.typed and not has_termios():
            print(prompt, end="", file=sys.stderr, flush=True)
            return next_line()
        self.typed = self.typed or typed_keys(sys.stdin.fileno(), prompt)
        size = len(self.typed) if self.typed.startswith("\x1b") else 1  # an arrow key is one key
        key, self.typed = self.typed[:size], self.typed[size:]
        diagnose(visible(key))
        return None if key in ("", "\x04") else key

    def line(self, prompt: str) -> str:
        """One line, edited as the terminal allows; '' at the end of the input."""
        print(prompt, end="", file=sys.stderr, flush=True)
        if not sys.stdin.isatty() or self.typed:
            return next_line() or ""
        return os.read(sys.stdin.fileno(), 4096).decode("utf-8", "replace")


def next_line() -> str | None:
    """The next line of standard input; None at its end."""
    return sys.stdin.buffer.readline().decode("utf-8", "replace") or None


def has_termios() -> bool:
    """False where a terminal gives whole lines only."""
    try:
        import termios
    except ImportError:
        return False
    return bool(termios)


def typed_keys(descriptor: int, prompt: str) -> str:
    """The keys typed on the terminal *descriptor* behind *prompt*, at least one; '' at the end of the input.

    The prompt comes when keys are heard, so that none typed at once is lost. The terminal is put back as it was.
    """
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        print(prompt, end="", file=sys.stderr, flush=True)
        return os.read(descriptor, 64).decode("utf-8", "replace")
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

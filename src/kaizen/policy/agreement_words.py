"""Sentences and lines about the agreement of a judge with experts."""

from kaizen.evaluators.standing import AT_HUMAN_LEVEL, BELOW_HUMAN_LEVEL, UNLABELLED
from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import counted, listed, visible
from kaizen.stats.intervals import REASONS

STANDING_REASONS = {
    **REASONS,
    "insufficient_evidence": "no two experts, or not the judge and an expert, have 20 cases in common",
    "one_expert": "only one expert labelled each case, so there is nothing to compare with",
    "no_common_cases": "it judged none of the cases that two experts labelled",
    "interval_too_wide": "the interval holds differences that matter and differences that do not",
}
NAMED_CASES = 10
COVERAGE_WORDS = (("consensus", "with a consensus"), ("contested", "contested"), ("uncovered", "with fewer than two labels"))


def kappa_text(value: float | None) -> str:
    """'0.72'; 'not measured' for none."""
    return "not measured" if value is None else f"{value:.2f}"


def span_text(interval: list[float] | None, sign: str = "") -> str:
    """'0.61 to 0.83'; '' for no interval."""
    return "" if interval is None else f"{interval[0]:{sign}.2f} to {interval[1]:{sign}.2f}"


def subject_text(document: JsonObject) -> str:
    """What the agreement is about: the judge and its id, or the name of the judge block."""
    return f"the judge '{visible(document['of'] or document['judge'])}'"


def level_sentence(document: JsonObject) -> str:
    """One plain sentence on where the judge stands among the experts."""
    band, who = document["band"], subject_text(document)
    who = who[0].upper() + who[1:]
    if document["standing"] == UNLABELLED:
        return f"No expert has labelled what {subject_text(document)} judges, so nothing is known about it."
    if band["difference"] is None or band["interval"] is None:
        why = STANDING_REASONS[document["standing_reason"]]
        return f"It is undecided if {subject_text(document)} agrees as well as the experts do: {why}."
    numbers = (
        f"mean kappa {kappa_text(band['judge_mean'])} with each expert, {kappa_text(band['expert_mean'])} between experts, "
        f"difference {band['difference']:+.2f} (95 % interval {span_text(band['interval'], '+')}) on {counted(band['cases'], 'case')}"
    )
    if document["standing"] == AT_HUMAN_LEVEL:
        return f"{who} agrees with the experts as well as they agree with each other: {numbers}."
    if document["standing"] == BELOW_HUMAN_LEVEL:
        return f"{who} agrees less with the experts than they agree with each other: {numbers}."
    return f"It is undecided if {subject_text(document)} agrees as well as the experts do: {numbers}."


def kappa_line(entry: JsonObject) -> str:
    """'kappa 0.72 (0.61 to 0.83), agreement 86 %, n = 120'."""
    if entry["kappa"] is None:
        kappa = f"kappa not measured: {STANDING_REASONS.get(entry['reason'], entry['reason'])}"
    else:
        span = span_text(entry.get("interval")) or ("fewer than 20 cases, no interval" if entry["n"] < 20 else "no interval")
        kappa = f"kappa {kappa_text(entry['kappa'])} ({span})"
    raw = "" if entry["agreement"] is None else f", agreement {100 * entry['agreement']:.1f} %"
    return f"{kappa}{raw}, n = {entry['n']:,}"


def agreement_lines(document: JsonObject) -> list[str]:
    """The whole document for a terminal."""
    if document["standing"] == UNLABELLED:
        return [level_sentence(document), *[f"note: {note}" for note in document["notes"]]]
    covered, block = document["coverage"], []
    rows = [("judge / consensus", kappa_line(document["judge_vs_consensus"]))]
    rows += [(f"  {name} weights", kappa_line(entry)) for name, entry in document["judge_vs_consensus"]["other_weights"].items()]
    rows += [(f"judge / {visible(entry['expert'], 30)}", kappa_line(entry)) for entry in document["judge_vs_experts"]]
    rows += [(f"{visible(entry['a'], 30)} / {visible(entry['b'], 30)}", kappa_line(entry)) for entry in document["expert_pairs"]]
    width = max(len(name) for name, _ in rows)
    block += [f"  {name:<{width}}  {text}" for name, text in rows]
    if document["leave_one_out"]:
        block.append("against the consensus of the other experts:")
        for entry in document["leave_one_out"]:
            judge, human = (f"{kappa_text(entry[side]['kappa'])} (n = {entry[side]['n']:,})" for side in ("judge", "human"))
            block.append(f"  {visible(entry['expert'], 30)} left out: judge {judge}, {visible(entry['expert'], 30)} {human}")
    if document["krippendorff"]:
        alpha = document["krippendorff"]
        told = kappa_text(alpha["alpha"]) + (f": {STANDING_REASONS[alpha['reason']]}" if alpha["reason"] else "")
        block.append(f"Krippendorff's alpha of the experts ({alpha['level']}; not everybody labelled everything): {told}")
    kinds = ", ".join(f"{covered[name]:,} {word}" for name, word in COVERAGE_WORDS)
    abstained = f"{counted(covered['judge_abstained'], 'case')} without a word of the judge"
    head = f"  {counted(covered['labelled'], 'labelled case')} of {document['cases']:,}: {kinds}; {abstained}; {covered['used']:,} used"
    lines = [level_sentence(document), head, *block, *agreed_label_lines(document), *rate_lines(document)]
    for title, key in (("contested (an unclear policy?)", "contested"), ("abstained", "abstained")):
        text = listed_cases(document[key], document["holdout"][key])
        lines += [f"{title}: {text}"] if text else []
    return [*lines, *[f"note: {note}" for note in document["notes"]]]


def listed_cases(entries: list[JsonObject], hidden: int) -> str:
    """The first ids of *entries*, then how many more and how many of the holdout there are."""
    shown = [visible(entry["case_id"], 60) for entry in entries]
    more = [f"{len(shown) - NAMED_CASES} more"] if len(shown) > NAMED_CASES else []
    return listed([*shown[:NAMED_CASES], *more, *([counted(hidden, "holdout case")] if hidden else [])], NAMED_CASES + 2)


def agreed_label_lines(document: JsonObject) -> list[str]:
    """The table of labels: of each how often experts agreed on it, how often the judge said it, and both."""
    rows: list[tuple[str, ...]] = [("label", "consensus", "judge", "both", "found", "right")]
    for entry in document["per_label"]:
        shares = ["-" if entry[key]["share"] is None else f"{100 * entry[key]['share']:.0f} %" for key in ("found", "right")]
        rows.append((visible(entry["label"], 30), *[f"{entry[key]:,}" for key in ("consensus", "judge", "both")], *shares))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def rate_lines(document: JsonObject) -> list[str]:
    """The rate of each stage, as the judge says and corrected for its measured error."""
    return [rate_sentence(entry, document["positive"]) for entry in document["rates"]]


def rate_sentence(entry: JsonObject, label: str) -> str:
    """'candidate: the judge says 'pass' in 80.0 % …; corrected for its measured error (Rogan-Gladen) 76.2 % …'."""
    if entry["rate"] is None:
        return f"{entry['stage']}: the judge decided no trial"

    def share(value: float, interval: list[float]) -> str:
        return f"{100 * value:.1f} % ({100 * interval[0]:.1f} to {100 * interval[1]:.1f} %)"

    said = f"{entry['stage']}: the judge says '{visible(label, 40)}' in {share(entry['rate'], entry['interval'])} of the trials"
    if entry["corrected"] is None:
        return f"{said}; its error could not be measured: {STANDING_REASONS[entry['reason']]}"
    return f"{said}; corrected for its measured error ({entry['method']}): {share(entry['corrected'], entry['corrected_interval'])}"

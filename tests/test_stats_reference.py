"""All cases of tests/data/stats_reference.json: values from scipy, statsmodels, scikit-learn, mpmath and enumeration."""

import random
import unittest
from fractions import Fraction

from support import DATA, kaizen, read_json

REFERENCE = read_json(DATA / "stats_reference.json")
CASES_IN_ALL = 153


def tallies(cases):
    """[(passed, valid, trials)] of cases given as lists of 1, 0 and None."""
    return [(sum(trial == 1 for trial in case), sum(trial is not None for trial in case), len(case)) for case in cases]


def limits(interval):
    """An interval as the reference writes it."""
    return None if interval is None else list(interval)


def wilson(k, n, confidence):
    found = kaizen.wilson_interval(k, n, confidence)
    return {"low": found.low, "high": found.high} if found else {"low": None, "high": None, "reason": "no_valid_observations"}


def clopper_pearson(k, n, confidence):
    found = kaizen.clopper_pearson_interval(k, n, confidence)
    return {"low": found.low, "high": found.high}


def pass_rate(cases, confidence):
    found = kaizen.pass_rate(tallies(cases), confidence)
    low, high = found.interval or (None, None)
    return {
        "n_cases": found.cases,
        "n_cases_without_valid": found.cases_without_valid,
        "n_trials": found.trials,
        "n_excluded_trials": found.excluded,
        "rate": found.rate,
        "pooled_rate": found.pooled,
        "n_eff": found.n_eff,
        "low": low,
        "high": high,
        "bound_if_excluded_fail": found.bound_if_excluded_fail,
        "bound_if_excluded_pass": found.bound_if_excluded_pass,
        "reason": found.reason,
    }


def paired_delta(cases, confidence, min_informative):
    def value(trials):
        known = [kaizen.exact_fraction(trial) for trial in trials if trial is not None]
        return sum(known, Fraction(0)) / len(known) if known else None

    pairs, excluded = {}, []
    for case in cases:
        sides = value(case["baseline"]), value(case["candidate"])
        reasons = [name for name, side in zip(("no_valid_baseline", "no_valid_candidate"), sides, strict=False) if side is None]
        if reasons:
            excluded.append({"id": case["id"], "reason": reasons[0]})
        else:
            pairs[case["id"]] = sides
    counts = {}
    for before, after in pairs.values():
        counts[after - before] = counts.get(after - before, 0) + 1
    found, test = kaizen.paired_mean(counts, confidence, min_informative), kaizen.sign_flip(counts)
    rates = [sum(side[place] for side in pairs.values()) / len(pairs) if pairs else None for place in (0, 1)]
    return {
        "n_cases": len(cases),
        "n_comparable": found.n,
        "excluded": excluded,
        "delta": found.delta,
        "baseline_rate": rates[0],
        "candidate_rate": rates[1],
        "n_informative": found.informative,
        "improved": [name for name, (before, after) in pairs.items() if after > before],
        "regressed": [name for name, (before, after) in pairs.items() if after < before],
        "p_gt": found.p_gt,
        "p_eq": found.p_eq,
        "p_lt": found.p_lt,
        "signflip": {"greater": test.greater, "less": test.less, "two_sided": test.two_sided},
        "se": found.se,
        "percentile": limits(found.percentile),
        "t_interval": limits(found.student),
        "expanded_alpha": found.expanded_tail,
        "expanded": limits(found.expanded),
        "plus_two": limits(found.plus_two),
        "interval": limits(found.interval),
        "interval_method": found.method,
        "reason": found.reason,
    }


paired_delta_scores = paired_delta


def bootstrap_mean_real(values, confidence):
    # The reference is the plain percentile interval.
    law = kaizen.ResampledMean({kaizen.exact_fraction(value): values.count(value) for value in values})
    found = law.limits((1 - confidence) / 2)
    return {"low": found.low, "high": found.high}


def mcnemar(b, c):
    found = kaizen.mcnemar(b, c)
    return {"p_exact": found.exact, "p_mid": found.mid, "reason": found.reason}


def paired_proportion_ci(table, confidence):
    (both, first), (second, neither) = table
    n = both + first + second + neither
    return {
        "difference": (first - second) / n,
        "newcombe10": limits(kaizen.newcombe_interval(both, first, second, neither, confidence)),
        "bonett_price": limits(kaizen.plus_two_interval(n, first - second, first + second, confidence)),
    }


def pass_k(k, n=None, c=None, cases=None):
    values = [(c, n)] if cases is None else [tally[:2] for tally in tallies(cases)]
    (at, left_out), (hat, _) = kaizen.pass_at_k(values, k), kaizen.pass_hat_k(values, k)
    found = {"pass_at_k": at, "pass_hat_k": hat, "n_cases_used": len(values) - left_out, "n_cases_left_out": left_out}
    return {**found, "reason": "fewer_trials_than_k" if at is None else None}


def kappa(table=None, weights=None, a=None, b=None):
    found = kaizen.cohen_kappa(table or kaizen.label_table(zip(a, b, strict=False))[1], weights or "nominal")
    return found._asdict()


def kappa_bootstrap(table, confidence):
    draws = kaizen.kappa_resamples(table, 20260101)
    n = sum(map(sum, table))
    tail, expanded = (1 - confidence) / 2, kaizen.expanded_tail(n, confidence)
    return {
        "kappa": kaizen.cohen_kappa(table).kappa,
        "percentile": [draws.quantile(tail), draws.quantile(1 - tail)],
        "expanded_alpha": expanded,
        "expanded": [draws.quantile(expanded), draws.quantile(1 - expanded)],
        "smoothed": limits(kaizen.smoothed_kappa_interval(table, confidence=confidence)),
    }


def krippendorff_alpha(ratings, level):
    return dict(zip(("alpha", "reason"), kaizen.krippendorff_alpha(ratings, level), strict=False))


def fleiss_kappa(counts):
    return dict(zip(("kappa", "reason"), kaizen.fleiss_kappa(counts), strict=False))


def aggregate(values, percentile=None):
    if percentile is None:
        return {"mean": kaizen.mean(values), "median": kaizen.median(values)}
    try:
        found = kaizen.percentile(values, percentile)
    except ValueError:
        return {"error": True}
    return {"value": found.value, "n": found.n, "n_excluded": found.excluded, "reason": found.reason}


def quantile_interval(n, q, confidence):
    return dict(zip(("low_rank", "high_rank"), kaizen.quantile_ranks(n, q, confidence), strict=False))


def classification(tp, fp, fn):
    found = {f"f{beta:g}": kaizen.precision_recall(tp, fp, fn, beta).f for beta in (0.5, 1, 2)}
    return {**found, "precision": kaizen.precision_recall(tp, fp, fn).precision, "recall": kaizen.precision_recall(tp, fp, fn).recall}


def planning(kind, alpha, power=None, **given):
    if kind == "mcnemar_normal":
        return {"n_unrounded": kaizen.discordant_cases_needed(given["p10"], given["p01"], alpha, power, given["sided"])}
    if kind == "mcnemar_exact_power":
        return {"power": kaizen.exact_mcnemar_power(given["n"], given["p10"], given["p01"], alpha, given["sided"])}
    spread = kaizen.Spread(given["omega2"], given["sigma2_a"], given["sigma2_b"], True)
    if kind == "clustered_mde":
        return {"mde": kaizen.smallest_effect(spread, given["k_a"], given["k_b"], given["n"], alpha, power)}
    n = kaizen.cases_needed(spread, given["k_a"], given["k_b"], given["delta"], alpha, power)
    return {"n_unrounded": n, "n": -int(-n // 1)}


def multiplicity(p):
    return {"bonferroni": kaizen.bonferroni(p), "holm": kaizen.holm(p), "bh": kaizen.benjamini_hochberg(p)}


def pareto(variants, gates):
    found = kaizen.pareto_front([kaizen.Variant(**variant) for variant in variants], **gates)
    return {"status": found.status, "front": found.front, "cheapest_feasible": found.cheapest_feasible}


def sequential(d, alpha):
    return kaizen.e_process(d, alpha)._asdict()


def holdout_access(kind, **given):
    if kind == "ladder":
        return {"released": kaizen.ladder(given["scores"], given["step"])}
    noises = given["eta"], given["xi"], given["gamma"]
    found = kaizen.thresholdout(given["train"], given["holdout"], given["threshold"], given["budget"], noises)
    return {"released": found.values, "budget_left": found.budget}


def human_band(items, experts):
    found = kaizen.human_band([(item["judge"], [item["experts"][name] for name in experts]) for item in items], experts)
    return {
        "pairwise": [{"a": a, "b": b, "kappa": each.kappa, "n": each.n} for a, b, each in found.pairwise],
        "judge_vs_expert": [{"expert": name, "kappa": each.kappa, "n": each.n} for name, each in found.judge_vs_expert],
        "mean_pairwise": found.mean_pairwise,
        "mean_judge_vs_expert": found.mean_judge_vs_expert,
        "judge_vs_consensus": found.judge_vs_consensus.kappa,
        "n_consensus_used": found.counts["used"],
        "n_contested": found.counts.get("contested", 0),
        "n_uncovered": found.counts.get("uncovered", 0),
        "n_abstained_on_consensus": found.counts["abstained_on_consensus"],
        "leave_one_out": [{"expert": name, "judge": own.kappa, "human": human.kappa} for name, own, human in found.leave_one_out],
    }


def distribution(fn, p, df=None):
    return {"value": kaizen.normal_point(p) if fn == "normal_quantile" else kaizen.student_point(p, df)}


def flaky(cases):
    return {"status": [kaizen.stability(passed, valid) for passed, valid, _ in tallies(cases)]}


def suite_permutation(trials, baseline_passes, candidate_passes):
    cases = [(before, trials, after, trials) for before, after in zip(baseline_passes, candidate_passes, strict=False)]
    return dict(zip(("p_greater", "p_less"), kaizen.suite_permutation(cases), strict=False))


def binomial_sampler(seed, n=None, a=None, b=None, table=None, resamples=None):
    rng = random.Random(seed)
    if table is None:
        return {"draws": [kaizen.binomial_draw(rng, n, a, b) for _ in range(20)]}
    cells = sorted(((-count, row, column) for row, line in enumerate(table) for column, count in enumerate(line)))
    found = []
    for _ in range(resamples):
        drawn = [[0] * len(table) for _ in table]
        for (_, row, column), count in zip(cells, kaizen.multinomial_draw(rng, [-count for count, _, _ in cells]), strict=False):
            drawn[row][column] = count
        found.append(kaizen.cohen_kappa(drawn).kappa)
    return {"kappa_resamples_in_order": found}


class Reference(unittest.TestCase):
    """Each case with its own tolerance; a null comes with the reason that the case names."""

    maxDiff = None

    def close(self, found, expected, tolerance, place):
        if isinstance(expected, dict):
            for key, value in expected.items():
                self.close(found[key], value, tolerance, f"{place}/{key}")
        elif isinstance(expected, list):
            # The reference shows the first few draws of a longer series.
            self.assertTrue(len(found) == len(expected) or place.endswith("/draws"), place)
            for number, value in enumerate(expected):
                self.close(found[number], value, tolerance, f"{place}/{number}")
        elif isinstance(expected, bool) or not isinstance(expected, (int, float)):
            self.assertEqual(found, expected, place)
        else:
            self.assertIsNotNone(found, place)
            self.assertLessEqual(abs(float(found) - expected), tolerance, place)

    def test_every_case_is_met_within_its_tolerance(self):
        seen = 0
        for quantity, group in REFERENCE["sets"].items():
            for case in group["cases"]:
                seen += 1
                with self.subTest(case["id"]):
                    self.close(globals()[quantity](**case["input"]), case["expected"], case["abs_tol"], case["id"])
        self.assertEqual(seen, CASES_IN_ALL)


if __name__ == "__main__":
    unittest.main()

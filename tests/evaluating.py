"""What tests of evaluators share: one entry on one observation, a suite from Python values."""

import json

from support import make_improvement

import kaizen

CASE = {"id": "c1", "input": "?"}


def observation(output=None, **fields):
    """A completed observation of trial 1 of case c1."""
    return {"case_id": "c1", "trial": 1, "status": "completed", "output": output, **fields}


def entry_of(kind, **settings):
    """An entry with an id."""
    return {"id": "e", "type": kind, **settings}


def outcome_of(entry, output=None, case=None, **fields):
    """What one entry says of an output (or of further fields of the observation)."""
    return kaizen.prepare_entry(entry).evaluate(observation(output, **fields), case or CASE, {})


def status_of(entry, output=None, case=None, **fields):
    """The status alone."""
    return outcome_of(entry, output, case, **fields).status


def refusal_of(entry):
    """(pointer, message, hint) with which an entry is refused; fails when it is accepted."""
    try:
        kaizen.prepare_entry(entry)
    except kaizen.ConfigurationError as error:
        return error.pointer, error.message, error.hint
    raise AssertionError(f"accepted: {json.dumps(entry)}")


def suite_of(cases, evaluators, name="refund", **evaluation):
    """(suite, dataset, breaches) of an improvement that is written into the current folder."""
    folder = make_improvement(name, cases, {"evaluators": evaluators, **evaluation})
    breaches = kaizen.Breaches()
    improvement = kaizen.find_improvement(str(folder))
    loaded = kaizen.load_evaluation(improvement, breaches)
    dataset = kaizen.load_dataset(improvement, loaded.include, breaches)
    return kaizen.build_suite(loaded, dataset, breaches), dataset, breaches


def result_of(evaluators, output=None, cases=(CASE,), **fields):
    """The result line of one observation, through the whole suite."""
    suite, dataset, breaches = suite_of(cases, evaluators)
    if breaches.errors:
        raise AssertionError([breach.text() for breach in breaches.errors])
    found = observation(output, **fields)
    return suite.evaluate(found, dataset.cases[found["case_id"]])

"""GEPA (the package gepa, optional) as an optimizer: a model reflects and writes, Kaizen runs and scores.

    kaizen optimize IMPROVEMENT --timeout 3600 -- python gepa_optimizer.py --evaluation EVALUATION --reflect "COMMAND" -- AGENT… {component}

It speaks protocol 1.0 of docs/optimizing.md. COMMAND gets GEPA's question on standard input and prints the model's answer. In
AGENT `{NAME}` becomes the path of a file with the text of component NAME. Every score comes from `kaizen run` and
`kaizen evaluate` in a throw-away folder that holds the open cases of the feedback, and no others.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile

import gepa

KAIZEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kaizen.py")
LEFT_OUT = ("include", "optimization", "agreement", "judge", "objectives")  # of evaluation.json: about other files and commands


def options_and_agent(words):
    """The options, and the agent's command behind '--'."""
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description="An optimizer for kaizen optimize that searches with GEPA.")
    parser.add_argument("--evaluation", required=True, help="evaluation.json whose evaluators score")
    parser.add_argument("--reflect", required=True, help="command that answers a question on standard input")
    parser.add_argument("--calls", type=int, default=200, help="so often the agent is run on a case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", default="2", help="as in kaizen run")
    parser.add_argument("--persistent", action="store_true", help="as in kaizen run")
    parser.add_argument("--kaizen", default=KAIZEN, help="the file kaizen.py")
    options = parser.parse_args(words[:cut])
    if not words[cut + 1 :]:
        parser.error("write the agent's command behind '--'")
    return options, words[cut + 1 :]


class KaizenAdapter:
    """What GEPA asks of a system: scores of a candidate on cases, and what a model should read about them."""

    propose_new_texts = None  # GEPA's own way

    def __init__(self, options, agent, cases, folder):
        self.options, self.agent, self.folder = options, agent, folder
        self.improvement = os.path.join(folder, "improvements", "search")
        self.stages = self.unusable = 0
        sys.path.insert(0, os.path.dirname(os.path.abspath(options.kaizen)))
        self.main = importlib.import_module("kaizen").main  # once: a process for each call would take longer than most agents
        os.makedirs(self.improvement)
        with open(options.evaluation, encoding="utf-8") as file:
            evaluation = {key: value for key, value in json.load(file).items() if key not in LEFT_OUT}
        self.write(os.path.join(self.improvement, "evaluation.json"), json.dumps(evaluation))
        self.write(os.path.join(self.improvement, "test_cases.jsonl"), "".join(json.dumps(case) + "\n" for case in cases))

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def kaizen(self, *words):
        """Runs a command of Kaizen; 4 says that some trials have no usable evidence, which the results tell one by one."""
        told = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            status = self.main([*words])
        if status not in (0, 4):
            told.seek(0)
            sys.exit(f"kaizen {words[0]} ended with {status}: {told.read().strip()}")

    def lines(self, name):
        with open(os.path.join(self.improvement, name), encoding="utf-8") as file:
            return {line["case_id"]: line for line in map(json.loads, file)}

    def evaluate(self, batch, candidate, capture_traces=False):
        """Runs the agent with the texts of *candidate* on the cases of *batch*, as a stage of its own."""
        self.stages += 1
        stage = f"try-{self.stages}"
        agent = list(self.agent)
        for name, text in candidate.items():
            path = os.path.join(self.folder, f"{stage}-{name}.txt")
            self.write(path, text)
            agent = [word.replace("{" + name + "}", path) for word in agent]
        chosen = [word for case in batch for word in ("--id", case["id"])]
        way = ["--persistent"] if self.options.persistent else []
        options = ["--stage", stage, "--jobs", self.options.jobs, "--progress", "none", *way, *chosen]
        self.kaizen("run", self.improvement, *options, "--", *agent)
        self.kaizen("evaluate", self.improvement, "--stage", stage)
        observed, results = self.lines(f"{stage}.jsonl"), self.lines(f"{stage}.evaluated.jsonl")
        found = [(case, observed[case["id"]], results[case["id"]]) for case in batch]
        self.unusable += sum(result["outcome"] == "error" for _, _, result in found)
        return gepa.EvaluationBatch(
            outputs=[observation.get("output") for _, observation, _ in found],
            scores=[0.0 if result["outcome"] == "error" else float(result["score"] or 0) for _, _, result in found],
            trajectories=found if capture_traces else None,
        )

    def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
        """What went in, what came out, and what each evaluator that did not pass said."""
        records = []
        for case, observation, result in eval_batch.trajectories:
            missed = [entry for entry in result["evaluations"] if entry["status"] in ("fail", "error")]
            reasons = [f"{entry['id']}: {entry['reason']}" for entry in missed]
            told = "\n".join(reasons) or "All evaluators passed."
            inputs = {name: json.dumps(case.get(name), ensure_ascii=False) for name in ("input", "context")}
            output = json.dumps(observation.get("output"), ensure_ascii=False)
            records.append({"Inputs": inputs, "Generated Outputs": output, "Feedback": told})
        return dict.fromkeys(components_to_update, records)


def searched(request, options, agent):
    """The candidates that score better than the texts as they are on the open cases, best first, within the budget."""
    cases = request["feedback"]["cases"]
    seed = {component["name"]: component["text"] for component in request["components"]}

    def reflect(prompt):
        text = prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)
        return subprocess.run(shlex.split(options.reflect), input=text, stdout=subprocess.PIPE, text=True, check=True).stdout

    with tempfile.TemporaryDirectory() as folder:
        adapter = KaizenAdapter(options, agent, cases, folder)
        found = gepa.optimize(
            seed_candidate=seed,
            trainset=cases,
            valset=cases,
            adapter=adapter,
            reflection_lm=reflect,
            max_metric_calls=options.calls,
            seed=options.seed,
        )
    print(f"{adapter.stages} runs, {adapter.unusable} trials without usable evidence", file=sys.stderr)
    scores = found.val_aggregate_scores
    better = sorted((index for index in range(1, len(scores)) if scores[index] > scores[0]), key=lambda index: -scores[index])
    said = "GEPA: mean score {:.3f} on {} open cases, {:.3f} before"
    return [
        {"components": found.candidates[index], "rationale": said.format(scores[index], len(cases), scores[0])}
        for index in better[: request["budget"]["maximum_candidates"]]
    ]


if __name__ == "__main__":
    chosen_options, agent_command = options_and_agent(sys.argv[1:])
    with contextlib.redirect_stdout(sys.stderr):  # GEPA logs on standard output
        candidates = searched(json.load(sys.stdin), chosen_options, agent_command)
    json.dump({"candidates": candidates}, sys.stdout)

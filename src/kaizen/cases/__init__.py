"""The improvement folder: cases, evaluation.json, the decision."""

"""Runs: a command is started once a trial, and what it answered is recorded as a stage."""

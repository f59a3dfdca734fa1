"""The command line: parse, run, print."""

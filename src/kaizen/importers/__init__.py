"""Test cases and checks that were written for other tools."""

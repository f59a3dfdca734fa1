"""The lab: systems, variants and runs that name their source."""

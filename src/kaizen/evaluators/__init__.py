"""What is said of one observation: pass, fail, error or not_applicable."""

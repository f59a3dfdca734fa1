"""What knows no word of evaluation: errors, files, JSON, text, clock, processes."""

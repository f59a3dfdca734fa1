"""Pages: one self-contained HTML file each."""

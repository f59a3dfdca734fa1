"""What was recorded, what was promoted, and whether anything has been changed since."""

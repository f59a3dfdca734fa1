"""Numbers or None: nothing here reads, prints, or uses a clock."""

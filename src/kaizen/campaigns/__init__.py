"""Campaigns: search greedily, claim conservatively."""

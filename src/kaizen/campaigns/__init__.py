"""Campaigns: many variants of a system towards one goal, searched greedily and claimed conservatively."""

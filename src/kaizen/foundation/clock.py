"""The clock: the one place that asks what time it is, so that tests can replace it."""

import time


def utc_now() -> str:
    """The current time as ISO 8601 in UTC with milliseconds, e.g. 2026-01-02T03:04:05.678Z."""
    now = time.time()
    milliseconds = int(now * 1000) % 1000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{milliseconds:03d}Z"


def monotonic_seconds() -> float:
    """Seconds of a clock that never goes back; only differences mean something."""
    return time.monotonic()

"""Cuts texts short, masked first: half a secret would not be recognised any more.

Each function gives the text and what was masked in it, as the observation lists it. A text
that is kept whole is not looked at here: it is masked with the rest of its observation.
"""

import os

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.redact import environment_secrets, redact_text
from kaizen.foundation.text import counted

CUT_MARGIN = 16 << 10  # looked at beyond what is kept: more than any secret is long
EXCERPT = 240  # characters of standard output shown from each end in a protocol error
CONTINUATION = bytes(range(0x80, 0xC0))  # of a character in UTF-8 that was cut in two


def masked_part(text: str, pointer: str) -> tuple[str, list[JsonObject]]:
    """(*text* masked, what was masked in it), for what stands at *pointer* of the observation."""
    masked, counts = redact_text(text, environment_secrets(os.environ))
    return masked, [{"pointer": pointer, "family": family, "count": count} for family, count in counts.items()]


def cut_head(text: str, limit: int, pointer: str) -> tuple[str, list[JsonObject]]:
    """*text*, or its first *limit* characters and the number left out."""
    if len(text) <= limit:
        return text, []
    masked, hits = masked_part(text[: limit + CUT_MARGIN], pointer)
    return f"{masked[:limit]}… ({len(text) - limit} more characters)", hits


def cut_tail(data: bytes, limit: int, cut: int, what: str, pointer: str) -> tuple[str, list[JsonObject]]:
    """The last *limit* bytes of *data* as text, headed by a line that says how many of *what* were cut off before; *cut* were already."""
    hidden = cut + len(data) - limit
    if hidden <= 0:
        return data.decode("utf-8", "replace"), []
    masked, hits = masked_part(data[-limit - CUT_MARGIN :].lstrip(CONTINUATION).decode("utf-8", "replace"), pointer)
    kept = (masked.encode("utf-8") if hits else data)[-limit:].lstrip(CONTINUATION).decode("utf-8", "replace")
    return f"[{counted(hidden, 'byte')} of {what} before this were cut]\n{kept}", hits


def cut_middle(stdout: bytes, pointer: str) -> tuple[str, list[JsonObject]]:
    """The beginning and the end of what was printed, for a protocol error; '' when nothing was."""
    text = stdout.decode("utf-8", "replace").strip()
    hidden = len(text) - 2 * EXCERPT
    if hidden <= 0:
        return text, []
    reach = EXCERPT + CUT_MARGIN
    masked, hits = masked_part(text if len(text) <= 2 * reach else f"{text[:reach]}\n{text[-reach:]}", pointer)
    return f"{masked[:EXCERPT]} … ({counted(hidden, 'character')} left out) … {masked[-EXCERPT:]}", hits

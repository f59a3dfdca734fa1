"""Copies of kept files with their secrets masked, made while they are copied.

A file is looked at in parts of about a MiB that end where a line does, and not inside a private key;
a line without end is cut behind a blank, a comma or a quote after 8 MiB. A file that is no text (no UTF-8,
or with a NUL) cannot be masked without being broken: one that holds a secret must not be kept.
"""

from collections.abc import Sequence

from kaizen.foundation.redact import mask_text, rules_for

MASKED_PART = 1 << 20  # bytes looked at together
LONGEST_PART = 8 << 20
PART_ENDS = (b" ", b"\t", b",", b";", b'"', b"'")


class CopyMasker:
    """What changes the blocks of one file while it is copied: called with each block, with b"" at its end.

    `counts` are the secrets found by family; `is_text` whether all of it was text.
    """

    def __init__(self, exact: Sequence[str]) -> None:
        self.exact = exact
        self.counts: dict[str, int] = {}
        self.is_text = True
        self.held: list[bytes] = []  # blocks that are not written yet
        self.wanted = MASKED_PART  # bytes to be held before they are looked at

    def __call__(self, block: bytes) -> bytes:
        self.held.append(block)
        if block and sum(map(len, self.held)) < self.wanted:
            return b""
        data = b"".join(self.held)
        end = part_end(data) if block else len(data)
        self.held = [data[end:]]
        self.wanted = MASKED_PART if end else 2 * len(data)
        return self.masked(data[:end])

    def masked(self, part: bytes) -> bytes:
        """*part* with its secrets masked and counted; the same bytes when it holds none."""
        try:
            text = part.decode("utf-8")
            self.is_text = self.is_text and "\0" not in text
        except UnicodeDecodeError:
            text = part.decode("latin-1")
            self.is_text = False
        hot = [value for value in self.exact if value in text]
        rules = rules_for(part)
        changed = mask_text(text, rules, hot, self.counts) if rules or hot else text
        return part if changed == text else changed.encode("utf-8")


def part_end(data: bytes) -> int:
    """Where the part at the beginning of *data* ends, behind a line end; 0 when more must be known first."""
    end = data.rfind(b"\n") + 1
    key = data.rfind(b"-----BEGIN ", 0, end)
    if key >= 0 and data.find(b"-----END ", key) < 0:
        end = data.rfind(b"\n", 0, key) + 1
    if not end and len(data) >= LONGEST_PART:
        end = max(data.rfind(each) + 1 for each in PART_ENDS) or len(data)
    return end

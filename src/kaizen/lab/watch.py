"""Whether a work tree is still what it was when a run began.

A look compares HEAD, what git says of the tree and the hashes of locked files with the first look,
which is taken when the watch begins. The next is due after two seconds, or twenty times what the last one took if that is more: git uses
one thread for it, so looking costs at most 5 % of one core, however large the repository.
"""

import hashlib
import os

from kaizen.foundation.clock import monotonic_seconds
from kaizen.foundation.errors import InputError
from kaizen.foundation.files import open_for_reading
from kaizen.foundation.text import visible
from kaizen.lab.git import GitError
from kaizen.lab.provenance import Checkout, DirtyPath, TreeLook, look_at_tree

WATCH_SECONDS = 2.0
WATCH_SHARE = 20


class Watch:
    """What a session asks whether its tree is still what it was; this one sees no change. `before`: what differed at the start."""

    before: frozenset[DirtyPath] = frozenset()

    def poll(self) -> str | None:
        """`changed` when a look is due, else None at once."""
        return None

    def changed(self, is_last: bool = False) -> str | None:
        """One sentence on what has changed since the watch began; None when nothing has."""
        return None


class TreeWatch(Watch):
    """Watches *checkout*, and the files of *locked*: {path, relative to its root or absolute: SHA-256 in hexadecimal}. Raises GitError."""

    def __init__(self, checkout: Checkout, locked: dict[str, str]) -> None:
        self.checkout = checkout
        self.locked = {os.path.join(checkout.root, path): digest for path, digest in locked.items()}
        self.seen: dict[str, tuple[int, ...]] = {}  # what stat said of a locked file when its hash was right
        began = monotonic_seconds()
        self.before = frozenset(look_at_tree(checkout).dirty)
        self.looked(began)

    def poll(self) -> str | None:
        return self.changed() if monotonic_seconds() >= self.due else None

    def changed(self, is_last: bool = False) -> str | None:
        """One sentence on what has changed since the watch began; None when nothing has.

        What cannot be looked at counts as changed. A locked file is read again when its time stamps or size differ, and in
        the last look whatever they say.
        """
        began = monotonic_seconds()
        if is_last:
            self.seen.clear()
        try:
            look = look_at_tree(self.checkout)
            return self.head_change(look) or self.locked_change() or self.tree_change(look)
        except GitError as error:
            return f"the work tree can no longer be looked at: {error.message}"
        finally:
            self.looked(began)

    def looked(self, began: float) -> None:
        """Says when the look after one that began at *began* and has ended now is due."""
        ended = monotonic_seconds()
        self.interval = max(WATCH_SECONDS, WATCH_SHARE * (ended - began))
        self.due = ended + self.interval

    def head_change(self, look: TreeLook) -> str | None:
        """That HEAD is another commit or branch."""
        head, branch = look.head, look.branch
        if head != self.checkout.head:
            return f"HEAD moved from {(self.checkout.head or 'no commit')[:12]} to {(head or 'no commit')[:12]}"
        return None if branch == self.checkout.branch else f"the branch changed to {visible(branch or 'none (detached HEAD)')}"

    def locked_change(self) -> str | None:
        """That a locked file has other bytes, or is gone."""
        for path, digest in self.locked.items():
            try:
                status = os.stat(path)
                facts = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
                if self.seen.get(path) == facts:
                    continue
                if content_sha256(path) != digest:
                    return f"the locked file {visible(os.path.relpath(path, self.checkout.root))} changed"
                self.seen[path] = facts
            except (OSError, InputError):
                return f"the locked file {visible(os.path.relpath(path, self.checkout.root))} is gone or cannot be read"
        return None

    def tree_change(self, look: TreeLook) -> str | None:
        """That a path became, or is no longer, different from the commit."""
        now = set(look.dirty)
        changes = sorted(now ^ self.before)
        if not changes:
            return None
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        what = changes[0].kind if changes[0] in now else "back to the commit"
        return f"the work tree changed: {visible(changes[0].path)} ({what}){more}"


def content_sha256(path: str) -> str:
    """The SHA-256 of the file *path* in hexadecimal, read in blocks. Raises InputError."""
    digest = hashlib.sha256()
    with open_for_reading(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()

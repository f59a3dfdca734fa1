"""Version and digest of the running program.

The digest is computed from the bytes that run, so that a user can compare it with
`sha256sum kaizen.py`; a digest written into the file would prove nothing.
"""

import hashlib
import os
import sys

from kaizen.foundation.files import read_bytes

VERSION = "0.1.0"
UPGRADE_NOTE = ".kaizen-skills.json"  # beside kaizen.py: the version whose skills were installed from here


def own_path() -> str:
    """Absolute path of the file this program runs from."""
    return os.path.abspath(__file__)


def own_digest() -> str:
    """First 12 hexadecimal digits of the SHA-256 of the running file."""
    return hashlib.sha256(read_bytes(own_path())).hexdigest()[:12]


def version_line() -> str:
    """'kaizen 0.1.0 (sha256 67bb4bdb0669, Python 3.12.1)'."""
    return f"kaizen {VERSION} (sha256 {own_digest()}, Python {sys.version.split()[0]})"

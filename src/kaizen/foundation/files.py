"""Reading and writing files: the only door to the disk.

Whole files are written beside their place and renamed, so that a reader sees the old
or the new content and a full disk or a kill loses nothing. Nothing is written through
a symbolic link that leaves the folder it stands in.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, NoReturn

from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.text import visible

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLOCK = 1 << 20


def shown_path(path: str) -> str:
    """*path* as printed: relative to the current folder when it lies below it, made safe for a terminal."""
    try:
        relative = os.path.relpath(path)
    except (ValueError, OSError):  # another drive on Windows, or the current folder is gone
        return visible(path, None)
    return visible(path if relative.startswith("..") else relative, None)


def refuse_reading(path: str, error: OSError, hint: str = "") -> NoReturn:
    """Raises InputError that says why *path* could not be read."""
    what = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror or error}"
    raise InputError(f"{shown_path(path)}: {what}", hint, "missing_file" if isinstance(error, FileNotFoundError) else "") from None


def refuse_writing(path: str, error: OSError) -> NoReturn:
    """Raises InputError that says why *path* could not be written; the old content is still there."""
    raise InputError(
        f"{shown_path(path)}: cannot be written: {error.strerror or error}",
        "make room or choose another folder, then run the command again; what was there before is unchanged",
        "cannot_write",
    ) from None


def read_bytes(path: str, hint: str = "") -> bytes:
    """The bytes of the file *path*. Raises InputError with *hint* if it cannot be read."""
    refuse_special(path)
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        refuse_reading(path, error, hint)


def decode_utf8(data: bytes, place: str) -> str:
    """*data* as text, without a byte-order mark. Raises InputError with the byte offset if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: is not UTF-8 (byte {error.start})", "save the file as UTF-8") from None


def read_text(path: str, hint: str = "") -> str:
    """The text of the UTF-8 file *path*; a byte-order mark is dropped and CRLF read as LF."""
    return decode_utf8(read_bytes(path, hint), shown_path(path)).replace("\r\n", "\n")


def open_for_reading(path: str, hint: str = "", block: int = BLOCK) -> IO[bytes]:
    """*path* opened for reading bytes, *block* at a time, to be closed by the caller. Raises InputError."""
    refuse_special(path)
    try:
        return open(path, "rb", block)
    except OSError as error:
        refuse_reading(path, error, hint)


def refuse_special(path: str) -> None:
    """Raises InputError for a named pipe or a device, which may be waited for or never end.

    A pipe that a shell made for a command, as /dev/fd/63 or /dev/stdin, is fine.
    """
    import stat

    try:
        mode = os.stat(path).st_mode
    except OSError:
        return  # opening it says what is wrong
    is_pipe = stat.S_ISFIFO(mode) and not path.startswith(("/dev/", "/proc/"))
    if is_pipe or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InputError(f"{shown_path(path)}: is a {'named pipe' if is_pipe else 'device'}, not a file", "put a file in its place")


def refuse_link_out(path: str) -> None:
    """Raises RefusedError when *path* is a symbolic link to a place outside its own folder."""
    if os.path.islink(path):
        folder = os.path.realpath(os.path.dirname(path) or ".")
        target = os.path.realpath(path)
        if os.path.commonpath([folder, target]) != folder:
            raise RefusedError(
                f"{shown_path(path)}: is a symbolic link that leaves its folder; not written",
                "remove the link, or name the folder it leads to",
                "link_leaves_folder",
            )


def list_folder(path: str) -> list[str]:
    """The names in the folder *path*, sorted. Raises InputError."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        refuse_reading(path, error)


def make_folder(path: str) -> None:
    """Creates the folder *path* and those above it; an existing one is fine. Raises InputError."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        refuse_writing(path, error)


def make_new_folder(path: str) -> bool:
    """Creates the folder *path*; False, and nothing done, when something is there already. Raises InputError."""
    try:
        os.mkdir(path)
    except FileExistsError:
        return False
    except OSError as error:
        refuse_writing(path, error)
    return True


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A stream of bytes that becomes the file *path* when the block ends without an error.

    Until then the old file stays; after an error the half-written one is removed.
    Raises InputError when the disk says no.
    """
    refuse_link_out(path)
    folder, name = os.path.split(path)
    unfinished = os.path.join(folder, f".{name[:200]}.{os.getpid()}.tmp")
    try:
        with open(unfinished, "wb", BLOCK) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        discard_unfinished(unfinished)
        refuse_writing(path, error)
    except BaseException:
        discard_unfinished(unfinished)
        raise


def discard_unfinished(path: str) -> None:
    """Removes a half-written file if it is there; a failure to do so hides nothing more important."""
    with suppress(OSError):
        os.unlink(path)


def sweep_unfinished(path: str) -> None:
    """Removes what killed writers of *path* left half-written beside it; for the one who holds its lock."""
    folder, name = os.path.split(path)
    for other in list_folder(folder or "."):
        if other.startswith(f".{name[:200]}.") and other.endswith(".tmp"):
            discard_unfinished(os.path.join(folder, other))


def write_file(path: str, content: str | bytes) -> None:
    """Writes *content* (text as UTF-8 with LF) as the file *path*, whole or not at all."""
    with replacing(path) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)


def sync_folder(path: str) -> None:
    """Puts the names in the folder *path* on disk; where folders cannot be synced (Windows) nothing is done."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def create_file(path: str, content: str) -> bool:
    """Writes *content* as the new file *path*; False, and nothing written, when something is there already."""
    if os.path.lexists(path):
        return False
    write_file(path, content)
    return True


def open_for_appending(path: str) -> int:
    """A file descriptor that appends to *path*. Raises InputError or RefusedError."""
    refuse_link_out(path)
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        refuse_writing(path, error)


def open_for_locking(path: str) -> int:
    """A file descriptor for reading and writing *path*, made if it is not there. Raises InputError or RefusedError."""
    refuse_link_out(path)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        refuse_writing(path, error)


def truncate_file(path: str, size: int) -> None:
    """Cuts the file *path* to *size* bytes, synced. Raises InputError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0))
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        refuse_writing(path, error)


def open_missing_streams() -> None:
    """Gives a standard stream that the caller has closed a place where what is written goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, open(nowhere, "w", encoding="utf-8", closefd=False))  # noqa: SIM115 (open for as long as the process)


def silence_descriptor(descriptor: int) -> None:
    """Points *descriptor* at nothing, so that what is still written to it goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def copy_file(source: str, target: str, change: Callable[[bytes], bytes] | None = None) -> tuple[str, int]:
    """(SHA-256 in hexadecimal, bytes) of the regular file *source*, copied to the new file *target* with its permissions.

    *change* says what is written for each block that is read, and at the end for b"".

    A link is not followed. Not synced: whoever records the hash can tell a copy that a crash cut short. Raises InputError.
    """
    import hashlib
    import stat

    try:
        reading = os.open(source, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        mode = os.fstat(reading).st_mode
    except OSError as error:
        refuse_reading(source, error)
    digest, size = hashlib.sha256(), 0
    try:
        if not stat.S_ISREG(mode):
            raise InputError(f"{shown_path(source)}: is no regular file")
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), stat.S_IMODE(mode) & 0o777 | 0o600)
        try:
            while block := os.read(reading, BLOCK):
                digest.update(block)
                size += len(block)
                write_all(writing, change(block) if change else block, target)
            if change:
                write_all(writing, change(b""), target)
        finally:
            os.close(writing)
    except OSError as error:
        refuse_writing(target, error)
    finally:
        os.close(reading)
    return digest.hexdigest(), size


def copy_link(source: str, target: str) -> None:
    """Makes *target* a symbolic link with the text of the link *source*, wherever that leads. Raises InputError."""
    try:
        os.symlink(os.readlink(source), target)
    except OSError as error:
        refuse_writing(target, error)


def write_all(descriptor: int, data: bytes, path: str) -> None:
    """Writes all of *data* to *descriptor*, however many calls it takes. Raises InputError naming *path*."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        refuse_writing(path, error)


def remove_folder(path: str) -> None:
    """Removes the folder *path* with all that is in it; links in it are removed, not followed. Raises InputError."""
    try:
        remove_tree(path)
    except OSError as error:
        refuse_writing(path, error)


def remove_tree(path: str) -> None:
    """Removes the folder *path*, however deep and whatever its permissions. Raises OSError.

    Folders inside are moved to its top before they are emptied: neither the stack nor the length of a path
    then grows with the depth, which a program may have made as deep as it likes.
    """
    waiting, moved = [path], 0
    while waiting:
        folder = waiting[-1]
        os.chmod(folder, 0o700)
        inner = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                elif folder == path:
                    inner.append(entry.path)
                else:
                    os.chmod(entry.path, 0o700)  # a folder that is moved has its '..' rewritten
                    while os.path.lexists(os.path.join(path, f".moved-{moved}")):
                        moved += 1
                    os.rename(entry.path, os.path.join(path, f".moved-{moved}"))
        if inner:
            waiting += inner
        else:
            os.rmdir(folder)
            waiting.pop()

"""The archive: files kept by their hash, each once, and the manifest that lists a run's.

`objects/ab/<SHA-256 of the content>` holds a file as it is, with `.gz` behind the name
compressed: compressors differ between machines, so a manifest states size and SHA-256 of the
content and of the stored bytes. Nothing is read through a link that leaves the history, and
no more is unpacked than the manifest says there is.
"""

import hashlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from kaizen.cases.dataset import is_inside
from kaizen.foundation.errors import InputError, RefusedError
from kaizen.foundation.files import BLOCK, make_folder, open_for_reading, replacing, shown_path
from kaizen.foundation.jsonio import JsonError, JsonObject, parse_json
from kaizen.history.ledger import LINE_ENDS_HINT, RESTORE_HINT

OBJECTS_FOLDER = "objects"
LARGE_BYTES = 64 << 10  # a file above this size is compressed
GZIP = 31  # zlib's window bits for the largest window in a gzip frame: no name, no time


class ArchiveError(InputError):
    """An archived file that is not what was recorded."""

    default_reason = "hash_mismatch"


class Source(NamedTuple):
    """A file to archive: its name in the manifest, and its content or the path that it is read from."""

    name: str
    path: str = ""
    content: bytes = b""

    def blocks(self) -> Iterator[bytes]:
        """The content, a block at a time."""
        if not self.path:
            yield self.content
            return
        with open_for_reading(self.path) as stream:
            while block := stream.read(BLOCK):
                yield block


class MeasuredSource(NamedTuple):
    """A source and what its content comes to."""

    source: Source
    sha256: str
    size: int

    def object_name(self) -> str:
        """Where the history keeps it, from its folder."""
        return object_name(self.sha256, self.size > LARGE_BYTES)


def object_name(sha256: str, is_packed: bool) -> str:
    """The path of an object inside the history folder, '/' between the parts."""
    return f"{OBJECTS_FOLDER}/{sha256[:2]}/{sha256}{'.gz' if is_packed else ''}"


def measured_source(source: Source) -> MeasuredSource:
    """*source* read once, for its hash and size. Raises InputError."""
    digest, size = hashlib.sha256(), 0
    for block in source.blocks():
        digest.update(block)
        size += len(block)
    return MeasuredSource(source, digest.hexdigest(), size)


def store_object(folder: str, item: MeasuredSource) -> JsonObject:
    """The manifest's entry of *item*, kept in the history *folder*; one that is kept already is not written again.

    Raises RefusedError when the source has changed since it was measured, InputError when the disk says no.
    """
    path = os.path.join(folder, *item.object_name().split("/"))
    if not os.path.lexists(path):
        make_folder(os.path.dirname(path))
        refuse_leaving(folder, os.path.dirname(path))
        write_object(path, item)
    is_packed = item.size > LARGE_BYTES
    stored = measured_source(Source("", path)) if is_packed else MeasuredSource(item.source, item.sha256, item.size)
    entry: JsonObject = {"name": item.source.name, "sha256": item.sha256, "bytes": item.size, "encoding": "gzip" if is_packed else None}
    entry.update(stored_sha256=stored.sha256, stored_bytes=stored.size)
    for _ in object_blocks(folder, entry):
        pass  # what was there already, or was just written, is what the entry says
    return entry


def write_object(path: str, item: MeasuredSource) -> None:
    """Writes the content of *item* as the object *path*, compressed when it is large."""
    import zlib

    packer = zlib.compressobj(6, zlib.DEFLATED, GZIP) if item.size > LARGE_BYTES else None
    digest = hashlib.sha256()
    with replacing(path) as stream:
        for block in item.source.blocks():
            digest.update(block)
            stream.write(packer.compress(block) if packer else block)
        if packer:
            stream.write(packer.flush())
        if digest.hexdigest() != item.sha256:
            message = f"{shown_path(item.source.path)}: changed while it was recorded; nothing was recorded"
            raise RefusedError(message, "wait until nobody writes it, then record again", "changed_while_recorded")


def refuse_leaving(folder: str, path: str) -> None:
    """Raises RefusedError when *path*, all links followed, is not inside *folder*."""
    if not is_inside(folder, path):
        message = f"{shown_path(path)}: leads out of the history through a symbolic link; neither read nor written"
        raise RefusedError(message, "put the folder itself in the place of the link", "link_leaves_folder")


def entry_object(entry: JsonObject) -> str:
    """The object that the manifest's *entry* names, as `object_name` gives it."""
    return object_name(entry["sha256"], entry["encoding"] == "gzip")


def object_blocks(folder: str, entry: JsonObject) -> Iterator[bytes]:
    """The content of the archived file *entry*, a block at a time, compared with its hashes on the way.

    Raises ArchiveError, at the latest behind the last block, when it is not what was recorded.
    """
    import zlib

    path = os.path.join(folder, *entry_object(entry).split("/"))
    shown = shown_path(path)
    if not is_inside(folder, path):
        raise ArchiveError(f"{shown}: leads out of the history through a symbolic link; not read", RESTORE_HINT, "link_leaves_folder")
    if not os.path.isfile(path):
        raise ArchiveError(f"{shown}: is missing", RESTORE_HINT)
    unpacker = zlib.decompressobj(GZIP) if entry["encoding"] else None
    stored, content, stored_size, size = hashlib.sha256(), hashlib.sha256(), 0, 0
    with open_for_reading(path) as stream:
        while block := stream.read(BLOCK):
            stored.update(block)
            stored_size += len(block)
            if stored_size > entry["stored_bytes"]:
                break
            for part in unpacked_blocks(unpacker, block, shown) if unpacker else (block,):
                content.update(part)
                size += len(part)
                if size > entry["bytes"]:
                    raise ArchiveError(f"{shown}: holds more than the {entry['bytes']:,} bytes that were recorded", RESTORE_HINT)
                yield part
    if (stored.hexdigest(), stored_size) != (entry["stored_sha256"], entry["stored_bytes"]):
        raise changed_object(path, entry)
    if (content.hexdigest(), size) != (entry["sha256"], entry["bytes"]):
        raise ArchiveError(f"{shown}: its content is not what was recorded", RESTORE_HINT)


def unpacked_blocks(unpacker: "object", block: bytes, shown: str) -> Iterator[bytes]:
    """What *unpacker* makes of *block*, at most BLOCK bytes at a time. Raises ArchiveError for what is no gzip."""
    import zlib

    while block:
        try:
            yield unpacker.decompress(block, BLOCK)  # type: ignore[attr-defined]
        except zlib.error:
            raise ArchiveError(f"{shown}: was changed, it cannot be unpacked", RESTORE_HINT) from None
        block = unpacker.unconsumed_tail  # type: ignore[attr-defined]


def changed_object(path: str, entry: JsonObject) -> ArchiveError:
    """The error of the object *path*, which is not what *entry* says: told apart when only line ends differ."""
    shown = shown_path(path)
    if entry["encoding"] is None and os.path.getsize(path) <= 4 * LARGE_BYTES:
        data = b"".join(Source("", path).blocks())
        plain = data.replace(b"\r\n", b"\n")
        if entry["sha256"] in (hashlib.sha256(each).hexdigest() for each in (plain, plain.replace(b"\n", b"\r\n"))):
            return ArchiveError(f"{shown}: only its line ends differ from what was recorded", LINE_ENDS_HINT, "line_ends")
    return ArchiveError(f"{shown}: was changed, it is not what was recorded", RESTORE_HINT)


def object_bytes(folder: str, entry: JsonObject) -> bytes:
    """The whole content of the archived file *entry*. Raises ArchiveError when it is not what was recorded."""
    return b"".join(object_blocks(folder, entry))


def object_json(folder: str, entry: JsonObject) -> JsonObject:
    """The JSON object in the archived file *entry*; {} when it holds none. Raises ArchiveError."""
    try:
        value = parse_json(object_bytes(folder, entry).decode("utf-8"))
    except (JsonError, UnicodeDecodeError):
        value = None
    return value if isinstance(value, dict) else {}

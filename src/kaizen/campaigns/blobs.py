"""Contents of files as git keeps them, many at a time, without a tree of them on disk."""

from collections.abc import Iterator

from kaizen.lab.git import GIT_LIMIT, git_answer, git_ended, git_error

SEARCH_SECONDS = 600.0
BATCH_BYTES = GIT_LIMIT // 2


def blob_contents(folder: str, objects: list[str], limit: int = BATCH_BYTES) -> Iterator[tuple[str, bytes | None]]:
    """(name, content) of each blob among *objects*, a few at a time; None for one that *folder* lacks or of more than *limit* bytes.

    Objects that are no blobs are left out. Raises GitError.
    """
    if not objects:
        return
    asked = "".join(f"{name}\n" for name in objects).encode()
    told = git_answer(folder, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", stdin=asked, seconds=SEARCH_SECONDS)
    batch: list[str] = []
    size = 0
    for row in told.splitlines():
        name, kind, *rest = row.split(" ")
        is_small = bool(rest) and int(rest[0]) <= min(limit, BATCH_BYTES)
        if kind == "missing" or kind == "blob" and not is_small:
            yield name, None
        if kind != "blob" or not is_small:
            continue
        if size + int(rest[0]) > BATCH_BYTES:
            yield from blob_batch(folder, batch)
            batch, size = [], 0
        batch.append(name)
        size += int(rest[0]) + 100
    yield from blob_batch(folder, batch)


def blob_batch(folder: str, names: list[str]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of each of the blobs *names*, all of them in memory at once."""
    if not names:
        return
    ended = git_ended(folder, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode(), seconds=SEARCH_SECONDS)
    if ended.exit_code:
        raise git_error(folder, "cat-file", ended)
    place = 0
    for name in names:
        head = ended.stdout.index(b"\n", place)
        size = int(ended.stdout[place:head].split(b" ")[2])
        yield name, ended.stdout[head + 1 : head + 1 + size]
        place = head + size + 2

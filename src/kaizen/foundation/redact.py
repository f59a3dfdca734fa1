r"""Secrets masked in text, JSON and command lines: `***REDACTED:github_token***`.

The *value layer* finds a secret in a text by its shape or by the name written in front of
it (`secret_shapes.py`). It alone masks evidence. The *key layer* goes by the name of a field,
flag or variable; logs, command lines and headers get both. What is masked is not masked again.

Which rules can apply at all is known from one pass over the bytes of a text, so ordinary
evidence costs about 10 microseconds a KB and is not walked through.
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kaizen.foundation.jsonio import JsonObject, encode_compact, pointer_token
from kaizen.foundation.secret_shapes import NAMED_SECRET, RedactionRule, compiled, redaction_rules

MASK = re.compile(r"\*\*\*REDACTED:[a-z_]+\*\*\*")
ENVIRONMENT_SECRET = "environment"
SHORTEST_ENVIRONMENT_SECRET = 8
SHORTEST_PLAIN_WORD = 16  # a variable that holds a plain word (PGPASSWORD=postgres) would mask that word wherever it stands
MAX_PASSES = 5  # a mask may lay open what was part of a longer word; two passes are usual
SCAN_BLOCK = 1 << 16  # bytes
SCAN_OVERLAP = 64  # bytes, more than the longest word that is looked for
LONG_RUN = b"x" * 20
ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}

# Names of the key layer: the whole name, or its end behind an underscore.
KEY_NAMES = frozenset(
    "token secret password passwd pwd passphrase authorization proxy_authorization cookie set_cookie api_key apikey x_api_key credential "
    "credentials auth dsn connection_string database_url private_key client_secret access_key secret_key".split()
)
KEY_ENDINGS = ("_token", "_secret", "_key", "_password", "_passwd", "_passphrase", "_credential", "_credentials", "_auth")


class RedactionPlan(NamedTuple):
    """All rules in their order, and by what a pass over the bytes of a text finds those that may apply: places in `rules`."""

    rules: tuple[RedactionRule, ...]
    by_word: dict[bytes, set[int]]
    by_start: dict[bytes, set[int]]
    starts: "list[re.Pattern[bytes]]"  # the keys of by_start, one pattern for each first letter, which `re` looks for fast
    user_info: set[int]
    word_table: bytes
    run_table: bytes


# --- Which rules may apply -----------------------------------------------------------


@lru_cache(1)
def redaction_plan() -> RedactionPlan:
    """The rules, made when the first text is looked at."""
    rules = redaction_rules()
    by_word: dict[bytes, set[int]] = {}
    by_start: dict[bytes, set[int]] = {}
    for place, rule in enumerate(rules):
        for start in rule.starts:
            by_start.setdefault(start.encode(), set()).add(place)
        for word in rule.words:
            for glue in ("", "n", "r", "t", "b", "f"):  # the letter of an escape before it: a line end in JSON is \\n
                by_word.setdefault((glue + word).encode(), set()).add(place)
    user_info = {place for place, rule in enumerate(rules) if not rule.words and not rule.starts}
    firsts = sorted({start[:1] for start in by_start})
    starts = [re.compile(b"|".join(start for start in by_start if start.startswith(first))) for first in firsts]
    is_letter = [chr(code).isalnum() and code < 128 for code in range(256)]
    words = bytes(ord(chr(code).lower()) if is_letter[code] else 32 for code in range(256))
    runs = bytes(120 if is_letter[code] or chr(code) in "_-." else 32 for code in range(256))
    return RedactionPlan(rules, by_word, by_start, starts, user_info, words, runs)


def rules_for(data: bytes) -> list[RedactionRule]:
    """The rules that may apply to *data*, a text or JSON in UTF-8: all that do, and sometimes one that does not."""
    rules, by_word, by_start, starts, user_info, word_table, run_table = redaction_plan()
    found: set[int] = set()
    for start in range(0, len(data), SCAN_BLOCK):
        block = data[start : start + SCAN_BLOCK + SCAN_OVERLAP] if len(data) > SCAN_BLOCK else data
        if b"\x1b" in block or (b"\\" in block and b"\\u00" in block):  # a control character, perhaps a colour, sticks to the next word
            block = re.sub(rb"(?:\\u00[01][0-9a-fA-F]|\x1b)(?:\[[0-9;]{0,8}m)?", b" ", block)
        words = block.translate(word_table).split()
        if not by_word.keys().isdisjoint(words):
            found.update(*(by_word[word] for word in by_word.keys() & set(words)))
        if LONG_RUN in block.translate(run_table):
            found.update(*(by_start[start] for pattern in starts for start in pattern.findall(block)))
        if b"@" in block:
            found |= user_info
    return [rules[place] for place in sorted(found)] if found else []


# --- Masking ---------------------------------------------------------------------------


def mask_of(family: str) -> str:
    """The text that stands in the place of a secret of *family*."""
    return f"***REDACTED:{family}***"


def masked_by(rule: RedactionRule, text: str, counts: dict[str, int]) -> str:
    """*text* with the secrets that *rule* finds masked, and counted in *counts*."""
    seen = text
    if rule.is_caseless:  # of the same length as the text, which lower() alone is not for every letter
        seen = text.lower() if text.isascii() else text.translate(ASCII_LOWER)
    search, find, mask = compiled(rule.pattern).search, rule.find, mask_of(rule.family)
    match = search(seen)
    parts: list[str] = []
    done = 0
    while match:
        start, end = find(match, text)
        if start < end and not (text.startswith("***", start) and MASK.fullmatch(text, start, end)):
            parts += (text[done:start], mask)
            done = end
        match = search(seen, end)
    if not parts:
        return text
    counts[rule.family] = counts.get(rule.family, 0) + len(parts) // 2
    return "".join(parts) + text[done:]


def mask_text(text: str, rules: list[RedactionRule], exact: Sequence[str], counts: dict[str, int]) -> str:
    """*text* masked by *rules* and of the values *exact*, longest first; what a mask lays open is masked as well."""
    for _ in range(MAX_PASSES):
        before = text
        for value in exact:
            if value in text:
                counts[ENVIRONMENT_SECRET] = counts.get(ENVIRONMENT_SECRET, 0) + text.count(value)
                text = text.replace(value, mask_of(ENVIRONMENT_SECRET))
        for rule in rules:
            text = masked_by(rule, text, counts)
        if text is before or text == before:
            break
        rules = rules_for(text.encode("utf-8", "surrogatepass"))
    return text


def redact_text(text: str, exact: Sequence[str] = ()) -> tuple[str, dict[str, int]]:
    """(*text* with every secret masked, {family: how many}); *exact* values are masked wherever they stand.

    >>> redact_text("user=ann password=hunter2")
    ('user=ann password=***REDACTED:named_secret***', {'named_secret': 1})
    """
    counts: dict[str, int] = {}
    return mask_text(text, rules_for(text.encode("utf-8", "surrogatepass")), exact, counts), counts


def redact_evidence(value: Any, exact: Sequence[str] = (), encoded: bytes = b"") -> tuple[Any, list[JsonObject]]:
    """(*value* with the secrets in its strings and keys masked, [{"pointer", "family", "count"}] in its order).

    Names of fields say nothing here. Whatever holds no secret is the same object as before. *encoded* is the value
    as JSON, if the caller has it. Pointers lead to the masked value: a masked key is named by its mask.
    """
    data = encoded or encode_compact(value).encode("utf-8", "surrogatepass")
    rules = rules_for(data)
    hot = [each for each in exact if encode_compact(each)[1:-1].encode("utf-8", "surrogatepass") in data]
    hits: list[JsonObject] = []
    together = "\n".join(texts_of(value)) if rules and not hot else ""
    if not hot and mask_text(together, rules, (), {}) == together:  # words alone, as in most texts about passwords
        return value, hits
    return masked_evidence(value, [], rules, hot, hits), hits


def texts_of(value: Any) -> list[str]:
    """All strings and keys in *value*, in no order."""
    texts: list[str] = []
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, dict):
            texts += item
            pending += item.values()
    return texts


def masked_evidence(value: Any, path: "list[str | int]", rules: list[RedactionRule], exact: Sequence[str], hits: list[JsonObject]) -> Any:
    """*value*, which stands at *path*, masked; each secret is noted in *hits*."""
    if isinstance(value, str):
        counts: dict[str, int] = {}
        masked = mask_text(value, rules, exact, counts)
        pointer = "".join(map(pointer_token, path)) if counts else ""
        hits += [{"pointer": pointer, "family": family, "count": count} for family, count in counts.items()]
        return masked
    if isinstance(value, list):
        items = [masked_evidence(item, [*path, index], rules, exact, hits) for index, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        members: JsonObject = {}
        for key, item in value.items():
            name = masked_key(key, path, members, rules, exact, hits)
            members[name] = masked_evidence(item, [*path, name], rules, exact, hits)
        is_same = all(new is old and members[new] is value[old] for new, old in zip(members, value, strict=True))
        return value if is_same else members
    return value


def masked_key(
    key: str, path: "list[str | int]", members: JsonObject, rules: list[RedactionRule], exact: Sequence[str], hits: list[JsonObject]
) -> str:
    """*key* masked, with its place behind it where *members* has one of that name."""
    counts: dict[str, int] = {}
    masked = mask_text(key, rules, exact, counts)
    if not counts:
        return key
    name, place = masked, len(members)
    while name in members:
        place += 1
        name = f"{masked} ({place})"
    pointer = "".join(map(pointer_token, [*path, name]))
    hits += [{"pointer": pointer, "family": family, "count": count} for family, count in counts.items()]
    return name


# --- The key layer -----------------------------------------------------------------------


def is_secret_name(name: str) -> bool:
    """True when *name*, of a field, flag, header or variable, says that its value is a secret.

    >>> [name for name in ("apiKey", "X-Auth-Token", "input_tokens", "monkey") if is_secret_name(name)]
    ['apiKey', 'X-Auth-Token']
    """
    plain = re.sub(r"[-. ]", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)).lower()
    return plain in KEY_NAMES or plain.endswith(KEY_ENDINGS)


def redact_all_layers(value: Any, exact: Sequence[str] = ()) -> Any:
    """*value* (JSON, bytes, tuples, sets) with both layers masked, as logs and headers need it; bytes become text."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return redact_text(value, exact)[0]
    if isinstance(value, Mapping):
        return {redact_text(str(key), exact)[0]: redacted_field(str(key), item, exact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all_layers(item, exact) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((redact_all_layers(item, exact) for item in value), key=str)
    return value


def redacted_field(name: str, value: Any, exact: Sequence[str]) -> Any:
    """The *value* of a field: a mask when *name* tells a secret and there is a value, whatever kind it is."""
    if value is None or not is_secret_name(name):
        return redact_all_layers(value, exact)
    return value if isinstance(value, str) and MASK.fullmatch(value) else mask_of(NAMED_SECRET)


def redact_arguments(argv: Sequence[str], exact: Sequence[str] = ()) -> list[str]:
    """The words of a command line with both layers masked: `--token X`, `--token=X`, `TOKEN=X`, `-H "X-Token: …"`, `-u name:X`.

    >>> redact_arguments(["agent", "--api-key", "abc", "-v"])
    ['agent', '--api-key', '***REDACTED:named_secret***', '-v']
    """
    shown: list[str] = []
    before = ""
    for word in argv:
        assigned = compiled(r"(?s)(-{0,2}([A-Za-z][\w.-]*)(?:=|:[ \t]?))(.+)").fullmatch(word)
        login = compiled(r"([^\s:/]+:)([^\s/]*[^\s/\d][^\s/]*)").fullmatch(word) if before in ("-u", "--user") else None
        is_value = before.startswith("-") and "=" not in before and is_secret_name(before.lstrip("-")) and not word.startswith("--")
        before = word
        if is_value:
            word = redacted_field("token", word, exact) if word else word
        elif login:
            word = login[1] + mask_of("basic_credentials")
        elif assigned and is_secret_name(assigned[2]) and "authorization" not in assigned[2].lower():
            word = assigned[1] + redacted_field("token", assigned[3], exact)
        shown.append(redact_text(word, exact)[0])
    return shown


def redact_shown(text: str) -> str:
    """*text* as it may be shown: secrets masked, and the values of secret variables of this process."""
    return redact_text(text, environment_secrets(os.environ))[0]


def environment_secrets(environ: Mapping[str, str]) -> list[str]:
    """The values of the variables of *environ* whose names tell a secret, longest first.

    Left out are values under 8 characters, plain words under 16 letters, and those that a mask holds itself.
    """
    values = {value for name, value in environ.items() if name != "PWD" and is_secret_name(name)}
    long = {value for value in values if len(value) >= (SHORTEST_PLAIN_WORD if value.isalpha() else SHORTEST_ENVIRONMENT_SECRET)}
    masks = " ".join(map(mask_of, [*(rule.family for rule in redaction_plan().rules), "environment"])) if long else ""
    return sorted((value for value in long if value not in masks), key=lambda value: (-len(value), value))

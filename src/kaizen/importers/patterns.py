"""Regular expressions of JavaScript, as Python's `re` writes them with the flag a."""

import re

from kaizen.importers.gathered import ImportDropped

JS_GROUP = re.compile(r"\(\?<([A-Za-z_$][\w$]*)>")
JS_NAMED_REFERENCE = re.compile(r"k<([A-Za-z_$][\w$]*)>")
JS_KEPT_ESCAPES = frozenset("dDwWsSbBnrtfv0123456789xu")
JS_SPACES = "\\s\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"  # what the flag a leaves out of \\s
JS_LINE_ENDS = "\\n\\r\\u2028\\u2029"


def python_pattern(pattern: str) -> str:
    """The JavaScript *pattern* (without flags) as a pattern of Python's re. Raises ImportDropped for what has no counterpart."""
    made: list[str] = []
    place, in_set, set_start = 0, False, 0
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            text, place = python_escape(pattern, place + 1, in_set)
        elif in_set:
            text = "\\" + character if character in "[&|~" else character
            if character == "]":
                in_set = False
                if place == set_start:  # [] holds nothing, [^] anything
                    made[-1] = "(?!)" if made[-1] == "[" else "(?:(?!)|[\\s\\S])"
                    text = ""
            place += 1
        elif character == "[":
            text = "[^" if pattern[place + 1 : place + 2] == "^" else "["
            place += len(text)
            in_set, set_start = True, place
        elif character == "(" and (group := JS_GROUP.match(pattern, place)):
            text, place = f"(?P<{python_name(group[1])}>", group.end()
        else:
            text, place = {"$": r"\Z", ".": f"[^{JS_LINE_ENDS}]"}.get(character, character), place + 1
        made.append(text)
    return "".join(made)


def python_name(name: str) -> str:
    """*name* of a group, when Python can have it. Raises ImportDropped."""
    if "$" in name or not name.isascii():
        raise ImportDropped(f"the pattern names a group {name!r}, which Python cannot")
    return name


def python_escape(pattern: str, place: int, in_set: bool) -> tuple[str, int]:
    """(what stands for the escape whose character is at *place*, where it ends)."""
    character = pattern[place : place + 1]
    reference = JS_NAMED_REFERENCE.match(pattern, place)
    if reference and not in_set:
        return f"(?P={python_name(reference[1])})", reference.end()
    if character in ("c", "p", "P") or character == "u" and pattern[place + 1 : place + 2] == "{":
        raise ImportDropped(f"the pattern holds \\{character}, which Python's patterns do not have")
    if character in ("s", "S") and not (in_set and character == "S"):
        return JS_SPACES if in_set else f"[{'^' if character == 'S' else ''}{JS_SPACES}]", place + 1
    if character in JS_KEPT_ESCAPES or not character.isalpha():
        return "\\" + character, place + 1
    return character, place + 1  # JavaScript takes any other letter for itself, \Z for a Z

"""Values of YAML that stand on a line or in brackets: a cursor over the lines reads them."""

import re
from typing import Any, NoReturn

from kaizen.foundation.errors import InputError
from kaizen.foundation.jsonio import SURROGATE, JsonObject, bounded_int, finite_float
from kaizen.foundation.text import quoted

YAML_DEPTH = 60  # levels; each takes a few frames of Python's stack
YAML_NODES = 1_000_000  # values that a document may unfold to
YAML_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
YAML_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " ",
    '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
YAML_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
YAML_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
YAML_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")
YAML_FLOAT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)?(?:\.[0-9]+|(?<=[0-9])\.)?(?:[eE][-+]?[0-9]+)?\Z")
YAML_UNSURE = re.compile(r"[-+]?(?:0[0-9_]+|[0-9][0-9_]*_[0-9_]*|0[xob][0-9a-fA-F_]+|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
YAML_BLANKS = re.compile(r"[ \t]*")
YAML_FLOW_TEXT = re.compile(r"(?:(?!:(?:[\s,\[\]{}]|\Z)|\s#)[^,\[\]{}])*")
YAML_NAME = re.compile(r"[&*]([^\s,\[\]{}]+)")
QUOTE_IT = "put the text in quotes"


class YamlValues:
    """A cursor (row, column) over the lines of a document, and how values without columns are read at it."""

    def __init__(self, text: str, shown: str) -> None:
        self.lines = text.replace("\r\n", "\n").split("\n")
        self.shown = shown
        self.row = self.column = self.nodes = 0
        self.parent, self.start = -1, 0  # the column of what the flow value at the cursor belongs to, the row it begins in
        self.anchors: dict[str, tuple[Any, int]] = {}
        for number, line in enumerate(self.lines):
            found = YAML_UNPRINTABLE.search(line) or SURROGATE.search(line) or ("\r" in line and re.search("\r", line))
            if found:
                self.refuse(f"holds the control character U+{ord(found.group()):04X}", "write it as an escape in double quotes", number)

    def refuse(self, message: str, hint: str = "", row: int | None = None) -> NoReturn:
        """Raises InputError about the line *row*, counted from 0, or the current one."""
        raise InputError(f"{self.shown}:{(self.row if row is None else row) + 1}: {message}", hint, "invalid_file")

    def grow(self, number: int = 1) -> None:
        """Counts *number* values. Raises InputError when there are too many."""
        self.nodes += number
        if self.nodes > YAML_NODES:
            self.refuse(f"unfolds to more than {YAML_NODES:,} values", "aliases of aliases multiply; split the file")

    def rest(self) -> str:
        """What stands at the cursor and behind it on the line."""
        return self.lines[self.row][self.column :]

    def sign(self) -> str:
        """The character at the cursor; '' at the end of the line."""
        return self.lines[self.row][self.column : self.column + 1]

    def matched(self, pattern: "re.Pattern[str]") -> "re.Match[str] | None":
        """What *pattern* finds at the cursor; the line is not copied, which would make many values on one line slow."""
        return pattern.match(self.lines[self.row], self.column)

    def alias(self) -> Any:
        """The value of the alias at the cursor."""
        name = self.matched(YAML_NAME)
        if name is None or name[1] not in self.anchors:
            self.refuse(f"{quoted(self.rest()[:40])} is no alias of an anchor above it", QUOTE_IT)
        self.column = name.end()
        value, size = self.anchors[name[1]]
        self.grow(size)
        return value

    def scalar(self, text: str, row: int) -> Any:
        """What the plain *text* says: null, true, false, a number, or itself."""
        if text in YAML_WORDS:
            return YAML_WORDS[text]
        if not (text[0] in "+-." or text[0].isdigit()):
            return text
        if YAML_UNSURE.match(text):
            self.refuse(f"readers of YAML differ about the number {quoted(text, 40)}", "put it in quotes, or write it in decimals", row)
        try:
            if YAML_INTEGER.match(text):
                return bounded_int(text)
            return finite_float(text) if YAML_FLOAT.match(text) and any(map(str.isdigit, text)) else text
        except ValueError as error:
            self.refuse(str(error) if len(text) < 4300 else "holds a number with too many digits", "write it as a text, in quotes", row)

    def skip_flow_blank(self) -> None:
        """Goes to the next character of a flow value, over blanks, comments and line ends."""
        while self.row < len(self.lines):
            line, before = self.lines[self.row], self.column
            blanks = self.matched(YAML_BLANKS)
            self.column = blanks.end() if blanks else before
            is_comment = self.sign() == "#" and (self.column == 0 or line[self.column - 1] in " \t")
            if self.sign() and not is_comment:
                if before == 0 and self.column <= self.parent:
                    self.refuse("is indented no more than the key that the brackets belong to")
                if self.column == 0 and re.match(r"(?:---|\.\.\.)(?:\s|\Z)", line):
                    self.refuse("begins another document inside a list or map")
                return
            self.row += 1
            self.column = 0
        self.refuse("a list or map in brackets does not end", "close it", self.start)

    def flow(self, depth: int) -> Any:
        """The flow value at the cursor; the cursor then stands behind it."""
        if depth > YAML_DEPTH:
            self.refuse(f"is nested more than {YAML_DEPTH} levels deep")
        sign = self.sign()
        if sign == "*":
            return self.alias()
        self.grow()
        if sign in ("[", "{"):
            return self.flow_list(depth) if sign == "[" else self.flow_map(depth)
        if sign in ('"', "'"):
            return self.quoted_text()
        row = self.row
        return self.scalar(self.flow_plain(), row)

    def flow_plain(self) -> str:
        """Plain text inside brackets, on one line."""
        found = self.matched(YAML_FLOW_TEXT)
        text = found.group().rstrip(" \t") if found else ""
        if not text or text[0] in "&!%@`|>#" or re.match(r"[?-](?:\s|\Z)", text):
            self.refuse(f"{quoted(self.rest(), 40)} is nothing that can stand in brackets", QUOTE_IT)
        self.column += len(text)
        return text

    def flow_list(self, depth: int) -> list[Any]:
        """The list in brackets at the cursor."""
        items: list[Any] = []
        row = self.row
        self.column += 1
        while True:
            self.skip_flow_blank()
            if self.sign() == "]":
                self.column += 1
                return items
            items.append(self.flow(depth + 1))
            self.skip_flow_blank()
            if self.sign() == ",":
                self.column += 1
            elif self.sign() != "]":
                self.refuse(f"{quoted(self.rest(), 40)} stands where ',' or ']' is due in the list of line {row + 1}", QUOTE_IT)

    def flow_map(self, depth: int) -> JsonObject:
        """The map in braces at the cursor."""
        found: JsonObject = {}
        row = self.row
        self.column += 1
        while True:
            self.skip_flow_blank()
            if self.sign() == "}":
                self.column += 1
                return found
            if self.sign() in "[{*":
                self.refuse("has a map, list or alias as a key", "put a text that holds {{…}} in quotes")
            key = self.quoted_text() if self.sign() in "\"'" else self.flow_plain()
            if key in found or key == "<<":
                self.refuse(f"key {quoted(key)} occurs twice or merges, in braces", "keep one of the two, or write it in block style")
            self.skip_flow_blank()
            found[key] = None
            if self.sign() == ":":
                self.column += 1
                self.skip_flow_blank()
                if self.sign() not in ",}":
                    found[key] = self.flow(depth + 1)
            self.skip_flow_blank()
            if self.sign() == ",":
                self.column += 1
            elif self.sign() != "}":
                self.refuse(f"{quoted(self.rest(), 40)} stands where ',' or '}}' is due in the map of line {row + 1}", QUOTE_IT)

    def quoted_text(self) -> str:
        """The text in quotes at the cursor; line ends in it are folded."""
        quote, row = self.sign(), self.row
        self.column += 1
        pattern = re.compile(r'((?:[^"\\]|\\.)*)(\\\Z|"?)' if quote == '"' else r"((?:[^']|'')*)('?)")
        parts: list[str] = []
        blanks, is_joined = 0, True
        while self.row < len(self.lines):
            found = self.matched(pattern)
            assert found is not None  # both parts may be empty
            is_last = found[2] == quote
            raw = found[1] if not parts and not blanks else found[1].lstrip(" \t")
            if not is_last and found[2] == "":
                raw = re.sub(r"(?<!\\)[ \t]+\Z", "", raw)
            if raw or is_last or found[2]:
                if not is_joined:
                    parts.append("\n" * blanks or " ")
                parts.append(raw.replace("''", "'") if quote == "'" else self.unescaped(raw))
                blanks, is_joined = 0, found[2] == "\\"
            elif parts or row != self.row:
                blanks += 1
            else:
                parts.append("")
                is_joined = False
            self.column = found.end()
            if is_last:
                return "".join(parts)
            self.row += 1
            self.column = 0
            line = self.lines[self.row] if self.row < len(self.lines) else ""
            if line.strip() and len(line) - len(line.lstrip(" ")) <= self.parent:
                self.refuse("is indented no more than the key that the text in quotes belongs to")
        self.refuse("a quote does not end", f"close the {quote} that stands here", row)

    def unescaped(self, text: str) -> str:
        """*text* out of double quotes with its escapes read."""

        def character(match: "re.Match[str]") -> str:
            name = match[1][0]
            if name in YAML_ESCAPES:
                return YAML_ESCAPES[name]
            digits = match[1][1:]
            if len(digits) != YAML_HEX_ESCAPES.get(name) or int(digits, 16) > 0x10FFFF:
                self.refuse(f"escape {quoted(match[0], 20)} is unknown", "write \\\\ for a backslash")
            return chr(int(digits, 16))

        if "\\" not in text:
            return text
        made = re.sub(r"\\(x[0-9a-fA-F]{0,2}|u[0-9a-fA-F]{0,4}|U[0-9a-fA-F]{0,8}|.)", character, text)
        made = re.sub("[\ud800-\udbff][\udc00-\udfff]", lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), made)
        if SURROGATE.search(made):
            self.refuse("holds half of a surrogate pair", "write the whole character")
        return made

"""The part of YAML 1.2 that configurations use; nothing in it names or makes an object.

Read: block maps and lists, flow maps and lists over one or several lines, plain and quoted text
over several lines, block scalars (| and > with their signs), comments, anchors, aliases and
merge keys, one '---' at the head. An alias is the same value again, not a copy, and what all
of them together would unfold to is bounded.

Refused with its line: tags, complex keys, several documents, tabs that indent, a key twice, a
number that readers of YAML take for different ones (012, 1_000, .nan), and whatever else
is not in the list above.
"""

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
YAML_HEADER = re.compile(r"[|>](?:([+-])([1-9])?|([1-9])([+-])?)?[ \t]*(?:[ \t]#.*)?\Z")
YAML_NAME = re.compile(r"[&*]([^\s,\[\]{}]+)")
QUOTE_IT = "put the text in quotes"


def read_yaml(text: str, shown: str) -> Any:
    """The value of the YAML document *text*, null for an empty one. Raises InputError that begins with *shown* and the line."""
    return YamlReader(text, shown).document()


class YamlReader:
    """A cursor (row, column) over the lines of a document."""

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

    # --- Lines ---------------------------------------------------------------------------

    def document(self) -> Any:
        """The one value of the document."""
        self.skip_blank(is_head=True)
        if self.row < len(self.lines) and re.match(r"---(?:\s+#.*)?\s*\Z", self.lines[self.row]):
            self.row += 1
        value = self.block(-1, 0)
        self.skip_blank()
        if self.row < len(self.lines) and self.lines[self.row].rstrip() == "...":
            self.row += 1
            self.skip_blank()
        if self.row < len(self.lines):
            self.refuse("stands behind the document, or is indented unlike what it belongs to")
        return value

    def skip_blank(self, is_head: bool = False) -> None:
        """Goes to the next line that says something; '---' may stand there when nothing was said before (*is_head*)."""
        while self.row < len(self.lines):
            line = self.lines[self.row].lstrip(" ")
            if line.startswith("\t") and line.strip():
                self.refuse("is indented with a tab", "indent with blanks")
            if line.strip() and line[0] != "#":
                if not is_head and re.match(r"%|---(?:\s|\Z)", self.lines[self.row]):
                    self.refuse("begins another document or is a directive", "keep one document in a file")
                self.column = len(self.lines[self.row]) - len(line)
                return
            self.row += 1

    def indent(self) -> int:
        """Columns before the next line that says something; -1 at the end."""
        self.skip_blank()
        if self.row >= len(self.lines) or self.lines[self.row].rstrip() == "...":
            return -1
        return self.column

    def rest(self) -> str:
        """What stands at the cursor and behind it on the line."""
        return self.lines[self.row][self.column :]

    def end_line(self) -> None:
        """Goes to the next line; refuses anything but a comment on this one."""
        rest = self.rest()
        if rest.strip() and not re.match(r"\s+#", rest) and not (rest[0] == "#" and self.column == 0):
            self.refuse(f"{quoted(rest.strip(), 40)} stands behind a value that has ended", QUOTE_IT)
        self.row += 1

    # --- Block style ---------------------------------------------------------------------

    def block(self, parent: int, depth: int, is_value: bool = False) -> Any:
        """The value that begins on the next line that says something, indented more than *parent*; null when there is none.

        A list that is the value of a key (*is_value*) may stand in the column of the key.
        """
        column = self.indent()
        if column <= parent and not (is_value and column == parent and column >= 0 and self.is_item()):
            self.grow()
            return None
        if depth > YAML_DEPTH:
            self.refuse(f"is nested more than {YAML_DEPTH} levels deep")
        if self.is_item():
            return self.block_list(column, depth)
        if self.key_end() is not None:
            return self.block_map(column, depth)
        return self.value(parent, depth)

    def is_item(self) -> bool:
        """True when a list item begins at the cursor."""
        return re.match(r"-(?:\s|\Z)", self.rest()) is not None

    def key_end(self) -> int | None:
        """The column behind the colon of the key at the cursor; None when no key stands there."""
        rest = self.rest()
        if rest[:1] in ('"', "'"):
            found = re.match(r'"(?:[^"\\]|\\.)*"\s*:(?=\s|\Z)' if rest[0] == '"' else r"'(?:[^']|'')*'\s*:(?=\s|\Z)", rest)
            return self.column + found.end() if found else None
        if re.match(r"\?(?:\s|\Z)", rest):
            self.refuse("is a complex key", "write 'key: value'")
        if rest[:1] in ("[", "{", "|", ">", "#") or (found := re.search(r":(?=\s|\Z)|\s#", rest)) is None or found.group() != ":":
            return None
        return self.column + found.end()

    def block_list(self, column: int, depth: int) -> list[Any]:
        """The list whose dashes stand in *column*."""
        items = []
        while self.indent() == column and self.is_item():
            # The dash becomes a blank: what follows is then a block of its own in its column.
            self.lines[self.row] = self.lines[self.row][:column] + " " + self.lines[self.row][column + 1 :]
            items.append(self.item(column, depth))
        if self.indent() > column:
            self.refuse("is indented unlike the list that it follows")
        self.grow()
        return items

    def item(self, column: int, depth: int) -> Any:
        """The value behind a dash that stood in *column*, on its line or below."""
        row = self.row
        rest = self.lines[row][column + 1 :].lstrip(" \t")
        if not rest or rest.startswith("#"):
            self.row += 1
            return self.block(column, depth + 1)
        if "\t" in self.lines[row][column : len(self.lines[row]) - len(rest)]:
            self.refuse("has a tab behind the dash", "put a blank there")
        self.column = len(self.lines[row]) - len(rest)
        if rest[0] in "&*!" and self.key_end() is None or rest[0] in "|>":
            return self.value(column, depth + 1)
        return self.block(column, depth + 1)

    def block_map(self, column: int, depth: int) -> JsonObject:
        """The map whose keys stand in *column*."""
        found: JsonObject = {}
        merged: list[Any] = []
        while self.indent() == column:
            end = self.key_end()
            if end is None or self.is_item():
                self.refuse("is neither 'key: value' nor in the column of what it belongs to", QUOTE_IT)
            row, key = self.row, self.key(self.lines[self.row][column : end - 1].rstrip())
            self.column = end
            value = self.value(column, depth + 1, True)
            if key == "<<":
                merged += value if isinstance(value, list) else [value]
                if not all(isinstance(one, dict) for one in merged):
                    self.refuse("'<<' merges something that is no map", row=row)
            elif key in found:
                self.refuse(f"key {quoted(key)} occurs twice", "keep one of the two", row)
            else:
                found[key] = value
        if self.indent() > column:
            self.refuse("is indented unlike what it belongs to")
        return self.with_merged(found, merged)

    def with_merged(self, found: JsonObject, merged: list[JsonObject]) -> JsonObject:
        """*found* with the keys of *merged* that it lacks, the earlier map first."""
        for one in merged:
            for key, value in one.items():
                found.setdefault(key, value)
        self.grow()
        return found

    def key(self, text: str) -> str:
        """The key that *text* writes."""
        if text[:1] in ('"', "'"):
            row, column = self.row, self.column
            key = str(self.quoted_text())
            self.row, self.column = row, column
            return key
        if text[:1] in ("", "&", "*", "!", "%", "@", "`", ","):
            self.refuse(f"key {quoted(text, 40)} begins with a sign that YAML gives another meaning", QUOTE_IT)
        return text

    def value(self, parent: int, depth: int, is_value: bool = False) -> Any:
        """The value at the cursor, on this line or below, of what stands in column *parent*."""
        self.column += len(self.rest()) - len(self.rest().lstrip(" \t"))
        rest = self.rest()
        if not rest or (rest[0] == "#" and self.lines[self.row][self.column - 1 : self.column] in (" ", "\t")):
            self.row += 1
            return self.block(parent, depth, is_value)
        sign = rest[0]
        if sign == "&":
            return self.anchored(parent, depth, is_value)
        if sign in "|>" and parent >= 0:
            self.grow()
            return self.block_text(parent)
        if sign in "*[{\"'":
            self.parent, self.start = parent, self.row
            value = self.flow(depth)
            self.end_line()
            return value
        if parent < 0:
            self.refuse("is neither 'key: value' nor a list item", QUOTE_IT)
        return self.plain_block(parent)

    def anchored(self, parent: int, depth: int, is_value: bool) -> Any:
        """The value behind an anchor, which is kept under its name."""
        name = YAML_NAME.match(self.rest())
        if name is None:
            self.refuse("has an anchor without a name")
        self.column += name.end()
        if re.match(r"\s*[&*]", self.rest()):
            self.refuse("gives an alias or an anchor an anchor")
        before = self.nodes
        value = self.value(parent, depth, is_value)
        self.anchors[name[1]] = (value, self.nodes - before)
        return value

    def alias(self) -> Any:
        """The value of the alias at the cursor."""
        name = YAML_NAME.match(self.rest())
        if name is None or name[1] not in self.anchors:
            self.refuse(f"{quoted(self.rest()[:40])} is no alias of an anchor above it", QUOTE_IT)
        self.column += name.end()
        value, size = self.anchors[name[1]]
        self.grow(size)
        return value

    def plain_block(self, parent: int) -> Any:
        """Plain text at the cursor, which goes on in lines that are indented more than *parent*."""
        row, parts, blanks = self.row, [self.plain_part(self.rest())], 0
        is_open = not re.search(r"\s#", self.rest())
        self.row += 1
        while is_open and self.row < len(self.lines):
            line = self.lines[self.row].strip(" \t")
            indent = len(self.lines[self.row]) - len(self.lines[self.row].lstrip(" "))
            if line and (indent <= parent or line[0] == "#"):
                break
            if line:
                self.column = indent
                parts.append("\n" * blanks or " ")
                parts.append(self.plain_part(line))
                is_open, blanks = not re.search(r"\s#", line), 0
            else:
                blanks += 1
            self.row += 1
        self.grow()
        return self.scalar(parts[0], row) if len(parts) == 1 else "".join(parts)

    def plain_part(self, text: str) -> str:
        """*text* without a comment, when all of it is plain."""
        text = re.split(r"\s#", text, maxsplit=1)[0].strip(" \t")
        if re.match(r"[!%@`,\]}]|[?:-](?:\s|\Z)", text):
            self.refuse(f"{quoted(text, 40)} begins with a sign that YAML gives another meaning", QUOTE_IT)
        if re.search(r":(?:\s|\Z)", text):
            self.refuse(f"{quoted(text, 40)} has a colon and a blank in a value", QUOTE_IT)
        return text

    def block_text(self, parent: int) -> str:
        """The text of the block scalar whose | or > stands at the cursor."""
        header = YAML_HEADER.match(self.rest())
        if header is None:
            self.refuse(f"{quoted(self.rest(), 40)} is no head of a block of text", QUOTE_IT)
        is_folded, chomp, wanted = self.rest()[0] == ">", header[1] or header[4] or "", header[2] or header[3]
        self.row += 1
        indent = parent + int(wanted) if wanted else 0
        lines: list[str] = []
        while self.row < len(self.lines):
            line = self.lines[self.row]
            blanks = len(line) - len(line.lstrip(" "))
            is_blank = blanks == len(line)
            if not indent and not is_blank:
                if blanks <= parent:
                    break
                indent = blanks
            if not is_blank and blanks < indent:
                break
            lines.append(line[indent:] if indent else "")
            self.row += 1
        kept = len(lines)
        while kept and not lines[kept - 1]:
            kept -= 1
        body, tail = lines[:kept], len(lines) - kept - (self.row == len(self.lines))
        text = folded_lines(body) if is_folded else "\n".join(body)
        return text + ("" if chomp == "-" else "\n" * (bool(body) + max(tail, 0)) if chomp == "+" else "\n" * bool(body))

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

    # --- Flow style ----------------------------------------------------------------------

    def skip_flow_blank(self) -> None:
        """Goes to the next character of a flow value, over blanks, comments and line ends."""
        while self.row < len(self.lines):
            rest = self.rest()
            bare = rest.lstrip(" \t")
            self.column += len(rest) - len(bare)
            is_comment = bare.startswith("#") and (self.column == 0 or self.lines[self.row][self.column - 1] in " \t")
            if bare and not is_comment:
                if self.column <= self.parent and self.column == len(self.lines[self.row]) - len(bare):
                    self.refuse("is indented no more than the key that the brackets belong to")
                if self.column == 0 and re.match(r"(?:---|\.\.\.)(?:\s|\Z)", bare):
                    self.refuse("begins another document inside a list or map")
                return
            self.row += 1
            self.column = 0
        self.refuse("a list or map in brackets does not end", "close it", self.start)

    def flow(self, depth: int) -> Any:
        """The flow value at the cursor; the cursor then stands behind it."""
        if depth > YAML_DEPTH:
            self.refuse(f"is nested more than {YAML_DEPTH} levels deep")
        sign = self.rest()[:1]
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
        found = re.match(r"(?:(?!:(?:[\s,\[\]{}]|\Z)|\s#)[^,\[\]{}])*", self.rest())
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
            if self.rest()[0] == "]":
                self.column += 1
                return items
            items.append(self.flow(depth + 1))
            self.skip_flow_blank()
            if self.rest()[0] == ",":
                self.column += 1
            elif self.rest()[0] != "]":
                self.refuse(f"{quoted(self.rest(), 40)} stands where ',' or ']' is due in the list of line {row + 1}", QUOTE_IT)

    def flow_map(self, depth: int) -> JsonObject:
        """The map in braces at the cursor."""
        found: JsonObject = {}
        row = self.row
        self.column += 1
        while True:
            self.skip_flow_blank()
            if self.rest()[0] == "}":
                self.column += 1
                return found
            if self.rest()[0] in "[{*":
                self.refuse("has a map, list or alias as a key", "put a text that holds {{…}} in quotes")
            key = self.quoted_text() if self.rest()[0] in "\"'" else self.flow_plain()
            if key in found or key == "<<":
                self.refuse(f"key {quoted(key)} occurs twice or merges, in braces", "keep one of the two, or write it in block style")
            self.skip_flow_blank()
            found[key] = None
            if self.rest()[0] == ":":
                self.column += 1
                self.skip_flow_blank()
                if self.rest()[0] not in ",}":
                    found[key] = self.flow(depth + 1)
            self.skip_flow_blank()
            if self.rest()[0] == ",":
                self.column += 1
            elif self.rest()[0] != "}":
                self.refuse(f"{quoted(self.rest(), 40)} stands where ',' or '}}' is due in the map of line {row + 1}", QUOTE_IT)

    def quoted_text(self) -> str:
        """The text in quotes at the cursor; line ends in it are folded."""
        quote, row = self.rest()[0], self.row
        self.column += 1
        pattern = re.compile(r'((?:[^"\\]|\\.)*)(\\\Z|"?)' if quote == '"' else r"((?:[^']|'')*)('?)")
        parts: list[str] = []
        blanks, is_joined = 0, True
        while self.row < len(self.lines):
            found = pattern.match(self.rest())
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
            self.column += found.end()
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


def folded_lines(lines: list[str]) -> str:
    """The text of a '>' block: a line end between two lines that are not indented further is a blank, a blank line a line end."""
    text, blanks, was_further = "", 0, False
    parts: list[str] = []
    for line in lines:
        if not line:
            blanks += 1
            continue
        is_further = line[0] in " \t"
        if parts or blanks:
            is_kept = is_further or was_further or not parts
            parts.append("\n" * (blanks + (is_kept and bool(parts))) if blanks or is_kept else " ")
        parts.append(line)
        blanks, was_further = 0, is_further
    return text + "".join(parts)

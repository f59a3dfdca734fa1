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
from typing import Any

from kaizen.foundation.jsonio import JsonObject
from kaizen.foundation.text import quoted
from kaizen.importers.yaml_values import QUOTE_IT, YAML_DEPTH, YAML_NAME, YamlValues

YAML_HEADER = re.compile(r"[|>](?:([+-])([1-9])?|([1-9])([+-])?)?[ \t]*(?:[ \t]#.*)?\Z")


def read_yaml(text: str, shown: str) -> Any:
    """The value of the YAML document *text*, null for an empty one. Raises InputError that begins with *shown* and the line."""
    return YamlReader(text, shown).document()


class YamlReader(YamlValues):
    """Reads maps, lists and texts that columns hold together."""

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

    def end_line(self) -> None:
        """Goes to the next line; refuses anything but a comment on this one."""
        rest = self.rest()
        if rest.strip() and not re.match(r"\s+#", rest) and not (rest[0] == "#" and self.column == 0):
            self.refuse(f"{quoted(rest.strip(), 40)} stands behind a value that has ended", QUOTE_IT)
        self.row += 1

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
        name = self.matched(YAML_NAME)
        if name is None:
            self.refuse("has an anchor without a name")
        self.column = name.end()
        if re.match(r"\s*[&*]", self.rest()):
            self.refuse("gives an alias or an anchor an anchor")
        before = self.nodes
        value = self.value(parent, depth, is_value)
        self.anchors[name[1]] = (value, self.nodes - before)
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
        is_folded, chomp, wanted = self.sign() == ">", header[1] or header[4] or "", header[2] or header[3]
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

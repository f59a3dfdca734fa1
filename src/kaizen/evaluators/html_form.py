"""Whether a text is well-formed HTML: complete tags, in order, each closed that has to be.

Stricter than browsers, which repair everything, and smaller than the standard's list of parse
errors: attributes and nesting are not judged by element. Source: WHATWG HTML, Living Standard,
sections 13.1.2 (elements, optional tags) and 13.2.5 (tokenization). It reads the text once; the
standard library's parser takes quadratic time on hostile texts, and reads them anew in each release.
"""

import re
from typing import NamedTuple

HTML_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
HTML_RAW = frozenset("script style textarea title iframe noembed noframes xmp".split())
HTML_END_OPTIONAL = frozenset(
    "html head body li dt dd p rt rp optgroup option colgroup caption thead tbody tfoot tr td th".split()
)  # fmt: skip
HTML_FOREIGN = frozenset(["svg", "math"])
HTML_START = r"<([A-Za-z][^\s/>]*)"
HTML_ATTRIBUTE = r"""\s+([^\s"'<>/=]+)(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?"""
HTML_START_ENDS = r"\s*(/?)>"
HTML_END = r"</([A-Za-z][^\s/>]*)\s*>"
HTML_DOCTYPE = r"(?i:<!doctype\s[^>]*>)"


class FormFlaw(Exception):
    """What keeps a text from being in a form, and the character where it stands."""

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


class OpenElement(NamedTuple):
    """An element whose end has not been read yet."""

    name: str
    place: int


def check_html(text: str) -> int:
    """How many elements *text* holds. Raises FormFlaw for the first that is not well-formed, or when there is none."""
    stack: list[OpenElement] = []
    elements = foreign = 0
    place = text.find("<")
    while place >= 0:
        following = text[place + 1 : place + 2]
        if following == "!":
            place = end_of_declaration(text, place, foreign > 0)
        elif following == "/":
            place, name = end_of_end_tag(text, place, stack)
            foreign -= name in HTML_FOREIGN
        elif following.isascii() and following.isalpha():
            elements += 1
            start = place
            place, name, closes = end_of_start_tag(text, place)
            if closes and not foreign and name not in HTML_VOID and name not in HTML_FOREIGN:
                raise FormFlaw(f"<{name[:40]}/> closes itself, which only elements without content can", start)
            if not closes and (foreign or name not in HTML_VOID):
                stack.append(OpenElement(name, start))
                foreign += name in HTML_FOREIGN
                if name in HTML_RAW and not foreign:
                    place = end_of_raw_text(text, place, stack[-1])
        else:
            place += 1
        place = text.find("<", place)
    left = next((each for each in stack if each.name not in HTML_END_OPTIONAL), None)
    if left is not None:
        raise FormFlaw(f"<{left.name[:40]}> is never closed", left.place)
    if not elements:
        raise FormFlaw("there is no element in it", 0)
    return elements


def end_of_declaration(text: str, place: int, is_foreign: bool) -> int:
    """Where the comment, doctype or (inside svg and math) CDATA section ends that begins at *place*."""
    if text.startswith("<!--", place):
        end = text.find("-->", place + 4)
        if end < 0:
            raise FormFlaw("a comment is never closed", place)
        return end + 3
    if is_foreign and text.startswith("<![CDATA[", place):
        end = text.find("]]>", place)
        if end < 0:
            raise FormFlaw("a CDATA section is never closed", place)
        return end + 3
    match = re.compile(HTML_DOCTYPE).match(text, place)
    if match is None:
        raise FormFlaw("'<!' begins neither a comment nor a doctype", place)
    return match.end()


def end_of_start_tag(text: str, place: int) -> tuple[int, str, bool]:
    """(where the start tag ends, its name in small letters, whether it closes itself)."""
    match = re.compile(HTML_START).match(text, place)
    name = match[1].lower() if match else ""
    end = match.end() if match else place
    seen: set[str] = set()
    attribute, ends = re.compile(HTML_ATTRIBUTE), re.compile(HTML_START_ENDS)
    while True:
        closing = ends.match(text, end)
        if closing:
            return closing.end(), name, closing[1] == "/"
        match = attribute.match(text, end)
        if match is None:
            raise FormFlaw(f"the tag <{name[:40]} is not complete", place)
        if match[1].lower() in seen:
            raise FormFlaw(f"<{name[:40]}> has the attribute {match[1][:40]} twice", match.start(1))
        seen.add(match[1].lower())
        end = match.end()


def end_of_end_tag(text: str, place: int, stack: list[OpenElement]) -> tuple[int, str]:
    """(where the end tag ends, its name in small letters); what it closes leaves *stack*."""
    match = re.compile(HTML_END).match(text, place)
    if match is None:
        raise FormFlaw("an end tag is not complete", place)
    name = match[1].lower()
    while stack and stack[-1].name != name and stack[-1].name in HTML_END_OPTIONAL:
        stack.pop()
    if not stack:
        raise FormFlaw(f"</{name[:40]}> closes nothing that is open", place)
    if stack[-1].name != name:
        raise FormFlaw(f"</{name[:40]}> comes while <{stack[-1].name[:40]}> is open", place)
    stack.pop()
    return match.end(), name


def end_of_raw_text(text: str, place: int, element: OpenElement) -> int:
    """Where the end tag of an element begins in which no tags are read, such as script."""
    match = re.compile(rf"</{element.name}(?=[\s/>])", re.IGNORECASE).search(text, place)
    if match is None:
        raise FormFlaw(f"<{element.name}> is never closed", element.place)
    return match.start()

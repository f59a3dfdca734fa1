"""The frame all pages share: one look, a strict content policy, and text that stays data.

A page is one file that opens from disk and asks nothing of anybody. Its policy allows the
inline style and script by their SHA-256 and nothing else, so markup that slipped through
an escape could still run nothing. Colours follow the system or the switch in the corner,
which is plain CSS and needs no storage.
"""

import hashlib
import re
from typing import Any

from kaizen.embed import asset_text
from kaizen.foundation.jsonio import encode_compact
from kaizen.foundation.text import visible

PAGE_HTML = asset_text("page.html")
PAGE_CSS = asset_text("page.css")
PAGE_JS = asset_text("page.js")

PLACEHOLDER = re.compile(r"\$([a-z_]+)\b")
# < and > end a script or a comment, & begins a character reference, U+2028 and U+2029 end a line of old JavaScript.
SCRIPT_ESCAPES = [(character, f"\\u{ord(character):04x}") for character in "<>&\u2028\u2029"]
HTML_ESCAPES = {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;", ord("'"): "&#39;"}


def html_text(text: str) -> str:
    """*text* for an HTML element or attribute: escaped, on one line, hidden characters made visible, nothing cut."""
    return visible(text, None).translate(HTML_ESCAPES)


def text_to_script_json(value: Any) -> str:
    """*value* as JSON that may stand in a script element of type application/json; it holds no <, > or &."""
    text = encode_compact(value)
    for character, escape in SCRIPT_ESCAPES:  # ten times faster than str.translate where there are few
        text = text.replace(character, escape)
    return text


def script_data(identity: str, value: Any) -> str:
    """The inert script element `#identity` with *value* as JSON, on a line of its own."""
    return f'<script type="application/json" id="{html_text(identity)}">{text_to_script_json(value)}</script>\n'


def content_hash(text: str) -> str:
    """The source expression of a content policy that allows exactly the inline block *text*."""
    import base64

    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def fill_template(template: str, values: dict[str, str]) -> str:
    """*template* with each $name replaced by the markup in *values*; what is put in is not looked at again.

    Raises KeyError for a name without a value.
    """
    return PLACEHOLDER.sub(lambda match: values[match.group(1)], template)


def page_frame(title: str, kind: str, css: str, js: str) -> tuple[str, str, str]:
    """The markup before the content, between content and further data, and after both.

    *title* is for the tab, *kind* stands beside the brand; *css* and *js* follow the shared ones in one style
    and one script block. The script stands between, so that it runs while large data still arrives.
    """
    style, script = PAGE_CSS + css, PAGE_JS + js
    policy = f"default-src 'none'; style-src {content_hash(style)}; script-src {content_hash(script)}; base-uri 'none'; form-action 'none'"
    values = {"policy": policy, "title": html_text(title), "kind": html_text(kind), "css": style, "js": script}
    before, rest = PAGE_HTML.split("$content")
    between, after = rest.split("$data")
    return fill_template(before, values), fill_template(between, values), fill_template(after, values)

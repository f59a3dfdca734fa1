r"""What secrets look like in a text: shapes of issued keys, and names that tell a secret.

Each rule is a literal, then at most one greedy class; the rest is decided in a function
that says where the secret stands. What was looked at is not looked at again, so time grows
with the length of the text and no faster. Lengths are those of the issuers' keys or a
little less. `redact.py` masks what the rules find.

Not found: a private key logged one line a record, a secret split over two fields, a format
nobody here knows that has no name in front, a name and its value coloured apart.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

# family, words one of which it begins with (`=`: its first characters, inside a run of 20 letters, digits, - _ .), shape,
# what the match must hold. A shape stands where no letter, digit or _ is before it; a group in it is the secret.
TOKEN_SHAPES = r"""
aws_key           =AKIA,=ASIA,=ABIA,=ACCA,=A3T  A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])
aws_bedrock_key   =ABSK                      ABSK[A-Za-z0-9]{16}[A-Za-z0-9+/=]{4,}
aws_bedrock_key   bedrock                    bedrock-api-key-[A-Za-z0-9+/=_-]{16,}
github_token      ghp,gho,ghu,ghs,ghr        gh[pousr]_[A-Za-z0-9._-]{36,}
github_token      github                     github_pat_[A-Za-z0-9_]{22,}
jwt               =eyJ                       eyJ[A-Za-z0-9_-]{8}[A-Za-z0-9._-]{9,}  \.[A-Za-z0-9_-]
jwt               =ZXlK                      ZXlK[A-Za-z0-9_-]{40,}
langfuse_key      sk                         sk-lf-[A-Za-z0-9_-]{8,}
api_key           sk                         sk-[A-Za-z0-9_-]{20,}  [0-9]
stripe_key        sk,rk                      [sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}
slack_token       xoxa,xoxb,xoxc,xoxd,xoxe,xoxo,xoxp,xoxr,xoxs  xox[abcdeoprs]-[A-Za-z0-9-]{8,}
slack_token       xapp                       xapp-[0-9]-[A-Za-z0-9-]{10,}
slack_webhook     hooks                      hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,})
google_key        =AIza                      AIza[A-Za-z0-9_-]{35,}
google_token      ya29                       ya29\.[A-Za-z0-9._-]{20,}
google_secret     gocspx                     GOCSPX-[A-Za-z0-9_-]{20,}
gitlab_token      glpat,glptt,gldt,glrt,glcbt,glsoat,glagent  gl(?:pat|ptt|dt|rt|cbt|soat|agent)-[A-Za-z0-9._-]{20,}
gitlab_token      gloas,glft,glimt,glffct    gl(?:oas|ft|imt|ffct)-[A-Za-z0-9._-]{20,}
npm_token         npm                        npm_[A-Za-z0-9]{36,}
pypi_token        pypi                       pypi-AgE[A-Za-z0-9_-]{16,}
rubygems_token    rubygems                   rubygems_[0-9a-f]{48}
huggingface_token hf                         hf_[A-Za-z0-9]{30,}
sendgrid_key      sg                         SG\.[A-Za-z0-9=._-]{60,}
linear_key        lin                        lin_(?:api|oauth)_[A-Za-z0-9]{32,}
langsmith_key     lsv2                       lsv2_(?:pt|sk)_[A-Za-z0-9_]{20,}
groq_key          gsk                        gsk_[A-Za-z0-9]{40,}
xai_key           xai                        xai-[A-Za-z0-9]{40,}
perplexity_key    pplx                       pplx-[A-Za-z0-9]{40,}
notion_token      ntn                        ntn_[A-Za-z0-9]{40,}
replicate_token   r8                         r8_[A-Za-z0-9]{37,}
databricks_token  =dapi                      dapi[0-9a-f]{32}(?![A-Za-z0-9])
digitalocean_token  dop,doo,dor              do[opr]_v1_[0-9a-f]{64}
shopify_token     shpat,shpca,shppa,shpss    shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}
vault_token       hvs,hvb                    hv[sb]\.[A-Za-z0-9_-]{24,}
grafana_token     glsa,glc                   gl(?:sa|c)_[A-Za-z0-9+/=_]{32,}
sentry_token      sntrys,sntryu              sntry[su]_[A-Za-z0-9+/=_]{40,}
doppler_token     dp                         dp\.pt\.[A-Za-z0-9]{40,}
pulumi_token      pul                        pul-[0-9a-f]{40}
postman_key       pmak                       PMAK-[0-9a-f]{24}-[0-9a-f]{34}
tailscale_key     tskey                      tskey-[a-z]{1,12}-[A-Za-z0-9-]{20,}
age_key           age                        AGE-SECRET-KEY-1[A-Z0-9]{58}
"""

NAMED_SECRET = "named_secret"
# Names that tell a secret, alone or behind `x_`, `x-`, `x.`, or behind one of the first words of camelCase; `key` behind its owner only.
TEXT_NAMES = "token secret password passwd pwd passphrase credential credentials".split()
KEY_OWNERS = "api access secret private account sharedaccess encryption signing master".split()
FIRST_WORDS = (
    "access account admin api app auth aws azure bearer bot client csrf database db deploy device github gitlab google id jwt login master "
    "new oauth old openai personalaccess private refresh root service session slack smtp ssh sso user webhook x xsrf"
).split()
# Values that are no secrets whatever stands before them: constants, types, and the words with which a sentence goes on.
NO_SECRETS = frozenset(
    "null none nil undefined true false yes no n/a unknown empty missing invalid expired required optional str string text bytes int "
    "integer bool boolean any object a an the is are was were has have had of for to from in on at by with and or not must should will can "
    "may please your our my his her their this that it its you we they i if when where which who what".split()
)
CODE = r"[A-Za-z_][\w.]*[(\[]"  # a call, or what stands in a list
# What stands for a value that is somewhere else.
SECRET_PLACEHOLDER = (
    r"(?:self|cls|this|os|process|env|args|config|settings|request|secrets|var|local|data|module)\.[\w.]+|"
    r"\$[A-Z][A-Z0-9_]*|\$?\{+[\w .:-]*\}+|%[A-Z][A-Z0-9_]*%|%\(\w+\)s|<[\w .-]+>"
)
SCHEMES = r"(bearer|basic|token|digest|negotiate|ntlm|api-?key|hawk|oauth|dpop|signature|hmac[\w-]*|aws4[\w-]*)(?:[ \t]+|$)"  # of HTTP

QUOTE = r"\\{0,3}[\"'`]"
# What a value without quotes is made of: to the next blank or bracket, or to the end of the line. An escaped line end or quote ends both.
WORD_RUN = r"[^\s\"'`,;&()\[\]{}<>\\]*(?:\\(?![nrt\"'`\\])[^\s\"'`,;&()\[\]{}<>\\]*)*"
LINE_RUN = r"[^\r\n\"'`\\]*(?:\\(?![nr\"'`\\])[^\r\n\"'`\\]*)*"
# What may stand before a word: nothing that belongs to it, an escape as two characters, a colour.
BOUNDARY = r"(?:\\[nrtbf]|\[[0-9;]{0,8}m|^|[^a-z0-9\\]|\\)"
LOOK_BACK = 24  # characters, more than what is looked for before a name

SecretFinder = Callable[["re.Match[str]", str], tuple[int, int]]


class RedactionRule(NamedTuple):
    """How the secrets of one family are found.

    A text that holds one holds one of `words` in lower case, one of `starts` in a long run, or an @ when there are neither.
    `find` says from where to where in the text the secret stands that a match of `pattern` belongs to; two equal places
    when there is none, and the search goes on there.
    """

    family: str
    words: tuple[str, ...]
    starts: tuple[str, ...]
    pattern: str
    find: SecretFinder
    is_caseless: bool = False  # the pattern is in lower case and is shown the text so


def redaction_rules() -> tuple[RedactionRule, ...]:
    """The rules in the order in which they are tried: what encloses others first, what goes by a name last."""
    assigned = rf"(?:{QUOTE})?(?:\*\*)?[ \t]{{0,8}}[:=]{{1,3}}>?[ \t]{{0,8}}(?:\*\*(?!\*)[ \t]{{0,8}})?"
    keys = ["key", *(owner + "key" for owner in KEY_OWNERS)]
    names = {name: [name, *(first + name for first in FIRST_WORDS)] for name in TEXT_NAMES}
    user_info, encoded = r"([^\s\"'`/?#<>{}\\]{1,4096})", r"((?:[^%\s\"'&<>]|%(?!2[fF]|3[fF]|2[023])){1,4096})"
    plain: list[tuple[str, list[str], str, SecretFinder]] = [
        ("private_key", ["private"], r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY[A-Z0-9 ]{0,20})-----", find_private_key),
        ("url_credentials", [], r":\\{0,3}/\\{0,3}/" + user_info, find_user_info),
        ("url_credentials", ["3a"], r"%3[aA]%2[fF]%2[fF]" + encoded, find_encoded_user_info),
    ]
    caseless: list[tuple[str, list[str], str, SecretFinder]] = [
        ("authorization", ["authorization", "proxyauthorization"], rf"authorization(?:{QUOTE})?[ \t]{{0,8}}[:=][> \t]{{0,8}}", find_header),
        ("bearer_token", ["bearer"], r"bearer[ \t]{1,8}([a-z0-9._~+/=-]{8,})", find_bearer),
        ("basic_credentials", ["basic"], r"basic[ \t]{1,8}([a-z0-9+/_-]{4,}={0,2})", find_basic),
        ("cookie", ["cookie", "setcookie"], rf"cookie(?:{QUOTE})?[ \t]{{0,8}}:[ \t]{{0,8}}", find_cookie),
    ]
    named: list[tuple[str, list[str], str, SecretFinder]] = [
        *((NAMED_SECRET, words, name + assigned, find_named) for name, words in names.items()),
        (NAMED_SECRET, keys, "key" + assigned, find_named),
        (NAMED_SECRET, [*keys, *names], r"--([a-z][a-z0-9_.-]{0,63})[ \t]{1,8}(?=[^ \t-])", find_flag),
    ]
    return (
        *(RedactionRule(family, tuple(words), (), pattern, find) for family, words, pattern, find in plain),
        *(RedactionRule(family, tuple(words), (), pattern, find, True) for family, words, pattern, find in caseless),
        *map(token_rule, TOKEN_SHAPES.strip().split("\n")),
        *(RedactionRule(family, tuple(words), (), pattern, find, True) for family, words, pattern, find in named),
    )


def token_rule(row: str) -> RedactionRule:
    """The rule of one row of TOKEN_SHAPES."""
    family, begins, shape, *held = row.split()
    # The literal goes first, because only then does `re` look for it fast; behind it, what may stand before it.
    first = re.match(r"[A-Za-z0-9_-]*", shape)[0]  # type: ignore[index]  # matches always
    guard = rf"(?:(?<![A-Za-z0-9_]{first})|(?<=\\[nrtbf]{first})|(?<=[0-9;[]m{first}))"

    def find_token(match: "re.Match[str]", text: str) -> tuple[int, int]:
        start, end = match.span(match.lastindex or 0)
        return (start, end) if not held or compiled(held[0]).search(text, start, end) else (end, end)

    words = begins.split(",")
    starts = tuple(word[1:] for word in words if word.startswith("="))
    return RedactionRule(family, tuple(word for word in words if word[0] != "="), starts, first + guard + shape[len(first) :], find_token)


# --- Finders ---------------------------------------------------------------------------


def find_private_key(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The whole block up to its END line, or to the end of the text when there is none."""
    closing = f"-----END {match[1]}-----"
    end = text.find(closing, match.end())
    return match.start(), len(text) if end < 0 else end + len(closing)


def find_user_info(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """What stands before the last @ of a URL's authority; not the user of an SSH address, who is no secret."""
    start, end = match.span(1)
    at = text.rfind("@", start, end)
    if at <= start:
        return end, end
    is_ssh = text.startswith(("ssh", "SSH"), max(0, match.start() - 3), match.start())
    is_address = (is_ssh or text[start:at] == "git") and text.find(":", start, at) < 0
    is_pattern = text[start] == "[" or not compiled(r"[\W_]*\w").match(text, start, at)  # a regular expression for URLs
    return (end, end) if is_address or is_pattern else (start, at)


def find_encoded_user_info(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The same in a percent-encoded URL."""
    start, end = match.span(1)
    at = text.rfind("%40", start, end)
    return (end, end) if at < 0 else (start, at)


def find_header(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """What an Authorization header holds behind its scheme, to the end of the line or of the quotes; a sentence is none."""
    start, end = value_span(text, match.end(), LINE_RUN)
    scheme = compiled(SCHEMES).match(text[start : min(end, start + 80)].lower())
    if scheme and scheme[1] in ("digest", "hawk", "oauth") and start == match.end():  # whose parts are in quotes of their own
        end = compiled(r"[^\r\n]*").match(text, start).end()  # type: ignore[union-attr]  # may match nothing
    start += scheme.end() if scheme else 0
    words = text[start:end].split()
    is_prose = is_no_secret(text, start, end, "", True) or words[0].lower().startswith("auth") or (len(words) > 1 and are_plain(words))
    is_code = compiled(CODE).match(text, start, end)
    return (end, end) if is_prose or is_code or not begins_word(text, match.start(), "proxy") else (start, end)


def find_bearer(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The token behind the word; "bearer of bad news" has none, nor has "bearer token-based"."""
    start, end = match.span(1)
    end -= len(text[start:end]) - len(text[start:end].rstrip("."))
    is_prose = compiled(r"[A-Za-z]*|[a-z._~+/=-]*").fullmatch(text, start, end)
    return (end, end) if is_prose or not begins_word(text, match.start()) else (start, end)


def find_basic(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The credentials behind the word, if they are base64 of readable text with a colon."""
    from binascii import Error, a2b_base64

    start, end = match.span(1)
    digits = text[start:end].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        decoded = a2b_base64(digits + "=" * (-len(digits) % 4)).decode("utf-8")
    except (Error, UnicodeDecodeError):
        return end, end
    return (start, end) if ":" in decoded and decoded.isprintable() and begins_word(text, match.start()) else (end, end)


def find_cookie(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """What a Cookie or Set-Cookie header holds: name=value, to the end of the line or of the quotes."""
    start, end = value_span(text, match.end(), LINE_RUN)
    return (start, end) if "=" in text[start:end] and begins_word(text, match.start(), "set") else (end, end)


def find_named(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The value that is assigned to a name which tells a secret; in `arn:aws:…:secret:…` and `AWS::X::Secret` it tells a kind."""
    name = compiled("[a-z]+").match(match[0])[0]  # type: ignore[index]  # begins with letters
    before = text[max(0, match.start() - 2) : match.start()]
    if before == "::" or (before.endswith(":") and match[0] == name + ":"):
        return match.end(), match.end()
    if not (is_owned_key(text, match.start()) if name == "key" else begins_word(text, match.start(), *FIRST_WORDS)):
        return match.end(), match.end()
    start, end = value_span(text, match.end(), WORD_RUN)
    return (end, end) if is_no_secret(text, start, end, name, start > match.end()) else (start, end)


def find_flag(match: "re.Match[str]", text: str) -> tuple[int, int]:
    """The word behind a long option whose name tells a secret: `--db-password hunter2`."""
    start, end = value_span(text, match.end(), WORD_RUN)
    names = "|".join([rf"(?:{'|'.join(KEY_OWNERS)})[_.-]?key", *TEXT_NAMES])
    name = compiled(rf"(?:.*[_.-])?({names})").fullmatch(match[1])
    return (start, end) if name and not is_no_secret(text, start, end, name[1], start > match.end()) else (end, end)


# --- What stands around a secret -------------------------------------------------------


@lru_cache(None)
def compiled(pattern: str) -> "re.Pattern[str]":
    """The *pattern*, compiled at its first use."""
    return re.compile(pattern)


def value_span(text: str, start: int, run: str) -> tuple[int, int]:
    """Where the value at *start* stands: inside its quotes, which may be escaped up to three times, else as far as *run* goes."""
    opening = compiled(QUOTE).match(text, start)
    if opening is None:
        return start, compiled(run).match(text, start).end()  # type: ignore[union-attr]  # may match nothing
    depth, quote = len(opening[0]) - 1, opening[0][-1]
    start = end = opening.end()
    while True:
        end = compiled(rf"[^{quote}\r\n]*").match(text, end).end()  # type: ignore[union-attr]  # may match nothing
        last = text[max(start, end - 8) : end]
        slashes = len(last) - len(last.rstrip("\\"))
        if text[end : end + 1] != quote or slashes <= depth or (depth == 0 and slashes % 2 == 0):
            return start, end - min(slashes, depth)
        end += 1


def begins_word(text: str, start: int, *first_words: str) -> bool:
    """True when the word at *start* has no letter or digit before it, but an escape, a colour, or one of *first_words*."""
    before = text[max(0, start - LOOK_BACK) : start].lower()
    if not before or not before[-1].isalnum() or not before[-1].isascii():
        return True
    glued = compiled(BOUNDARY + r"([a-z0-9]*)$").search(before)
    return glued is not None and (not glued[1] or glued[1] in first_words)


def is_owned_key(text: str, start: int) -> bool:
    """True when the word `key` at *start* is that of an API, an account …: other keys are no secrets."""
    pattern = compiled(rf"{BOUNDARY}(?:{'|'.join(KEY_OWNERS)})[ _.-]?$")
    return pattern.search(text[max(0, start - LOOK_BACK) : start].lower()) is not None


def are_plain(words: list[str]) -> bool:
    """True when all *words* are letters, with the marks that sentences have."""
    return all(word.strip(".,;:!?'()").isalpha() for word in words)


def is_no_secret(text: str, start: int, end: int, name: str, is_quoted: bool) -> bool:
    """True when the value between *start* and *end*, assigned to *name*, is a constant, a placeholder, code or the rest of a sentence."""
    value = text[start:end]
    bare = value.strip(" \t.,:;!?*").lower()
    if bare in NO_SECRETS or not any(map(str.isalnum, bare)):
        return True
    if name == "token" and (bare.isdigit() or (bare.endswith(name) and bare.isalpha())):  # a count, `nextToken`
        return True
    if compiled(SECRET_PLACEHOLDER).fullmatch(value.rstrip(":")) or (name == "pwd" and value[0] in "/~"):
        return True
    if is_quoted or not compiled(r"[A-Za-z_][\w.]*").fullmatch(value):
        return False
    return text[end : end + 1] in tuple("([") or compiled("[._]").split(value.lower())[-1] == name

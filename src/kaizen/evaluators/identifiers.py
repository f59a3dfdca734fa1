"""Personal identifiers in a text: where one stands, by shape and by its check digits.

Each finder gives (start, end) of what it finds. It looks at a bounded number of characters around a place, so time
grows with the length of the text. What a shape alone cannot tell from other numbers is left out: phone
numbers without a country code, social security numbers without hyphens, card numbers no issuer has.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

Span = tuple[int, int]
IdentifierFinder = Callable[[str], Iterator[Span]]

LOCAL_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+'-"
# Lengths of IBANs (SWIFT's IBAN registry, release 99) by country.
IBAN_LENGTHS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 "
    "FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 "
    "LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 "
    "RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"
)
# Country codes in use (ITU-T E.164, list of assigned codes).
COUNTRY_CODES = (
    r"1|7|2(?:0|7|1[12368]|[2346]\d|5[0-8]|9[01789])|3(?:[0123469]|5\d|7[0-8]|8[0-35-79])|4(?:[0134-9]|2[013])|5(?:[1-8]|0\d|9\d)|"
    r"6(?:[0-6]|7[02-9]|8[0-35-9]|9[0-2])|8(?:[1246]|0[08]|5[02356]|7[08]|8[0-368])|9(?:[0-58]|6[0-8]|7[0-79]|9[2-68])"
)
# Issuers of cards (ISO/IEC 7812 prefixes as the networks publish them): how a number begins, how many digits it has.
CARD_ISSUERS = (
    r"4\d{12}(?:\d{3}(?:\d{3})?)?|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|"
    r"6(?:011|5\d\d|4[4-9]\d)\d{12}(?:\d{3})?|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}(?:\d{3})?"
)
NO_PERSONS_SSN = ("078-05-1120", "219-09-9999", "457-55-5462")  # printed in advertisements


@lru_cache(None)
def identifier_pattern(pattern: str) -> "re.Pattern[str]":
    """The *pattern*, compiled at its first use."""
    return re.compile(pattern)


def luhn_holds(digits: str) -> bool:
    """Whether the last of *digits* is the check digit of the others (ISO/IEC 7812-1, annex B).

    >>> luhn_holds("4111111111111111"), luhn_holds("4111111111111112")
    (True, False)
    """
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def iban_holds(text: str) -> bool:
    """Whether *text*, without blanks, is an IBAN of its country's length with right check digits (ISO 13616, mod 97 of ISO 7064).

    >>> iban_holds("DE89370400440532013000"), iban_holds("DE88370400440532013000")
    (True, False)
    """
    text = text.upper()
    is_shaped = identifier_pattern("[A-Z]{2}[0-9]{2}[0-9A-Z]+").fullmatch(text) is not None
    if not is_shaped or f"{text[:2]}{len(text)}" not in IBAN_LENGTHS:
        return False
    return int("".join(str(int(letter, 36)) for letter in text[4:] + text[:4])) % 97 == 1


def find_emails(text: str) -> Iterator[Span]:
    """Addresses of email: ASCII before the @, at least two labels behind it, the last of them letters."""
    at = text.find("@")
    done = 0
    while at >= 0:
        before = text[max(done, at - 65) : at]
        local = before[len(before.rstrip(LOCAL_CHARACTERS)) :].lstrip(".'-%")
        match = identifier_pattern(r"[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}").match(text, at + 1)
        if match and 0 < len(local) <= 64 and not local.endswith(".") and ".." not in local:
            labels = match[0].rstrip("-").split(".")
            while labels and not (labels[-1].isalpha() and len(labels[-1]) > 1 or labels[-1].lower().startswith("xn--")):
                labels.pop()  # a sentence that goes on behind a full stop
            if len(labels) > 1 and not any(label.startswith("-") or label.endswith("-") or "_" in label for label in labels):
                yield at - len(local), at + 1 + len(".".join(labels))
        done = at + 1
        at = text.find("@", at + 1)


def find_phones(text: str) -> Iterator[Span]:
    """Phone numbers with a country code in use (E.164): + and 8 to 15 digits, 11 of them in North America and behind +7."""
    if "+" not in text:
        return
    for match in identifier_pattern(r"(?<![\w+])\+\(?[1-9](?:[ \u00a0().\-/]{0,3}[0-9]){6,14}(?![0-9])").finditer(text):
        places = [place for place in range(*match.span()) if text[place].isdigit()]
        digits = "".join(text[place] for place in places)
        wanted = 11 if digits[0] in "17" else len(digits)
        is_cut = wanted < len(places) and places[wanted] == places[wanted - 1] + 1
        if len(digits) >= max(wanted, 8) and not is_cut and identifier_pattern(COUNTRY_CODES).match(digits):
            yield match.start(), places[wanted - 1] + 1


def find_ibans(text: str) -> Iterator[Span]:
    """Bank accounts: IBANs, whole or in groups."""
    for match in identifier_pattern(r"(?<![0-9A-Za-z])[A-Za-z]{2}[0-9]{2}(?=((?:[ -]?[0-9A-Za-z]){11,29}))").finditer(text):
        found = match[0] + match[1]
        length = IBAN_LENGTHS.find(found[:2].upper())
        if length < 0:
            continue
        wanted = int(IBAN_LENGTHS[length + 2 : length + 4])
        places = [place for place, letter in enumerate(found) if letter.isalnum()]
        if len(places) >= wanted:
            end = places[wanted - 1] + 1
            follows = text[match.start() + end : match.start() + end + 1]
            if not follows.isalnum() and iban_holds("".join(found[place] for place in places[:wanted])):
                yield match.start(), match.start() + end


def find_cards(text: str) -> Iterator[Span]:
    """Numbers of payment cards, whole or in groups, with the length of their issuer and the right check digit."""
    done = 0
    for match in identifier_pattern(r"(?<!\w)(?<![0-9][.,])(?=([2-6][0-9]{3,18}(?:[ -][0-9]{3,7}){0,4}))").finditer(text):
        if match.start() < done:
            continue
        start, groups = match.start(), match[1]
        for end in [found.start() for found in identifier_pattern("[ -]").finditer(groups)] + [len(groups)]:
            digits = groups[:end].replace(" ", "").replace("-", "")
            follows = text[start + end : start + end + 2]
            is_end = not follows[:1].isalnum() and not (follows[:1] in "-.," and follows[1:].isalnum() and end == len(groups))
            if is_end and identifier_pattern(CARD_ISSUERS).fullmatch(digits) and luhn_holds(digits):
                yield start, start + end
                done = start + end
                break


def find_ssns(text: str) -> Iterator[Span]:
    """Social security numbers of the United States, with hyphens: no area 000, 666 or 900 up, no group 00, no serial 0000."""
    pattern = r"(?<![\w-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w-])"
    for match in identifier_pattern(pattern).finditer(text):
        if match[0] not in NO_PERSONS_SSN:
            yield match.span()


def find_ipv4(text: str) -> Iterator[Span]:
    """Addresses of IPv4, but for loopback and unspecified ones."""
    for match in identifier_pattern(r"(?<![\w.-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w-]|\.[0-9])").finditer(text):
        if is_host_address(match[0]):
            yield match.span()


def find_ipv6(text: str) -> Iterator[Span]:
    """Addresses of IPv6 with three groups or more, or of a local range, but for loopback and unspecified ones."""
    pattern = r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,8}(?:\.[0-9]{1,3}){0,3}(?![\w:]|\.[0-9])"
    for match in identifier_pattern(pattern).finditer(text) if ":" in text else ():
        groups = [group for group in match[0].split(":") if group]
        if (len(groups) > 2 or match[0][:2].lower() in ("fe", "fc", "fd")) and is_host_address(match[0]):
            yield match.span()


def is_host_address(text: str) -> bool:
    """Whether *text* is an IP address that a host may have."""
    from ipaddress import ip_address

    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def find_random_words(text: str) -> Iterator[Span]:
    """Words of 20 to 128 letters, digits, + / _ - = that look drawn at random.

    They hold two capitals, two small letters and two digits at least, and 4 bits of entropy a character (Shannon, of the
    word's own letters): random base64 of 32 characters has about 4.5, a long name in camelCase less than 4.
    """
    from collections import Counter
    from math import log2

    for match in identifier_pattern(r"[A-Za-z0-9+/_-]{20,}={0,2}").finditer(text):
        word = match[0]
        kinds = (sum(map(test, word)) for test in (str.isupper, str.islower, str.isdigit)) if len(word) <= 128 else (0,)
        if all(number >= 2 for number in kinds):
            size = len(word)
            if -sum(count / size * log2(count / size) for count in Counter(word).values()) >= 4:
                yield match.span()


# kind: (what a reason calls one, its finder)
IDENTIFIERS: dict[str, tuple[str, IdentifierFinder]] = {
    "email": ("email address", find_emails),
    "phone": ("phone number", find_phones),
    "iban": ("IBAN", find_ibans),
    "card": ("card number", find_cards),
    "ssn": ("social security number", find_ssns),
    "ipv4": ("IPv4 address", find_ipv4),
    "ipv6": ("IPv6 address", find_ipv6),
}

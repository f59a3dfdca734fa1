"""Personal identifiers as the libraries for them know them: python-stdnum, phonenumbers, email-validator.

Where `leak` and a library disagree on purpose, the difference stands in docs/leaks.md and is pinned here.
"""

import random
import re
import sys
import unittest
from pathlib import Path

import phonenumbers
from email_validator import EmailNotValidError, validate_email
from stdnum import iban, luhn
from stdnum.us import ssn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import kaizen

DRAWN = 3000


def found(kind, text):
    """What the finder of *kind* finds in *text*."""
    return [text[start:end] for start, end in kaizen.IDENTIFIERS[kind][1](text)]


class Checksums(unittest.TestCase):
    """The check digits themselves."""

    def test_luhn(self):
        draw = random.Random(1)
        held = 0
        for _ in range(DRAWN):
            digits = "".join(draw.choice("0123456789") for _ in range(draw.randint(2, 24)))
            held += luhn.is_valid(digits)
            self.assertEqual(kaizen.luhn_holds(digits), luhn.is_valid(digits), digits)
        self.assertGreater(held, DRAWN / 20)

    def test_the_countries_of_ibans_and_their_lengths(self):
        structures = {}
        for line in (Path(iban.__file__).parent / "iban.dat").read_text().splitlines():
            match = re.match(r'([A-Z]{2}) country="([^"]*)" bban="([^"]*)"', line)
            if match:
                structures[match[1]] = 4 + sum(int(number) for number in re.findall(r"(\d+)!", match[3]))
        ours = {word[:2]: int(word[2:]) for word in kaizen.IBAN_LENGTHS.split()}
        self.assertGreater(len(structures), 80)
        self.assertEqual(ours, structures)

    def test_ibans_drawn_for_each_country_and_the_same_with_a_digit_changed(self):
        draw = random.Random(2)
        for word in kaizen.IBAN_LENGTHS.split():
            for _ in range(20):
                country, size = word[:2], int(word[2:])
                account = "".join(draw.choice("0123456789") for _ in range(size - 4))
                number = country + iban.calc_check_digits(f"{country}00{account}") + account
                if iban_is_shaped(number):
                    self.assertTrue(iban.validate(number, check_country=False))
                self.assertTrue(kaizen.iban_holds(number), number)
                grouped = " ".join(number[start : start + 4] for start in range(0, size, 4))
                for text in (number, grouped, number.lower()):
                    self.assertEqual(found("iban", f"pay to {text}, please"), [text])
                place = draw.randrange(4, size)
                wrong = number[:place] + str((int(number[place]) + draw.randint(1, 9)) % 10) + number[place + 1 :]
                self.assertEqual(found("iban", wrong), [])
                self.assertFalse(iban.is_valid(wrong))


def iban_is_shaped(number):
    """Whether python-stdnum also likes the letters and digits of the account, which Kaizen does not look at."""
    try:
        iban.validate(number, check_country=False)
    except iban.InvalidFormat:
        return False
    return True


class SocialSecurity(unittest.TestCase):
    """stdnum.us.ssn, for numbers with hyphens."""

    def test_it_agrees_on_numbers_with_hyphens(self):
        draw = random.Random(3)
        numbers = [f"{draw.randint(0, 999):03}-{draw.randint(0, 99):02}-{draw.randint(0, 9999):04}" for _ in range(DRAWN)]
        numbers += ["000-12-3456", "666-12-3456", "899-12-3456", "900-12-3456", "123-00-4567", "123-45-0000", "078-05-1120", "219-09-9999", "457-55-5462"]
        for number in numbers:
            self.assertEqual(found("ssn", f"ssn {number}.") == [number], ssn.is_valid(number), number)

    def test_nine_digits_without_hyphens_are_left_out_on_purpose(self):
        self.assertTrue(ssn.is_valid("536904399"))
        self.assertEqual(found("ssn", "536904399"), [])


class Phones(unittest.TestCase):
    """phonenumbers, with its example of every region and kind."""

    KINDS = (phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE, phonenumbers.PhoneNumberType.TOLL_FREE)

    def test_the_examples_of_all_regions_are_found_however_they_are_written(self):
        formats = (phonenumbers.PhoneNumberFormat.E164, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
        looked = short = 0
        for region in sorted(phonenumbers.SUPPORTED_REGIONS):
            for kind in self.KINDS:
                number = phonenumbers.example_number_for_type(region, kind)
                if number is None:
                    continue
                digits = f"{number.country_code}{phonenumbers.national_significant_number(number)}"
                looked += 1
                short += len(digits) < 8  # a handful of small places, left out on purpose
                for each in formats:
                    text = phonenumbers.format_number(number, each)
                    self.assertEqual(found("phone", f"call {text}!"), [text] if len(digits) >= 8 else [], (region, text))
        self.assertGreater(looked, 500)
        self.assertLess(short, 12)

    def test_country_codes_are_those_in_use(self):
        used = set(phonenumbers.COUNTRY_CODE_TO_REGION_CODE)
        for code in range(1, 1000):
            self.assertEqual(re.fullmatch(kaizen.COUNTRY_CODES, str(code)) is not None, code in used, code)

    def test_harmless_numbers_are_no_phone_numbers(self):
        for text in ("2026-11-30 10:15:00", "order 4915112345678", "+0 123 456 789", "12+3456789012", "a+4915112345678", "+999 123 456 789", "+1 415 555 267"):
            self.assertEqual(found("phone", text), [], text)


class Emails(unittest.TestCase):
    """email-validator, without asking the network."""

    GOOD = ("ann@mail.example.com", "o'brien@firm.org", "a.b+tag@sub-domain.co.uk", "x_1%y@a1.io", "ann@xn--bcher-kva.de", "ann@b\u00fccher.de", "1@2.museum", "A@B.CC")
    BAD = ("ann@", "@mail.example.com", "ann@localhost", "ann@mail..com", "ann@-mail.com", "ann.@mail.com", "ann@mail_x.com", "npm@1.2.3", "a@1.2")

    def test_what_it_takes_is_found(self):
        for address in self.GOOD:
            validate_email(address, check_deliverability=False, test_environment=True)
            self.assertEqual(found("email", f"write to <{address}>, or '{address}'. Then"), [address, address])

    def test_what_it_refuses_is_not_found(self):
        for text in self.BAD:
            with self.assertRaises(EmailNotValidError, msg=text):
                validate_email(text, check_deliverability=False, test_environment=True)
            self.assertEqual(found("email", text), [], text)

    def test_other_letters_before_the_at_sign_and_domains_of_one_letter_are_left_out_on_purpose(self):
        for address in ("\u00fcnal@mail.com", "a@b.c"):
            validate_email(address, check_deliverability=False)
        self.assertEqual(found("email", "\u00fcnal@mail.com"), ["nal@mail.com"])  # found, from its first ASCII letter on
        self.assertEqual(found("email", "a@b.c"), [])  # no top-level domain has one letter


if __name__ == "__main__":
    unittest.main()

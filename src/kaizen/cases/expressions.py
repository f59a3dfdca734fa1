"""Derived metrics: arithmetic over named metrics, read by hand and worked out exactly.

    "1 - rate(unsafe_action)"      "(2 * mean(tone) + mean(facts)) / 3"      "min(rate(a), rate('b-2'))"

A text becomes tokens, the tokens a list of steps for a stack; nothing is evaluated as code. Numbers are
fractions, so that 3 of 10 is 0.3; what divides by zero, or rests on nothing measured, has no value.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kaizen.foundation.text import did_you_mean, quoted

if TYPE_CHECKING:
    from fractions import Fraction

MAX_EXPRESSION = 2000  # characters; a longer one is no formula that a person checks
MAX_NESTED = 50
# What a function says of one metric. min, max and mean also take several values.
METRIC_FUNCTIONS = ("rate", "mean", "count", "min", "max")
VALUE_FUNCTIONS = ("min", "max", "mean")
SAME_SIGNS = {"×": "*", "÷": "/", "−": "-"}
# Number, name (a letter first; what holds other characters stands in quotes), quoted name, sign, blanks.
TOKEN = (
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[^\W\d][\w.]*)"
    r"""|(?P<quoted>'[^']*'|"[^"]*")|(?P<sign>[-+*/(),×÷−])|(?P<blank>\s+)"""
)

Lookup = Callable[[str, str], "tuple[Fraction | None, str]"]


class ExpressionError(Exception):
    """An expression that cannot be read: `place` is the character, from 1, at which it goes wrong."""

    def __init__(self, place: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.hint = hint


class Use(NamedTuple):
    """A function of one metric in an expression, and the character at which the metric's name stands."""

    function: str
    metric: str
    place: int


class Expression(NamedTuple):
    """An expression as steps for a stack: a Fraction or Use is put onto it, (sign or function, n) takes n values and puts one."""

    text: str
    steps: "tuple[Fraction | Use | tuple[str, int], ...]"

    def uses(self) -> list[Use]:
        """Where it asks something of a metric, in the order of the text."""
        return [step for step in self.steps if isinstance(step, Use)]


class Token(NamedTuple):
    """A piece of the text: its kind (number, name, quoted, sign, end), what stands there, the character from 1."""

    kind: str
    text: str
    place: int


def expression_tokens(text: str) -> list[Token]:
    """The tokens of *text*, blanks left out, with an 'end' behind them. Raises ExpressionError."""
    if len(text) > MAX_EXPRESSION:
        raise ExpressionError(1, f"is {len(text):,} characters long (at most {MAX_EXPRESSION:,})", "divide it into several metrics")
    tokens = []
    position = 0
    pattern = re.compile(TOKEN)
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            what = "a quote that is not closed" if text[position] in "'\"" else f"{quoted(text[position])}, which has no meaning here"
            raise ExpressionError(position + 1, f"holds {what}", "write names with other characters in quotes: rate('no-harm')")
        kind = str(match.lastgroup)
        if kind != "blank":
            tokens.append(Token(kind, SAME_SIGNS.get(match.group(), match.group()), position + 1))
        position = match.end()
    return [*tokens, Token("end", "", len(text) + 1)]


class ExpressionReader:
    """Reads the tokens of one expression; `steps` grows as it goes."""

    def __init__(self, text: str) -> None:
        self.tokens = expression_tokens(text)
        self.position = 0
        self.depth = 0
        self.steps: list[Any] = []

    @property
    def token(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.position]

    def take(self, *signs: str) -> str:
        """The next token's text when it is one of *signs*, which is then read; '' otherwise."""
        token = self.token
        if token.kind != "sign" or token.text not in signs:
            return ""
        self.position += 1
        return token.text

    def expect(self, sign: str) -> None:
        """Reads *sign*. Raises ExpressionError when something else comes next."""
        if not self.take(sign):
            raise self.unexpected(quoted(sign))

    def unexpected(self, wanted: str) -> ExpressionError:
        """The error that *wanted* should stand where the next token stands."""
        found = "its end" if self.token.kind == "end" else quoted(self.token.text, 40)
        return ExpressionError(self.token.place, f"has {found} where {wanted} should stand")

    def sums(self) -> None:
        """Reads terms that are added and subtracted, from the left."""
        self.products()
        while sign := self.take("+", "-"):
            self.products()
            self.steps.append((sign, 2))

    def products(self) -> None:
        """Reads factors that are multiplied and divided, from the left."""
        self.factor()
        while sign := self.take("*", "/"):
            self.factor()
            self.steps.append((sign, 2))

    def factor(self) -> None:
        """Reads a number, a function, something in parentheses, or one of them with its sign in front."""
        negations = 0
        while sign := self.take("+", "-"):
            negations += sign == "-"
        token = self.token
        if self.take("("):
            self.inside(self.sums)
            self.expect(")")
        elif token.kind == "number":
            self.position += 1
            self.steps.append(exact_number(token))
        elif token.kind in ("name", "quoted"):
            self.position += 1
            self.function(token)
        else:
            raise self.unexpected("a number, a function or '('")
        if negations % 2:
            self.steps.append(("negative", 1))

    def inside(self, read: Callable[[], None]) -> None:
        """Calls *read* one level deeper. Raises ExpressionError beyond 50 levels."""
        self.depth += 1
        if self.depth > MAX_NESTED:
            raise ExpressionError(self.token.place, f"nests more than {MAX_NESTED} levels deep", "divide it into several metrics")
        read()
        self.depth -= 1

    def function(self, token: Token) -> None:
        """Reads what *token*, a name, is applied to. Raises ExpressionError for a metric that stands alone."""
        name = token.text
        if token.kind == "quoted" or self.token.text != "(":
            known = "is no function" if name in METRIC_FUNCTIONS else "says not what of it is meant"
            raise ExpressionError(token.place, f"{quoted(name, 60)} {known}", f"write rate({name}) or mean({name})"[:120])
        if name not in METRIC_FUNCTIONS:
            raise ExpressionError(token.place, f"there is no function {quoted(name, 60)}", did_you_mean(name, METRIC_FUNCTIONS))
        self.expect("(")
        if self.token.kind in ("name", "quoted") and self.tokens[self.position + 1].text in (")", ""):
            metric = self.token
            self.steps.append(Use(name, metric.text.strip("'\"") if metric.kind == "quoted" else metric.text, metric.place))
            self.position += 1
        else:
            self.inside(lambda: self.several(token))
        self.expect(")")

    def several(self, token: Token) -> None:
        """Reads the values of min, max and mean. Raises ExpressionError where another function, or one value, stands."""
        if token.text not in VALUE_FUNCTIONS:
            hint = f"{token.text}(name); a name with other characters than letters, digits, _ and . in quotes: {token.text}('no-harm')"
            raise ExpressionError(self.token.place, f"{token.text} takes the name of one metric", hint)
        number = 1
        self.sums()
        while self.take(","):
            self.sums()
            number += 1
        if number == 1 and self.token.text == ")":
            raise ExpressionError(token.place, f"{token.text} takes the name of one metric, or two values and more")
        self.steps.append((token.text, number))


def exact_number(token: Token) -> "Fraction":
    """The number that *token* writes, as a fraction. Raises ExpressionError for one that no float holds."""
    from fractions import Fraction

    mantissa, _, exponent = token.text.lower().partition("e")
    if len(mantissa) > 40 or len(exponent.lstrip("+-")) > 3 or float(token.text) in (float("inf"),):
        raise ExpressionError(token.place, f"the number {quoted(token.text, 20)} is longer or larger than a measurement can be")
    return Fraction(token.text)


def parse_expression(text: str) -> Expression:
    """The expression that *text* writes. Raises ExpressionError.

    >>> [step for step in parse_expression("1 - rate(unsafe)").steps]
    [Fraction(1, 1), Use(function='rate', metric='unsafe', place=10), ('-', 2)]
    """
    reader = ExpressionReader(text)
    reader.sums()
    if reader.token.kind != "end":
        raise reader.unexpected("a sign or its end")
    found = Expression(text, tuple(reader.steps))
    if not found.uses():
        raise ExpressionError(1, "asks nothing of a metric", "name one: 1 - rate(ID), with the id or `metric` of an evaluator")
    return found


def check_metric_names(expression: Expression, known: "set[str]", shown: "set[str]") -> None:
    """Raises ExpressionError when *expression* asks of a metric that is not *known*; only those *shown* are suggested."""
    for use in expression.uses():
        if use.metric not in known:
            raise ExpressionError(use.place, f"no evaluator has the id or metric {quoted(use.metric, 60)}", did_you_mean(use.metric, shown))


# --- Working it out --------------------------------------------------------------------


def expression_value(expression: Expression, lookup: Lookup) -> "tuple[Fraction | None, str]":
    """(value, '') of *expression*, or (None, reason code); *lookup* gives the same of (function, metric)."""
    stack: list[Any] = []
    for step in expression.steps:
        if isinstance(step, Use):
            value, reason = lookup(step.function, step.metric)
            if value is None:
                return None, reason
            stack.append(value)
        elif isinstance(step, tuple):
            name, number = step
            values = stack[-number:]
            del stack[-number:]
            if name == "/" and values[1] == 0:
                return None, "division_by_zero"
            stack.append(applied(name, values))
        else:
            stack.append(step)
    return stack[0], ""


def applied(name: str, values: "list[Fraction]") -> "Fraction":
    """What the sign or function *name* makes of *values*."""
    if name == "+":
        return values[0] + values[1]
    if name == "-":
        return values[0] - values[1]
    if name == "*":
        return values[0] * values[1]
    if name == "/":
        return values[0] / values[1]
    if name == "negative":
        return -values[0]
    return min(values) if name == "min" else max(values) if name == "max" else sum(values[1:], values[0]) / len(values)

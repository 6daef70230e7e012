"""Solvers of tasks about numbers."""

from __future__ import annotations

import ast
import calendar
import datetime
import json
import re
from decimal import Decimal
from fractions import Fraction

import sympy
from dateutil.parser import parse

from tools.gold_solvers.reading import Solver, computed, exact, found, integers, one_of


def _filtering(question: str, gold: str) -> bool:
    verb, how, bound, listed = found(
        r"(Keep|Remove) all numbers (larger|smaller) than (\S+) in this list:"
        r" (\[.*?\])",
        question,
    )
    limit = Decimal(bound)

    def is_meant(number: str) -> bool:
        value = Decimal(number)
        return value > limit if how == "larger" else value < limit

    kept = [n for n in ast.literal_eval(listed) if is_meant(n) == (verb == "Keep")]
    return ast.literal_eval(gold) == kept


def _product(question: str, gold: str) -> bool:
    """Compare the values at two large numbers.

    Two polynomials that agree at both and differ elsewhere would have a difference with
    both as roots, which no wrong coefficient or exponent makes.
    """
    text = question.split("When performing")[0]
    expression = found(r":\s*([^\n]*)", text)[0]

    def value(polynomial: str, base: int) -> Fraction:
        numbers = re.sub(
            "[a-zA-Z]", lambda name: f"({base + 7_919 * ord(name[0])})", polynomial
        )
        return exact(numbers)

    return all(
        value(expression, at) == value(gold, at) for at in (10**6 + 3, 10**9 + 7)
    )


def _integral(question: str, gold: str) -> bool:
    expression = sympy.sympify(found(r"∫\s*(.*?) d[a-zA-Z]\n", question)[0])
    # Half of the questions write X in the expression and dx behind it.
    (unknown,) = expression.free_symbols or {sympy.Symbol("x")}
    if re.search(r"\b(?:or|and|not|if|is|in)\b|[=<>\n]", gold):
        raise ValueError(f"{gold!r} is no formula")
    told = sympy.sympify(gold, rational=True)
    if not told.free_symbols <= {unknown, sympy.Symbol("C")}:
        raise ValueError(f"{gold!r} has other letters")
    difference = expression - sympy.diff(told, unknown)
    # No proof: sympy finds none for many. But what is not zero has coefficients of a
    # few digits, and no reason to vanish in 30 digits at three places.
    return all(
        abs(difference.evalf(40, subs={unknown: sympy.Rational(at)})) < 1e-30
        for at in ("37/100", "121/100", "23/10")
    )


WEEKDAYS = list(calendar.day_name)
DAY = datetime.timedelta(days=1)


def _date(text: str, year: str) -> datetime.datetime:
    return parse(f"{text} {year}")


def _days_between(question: str) -> list[datetime.datetime] | None:
    """Return all days of a range; None if it does not begin first with its weekdays."""
    dates = re.findall(r"(\w+day), ([A-Z][a-z]+ \d+)(?:, (\d+))?", question)
    year = next(given for _, _, given in reversed(dates) if given)
    begin, end = (_date(text, given or year) for _, text, given in dates)
    told = [weekday for weekday, _, _ in dates]
    if end < begin or [f"{begin:%A}", f"{end:%A}"] != told:
        return None
    return [begin + DAY * n for n in range((end - begin).days + 1)]


def _calendar(question: str) -> str:
    if "leap year" in question:
        year = integers(question)[0]
        return "Yes" if calendar.isleap(year) else "No"
    if re.search(r"inclusive|including both|counting both", question):
        days = _days_between(question)
        if days is None:
            return "no such dates"
        if re.search(r"usiness days|weekends", question):
            return str(sum(d.weekday() < 5 for d in days))
        wanted = found(r"(?:many|of|does) (\w+day)s?\b", question)[0]
        return str(sum(f"{d:%A}" == wanted for d in days))
    ordinal = re.search(r"the (first|second|third|fourth|last) (\w+day)", question)
    if ordinal:
        month, year = found(r"(?:of|[Ii]n) ([A-Z][a-z]+) (\d{4})", question)
        begin = _date(f"{month} 1", year)
        days = [begin + DAY * n for n in range(31)]
        named = [d for d in days if f"{d:%B %A}" == f"{month} {ordinal[2]}"]
        places = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1}
        return str(named[places[ordinal[1]]].day)
    slashed = re.search(r"\d+/\d+/\d+", question)
    if slashed:
        return f"{parse(slashed[0]):%A}"
    at = _date(*found(r"([A-Z][a-z]+ \d+), (\d+)", question))
    moved = re.search(r"(\d+)(?: |-)days?", question)
    if moved:
        is_back = re.search(r"\b(ago|before|backward)\b", question)
        at += (-DAY if is_back else DAY) * int(moved[1])
    return f"{at:%A}"


def _first_of_year(question: str) -> set[str]:
    first = found(r"(?:was a|fell on a|where) (\w+day)", question)[0]
    dates = re.findall(r"([A-Z][a-z]+ \d+)\b(?!st)", question)
    text = ["January 1", *(date for date in dates if date != "January 1")][-1]
    years = ["2024"] if text == "February 29" else ["2021", "2024"]
    days = [_date(text, year).timetuple().tm_yday for year in years]
    return {WEEKDAYS[(WEEKDAYS.index(first) + day - 1) % 7] for day in days}


def _calendar_arithmetic(question: str, gold: str) -> bool:
    if re.search(r"first day of the year|January 1 fell|is January 1st", question):
        return _first_of_year(question) == {gold}
    return computed(_calendar)(question, gold)


def _moment(text: str) -> datetime.datetime:
    return parse(text, fuzzy=True)


def _time_intervals(question: str, gold: str) -> bool:
    start, end = found(
        r"\b(?:between|from|at) (.*?) (?:to|and(?: \w+ at)?) (.*?)"
        r"[?.] (?:[A-Z]\w+ (?!\d)|How )",
        question,
    )
    took = abs(_moment(end) - _moment(start))
    if gold.endswith(("day", "days")):
        return took == DAY * int(gold.split()[0])
    days, text = re.split(r" days?, ", gold) if "day" in gold else ("0", gold)
    parts = [Fraction(part) for part in text.split(":")] + [Fraction(0)]
    told = int(days) * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2]
    if text.count(":") == 1 and took.seconds % 60:
        return False  # cut off or rounded
    return told == Fraction(took // datetime.timedelta(microseconds=1), 10**6)


_LEGS = """
    0 snake sea_slug jellyfish flatworm leech 2 chicken bird human duck 4 dog cat cow
    horse lion elephant giraffe tiger deer sheep 6 insect ant butterfly beetle bee wasp
    grasshopper cricket cockroach praying_mantis firefly 8 spider scorpion 10 crab
    lobster shrimp 14 woodlouse
"""


def legs(question: str) -> set[str]:
    """Count legs, with the arms of a starfish and without."""
    legs_of, number = {}, 0
    for word in _LEGS.split():
        number = int(word) if word.isdigit() else number
        legs_of[word.replace("_", " ")] = number
        legs_of[f"{word}s".replace("_", " ")] = number
    told = re.findall(r"(\d+) ([a-z ]+)(?=[,?])", question)
    each = [[int(n) * legs_of.get(name, arms) for n, name in told] for arms in (0, 5)]
    return {str(sum(counted)) for counted in each}


def _calculation(question: str, gold: str) -> bool:
    """Judge a calculation that has to use each of some numbers once."""
    target = found(r"(?:Calculate|make|Make|equals) (-?\d+)", question)[0]
    listed = found(r"(?:numbers:?|using) ([\d, ]+)", question)[0]
    used = integers(gold.replace("-", " "))
    is_exact = exact(gold) == int(target)
    return is_exact and sorted(used) == sorted(integers(listed))


def powers(question: str) -> set[str]:
    """Return a power with three digits; the sign of a base may belong to the power.

    The question asks for no more digits, and the scorer compares no more.
    """
    base, exponent = found(r"Compute (-?[\d.]+)\^(-?\d+)", question)
    value = Decimal(base) ** int(exponent)
    return {f"{one:.2e}" for one in (value, -abs(value) if base[0] == "-" else value)}


_STORIES = {
    r"of (\d+) students, (\d+)% .*?class, (\d+)%": lambda n, p, q: (
        n - n * (100 - p) * (100 - q) / 10_000
    ),
    r"has (\d+) tubes .*? and (\d+) tubes .* half .* three": lambda a, b: a / 2 + 3 * b,
    r"has (\d+) jars .*? decorate (\d+) .* holds (\d+)": lambda a, b, c: a * b / c,
    r"for (\d+) cents.* (\d+) cents.*spent \D?(\d+) and got (\d+) .* had (\d+)%": (
        lambda a, b, money, bags, p: (money * (100 - p) - a * bags) / b
    ),
    r"pal with (\d+) .*ith (\d+) of.*end (\d+) .* (\d+) pages.*ery (\d+) min": (
        lambda a, b, c, d, e: (a - b) * c * d * e / 60
    ),
}
"""Stories of gsm_symbolic whose number need not be whole, and what it is."""


def _story(question: str, gold: str) -> bool:
    for pattern, value in _STORIES.items():
        if match := re.search(pattern, question):
            return Fraction(gold) == value(*map(Fraction, match.groups()))
    raise ValueError("another story")


SUMS_BELOW = range(15, 46)


def _list_rule(question: str, gold: str) -> bool:
    """Judge rules that add what is below a limit, or look for the number 5."""
    *shown, last = map(json.loads, re.findall(r"^Input.*: (\[.*\])$", question, re.M))
    wanted = re.findall(r"^Output \d: \[(.*)\]$", question, re.M)
    rules = [lambda x, k=k: sum({n for n in x if n < k}) for k in SUMS_BELOW]
    rules += [lambda x: x.count(5), lambda x: int(5 in x)]
    fit = [rule for rule in rules if [str(rule(x)) for x in shown] == wanted]
    answers = {f"[{rule(last)}]" for rule in fit}
    if gold not in answers:
        raise ValueError("another rule")
    return answers == {gold}


SOLVERS: dict[str, Solver] = {
    "basic_arithmetic": computed(
        lambda question: exact(found(r"(?:\w+ is|\w+:?) (.*)[.?]", question)[0])
    ),
    "calendar_arithmetic": _calendar_arithmetic,
    "countdown": _calculation,
    "intermediate_integration": _integral,
    "gsm_symbolic": _story,
    "leg_counting": one_of(legs),
    "list_functions": _list_rule,
    "number_filtering": _filtering,
    "polynomial_multiplication": _product,
    "power_function": lambda question, gold: f"{Decimal(gold):.2e}" in powers(question),
    "puzzle24": _calculation,
    "simple_integration": _integral,
    "time_intervals": _time_intervals,
}

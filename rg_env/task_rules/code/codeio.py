"""codeio: the question shows a program and asks for its output or for an input.

An input is right if the item's program produces the shown output from it; it need not
be the input that the library drew. The program is the library's text. The model's
answer is parsed as a value of JSON and is never code. The program runs in a scoring
worker, which is sandboxed and has a deadline. Items that ask for an input are not used
if their program could evaluate text of its input, or wait.

Outputs are compared as values: 1 equals 1.0, and the names of an object have no order.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gzip
import hashlib
import io
import itertools
import json
import math
import random
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import msgspec

from rg_env.task_rules.faster_functions import JsonLines, dataset_init
from rg_env.task_rules.reading.values import read_value, refuse_constant
from rg_env.task_rules.rules import (
    READABLE_SCORE,
    Entry,
    FasterFunction,
    Guard,
    ItemCheck,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- the guard of the library's scorer -------------------------------------------------

# The library's scorer is used only if `scorer_fixes` is off.

# Largest product of the weights of an answer and of the gold answer.
MAX_WORK = 2_000_000

MAX_DEPTH = 8
USUAL_GOLD_WEIGHT = 1_000
_NODE_CHARS = 8


def _depth(text: str) -> int:
    """Return the deepest nesting of brackets, including those inside strings."""
    steps = ((char in "[{") - (char in "]}") for char in text)
    return max(itertools.accumulate(steps, initial=0))


def _weight(text: str) -> int:
    """Estimate the characters of all node labels in the tree of a JSON text."""
    nodes = sum(text.count(char) for char in ",[{")
    return len(text) + _NODE_CHARS * nodes


def _why_not(answer: str, gold: str | None) -> str | None:
    """Return why a JSON object is rejected, None if it is admitted.

    The library computes a tree edit distance with an edit distance for each pair of
    nodes. The cost is the product of both sizes, and grows with depth.
    """
    start = answer.find("{")
    end = answer.rfind("}")
    if start < 0 or end < 0:
        return None  # the library compares only objects
    weight = USUAL_GOLD_WEIGHT if gold is None else _weight(gold)
    if _weight(answer[start : end + 1]) * weight > MAX_WORK:
        return "too large to be compared with the gold answer"
    return "nested too deeply" if _depth(answer) > MAX_DEPTH else None


# -- values ----------------------------------------------------------------------------

# Relative, and so 0 at 0. The order of a sum makes a smaller difference.
FLOAT_TOLERANCE = 1e-12


def _is_same_number(value: float, gold: float) -> bool:
    if isinstance(value, int) and isinstance(gold, int):
        return value == gold
    try:
        return math.isclose(value, gold, rel_tol=FLOAT_TOLERANCE)
    except OverflowError:  # an integer beyond all floats
        return False


def is_same(value: Any, gold: Any) -> bool:
    """Return whether two values are the same value of JSON; 1 is not `true`.

    Tuples are lists, the names of an object are text without an order, and scalars of
    numpy are plain numbers.

    Example:
        >>> is_same({"a": (1, 2.0)}, {"a": [1.0, 2]})
        True
    """
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(value, bool) or isinstance(gold, bool):
        return value is gold
    if isinstance(value, dict) and isinstance(gold, dict):
        values = {str(name): member for name, member in value.items()}
        golds = {str(name): member for name, member in gold.items()}
        if values.keys() != golds.keys():
            return False
        return all(is_same(values[name], golds[name]) for name in golds)
    if isinstance(value, (list, tuple)) and isinstance(gold, (list, tuple)):
        return len(value) == len(gold) and all(map(is_same, value, gold))
    if isinstance(value, (int, float)) and isinstance(gold, (int, float)):
        return _is_same_number(value, gold)
    return type(value) is type(gold) and bool(value == gold)


# -- programs --------------------------------------------------------------------------

_BEFORE_THE_PROGRAM = "but not copy spans of code directly.\n\n"


def program_of(entry: Entry) -> str:
    """Return the program in a question; raises ValueError if there is none."""
    _, mark, program = entry["question"].partition(_BEFORE_THE_PROGRAM)
    if not mark:
        raise ValueError("the question shows no program")
    return str(program).strip()


def _asks_for_input(entry: Entry) -> bool:
    request = "\nCan you predict a feasible input without writing any code?"
    return request in entry.get("question", "")


def digest_of(program: str) -> str:
    """Return the digest of a program as in the list of unused programs."""
    return hashlib.sha256(program.strip().encode()).hexdigest()[:12]


class _NullFile(io.TextIOBase):
    """A file that discards the output of a program."""

    def write(self, text: str) -> int:
        return len(text)


@functools.lru_cache(maxsize=1)
def _compiled(program: str) -> CodeType:
    """Return the compiled program; all answers of a group share it."""
    # `dont_inherit`, or this module's imports from `__future__` would apply.
    return compile(program, "<program>", "exec", dont_inherit=True)


def produces(program: str, arguments: Any, output: Any) -> bool:
    """Return whether a program of the library produces the shown output from an input.

    It is False if the program raises or exits. The program may take any time, and may
    end the process.
    """
    names: dict[str, Any] = {"Random": random.Random}  # as the library runs it
    null = _NullFile()
    try:
        with contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
            exec(_compiled(program), names)  # noqa: S102 - as when it made the item
            return is_same(names["main_solution"](**arguments), output)
    except KeyboardInterrupt:  # meant for this process; no program raises it
        raise
    except BaseException:  # noqa: BLE001 - a program may raise anything, and exit
        return False


def _is_right(value: Any, entry: Entry) -> bool:
    gold = json.loads(entry["answer"])
    if not _asks_for_input(entry):
        return is_same(value, gold)
    # Not by `is_same`: a program may tell 1.0 from 1, so such an input is run.
    if json.dumps(value, sort_keys=True) == json.dumps(gold, sort_keys=True):
        return True
    return produces(program_of(entry), value, entry["metadata"]["output_data"])


def _score_value(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a value of JSON; an input is scored by running the program."""
    answer = answer.strip()
    gold = entry["answer"].strip()
    if answer == gold or json.dumps(answer) == gold:  # a string without its quotes
        return 1.0
    try:
        value = read_value(answer)
    except ValueError:
        return 0.0
    if _is_right(value, entry):
        return 1.0
    return READABLE_SCORE if isinstance(value, dict) else 0.0


# -- programs that are not used --------------------------------------------------------

UNUSED = Path(__file__).with_suffix(".json")
"""Digests of unused programs by their fault. Every program of the library was run on
the inputs of twelve seeds, in three processes with different hash seeds and folders,
with two random states."""

CHANGES = "another output in another process, or at another time"
RANDOM = "random"
SLOW = "takes long"


@functools.cache
def _unused_digests(kind: str) -> frozenset[str]:
    return frozenset(json.loads(UNUSED.read_text(encoding="utf-8"))[kind])


def _is_unused(entry: Entry, kind: str) -> bool:
    return digest_of(program_of(entry)) in _unused_digests(kind)


def _is_irreproducible(entry: Entry) -> bool:
    """Return whether the program produces another output than the metadata's.

    If the question asks for an input, the gold input is read from its JSON.
    """
    metadata = entry["metadata"]
    program = program_of(entry)
    random.seed("another one than the entry was made with")
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(2**32 - 1)
    arguments = copy.deepcopy(metadata["input_data"])
    if _asks_for_input(entry):
        arguments = json.loads(entry["answer"])
    return not produces(program, arguments, metadata["output_data"])


_HARMLESS = (
    "__future__ abc array ast base64 binascii bisect calendar cmath collections copy"
    " csv dataclasses datetime decimal difflib enum fractions functools hashlib heapq"
    " io itertools json math numbers numpy operator random re statistics string"
    " struct sys textwrap time types typing unicodedata uuid warnings"
)
_HARMLESS_MODULES = frozenset(_HARMLESS.split())
"""Modules that neither evaluate text, as sympy does for numbers, nor wait, as queues
do."""

_IMPORT = re.compile(
    r"(?:^|[:;])[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([\w., \t]+))",
    re.M,
)
_RISKY_CODE = re.compile(
    r"\b(?:eval|exec|__import__|__builtins__|__globals__|__subclasses__|import_module"
    r"|[gs]etattr|delattr|attrgetter|methodcaller|get_type_hints|_getframe)\b"
    r"|\b(?:(?<!re\.)compile|globals|locals|vars|open|load|(?<!json\.)loads|FileIO"
    r"|fromfile|genfromtxt|loadtxt|memmap|sleep)\s*\("
)
"""Matches code that runs text, waits, or accesses attributes by a computed name."""


def may_evaluate_or_wait(program: str) -> bool:
    """Return whether a program might run text of its input, or wait for something."""
    for package, names in _IMPORT.findall(program):
        for name in (package or names).split(","):
            if re.split("[. ]", name.strip())[0] not in _HARMLESS_MODULES:
                return True
    return _RISKY_CODE.search(program) is not None


def _is_risky(entry: Entry) -> bool:
    return _asks_for_input(entry) and may_evaluate_or_wait(program_of(entry))


def _is_not_json(entry: Entry) -> bool:
    try:
        json.loads(entry["answer"], parse_constant=refuse_constant)
    except ValueError:
        return True
    return False


# -- the library's data ----------------------------------------------------------------


class _Program(msgspec.Struct):
    difficulty: Any = -1


@functools.cache
def _programs(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    """Fill a dataset; the library's `__init__` parses all programs for each level."""
    decode = msgspec.json.Decoder(_Program).decode
    difficulty = config.difficulty
    lines = _programs(library["get_data_file_path"]("codeio.jsonl.gz"))
    if difficulty is not None:
        lines = [line for line in lines if decode(line).difficulty == difficulty]
    if not lines:
        raise ValueError(f"no program of the file has the difficulty {difficulty}")
    type(dataset)._jsonl_data = JsonLines(lines)


CODEIO = TaskRules(
    "codeio",
    # The library's scorer computes a recursive tree edit distance of JSON values.
    guard=Guard(_why_not),
    kept_signs="\"'",
    kept_on_class="_jsonl_data",
    faster=(
        FasterFunction(
            module="reasoning_gym.code.codeio",
            name="CodeIODataset.__init__",
            digest="fe84df45919155cd",
            make=dataset_init(_fill),
        ),
    ),
    fix=ScorerFix(
        fault="Accepts only the input that the library drew, although any input with"
        " the shown output is right; scores other values by similarity: 0.999 for a"
        " number that is off by one.",
        score=_score_value,
        runs_programs=True,
    ),
    item_checks=(
        ItemCheck(
            "answer holds the address of an object, which varies between processes",
            lambda entry: " at 0x" in entry["question"] + entry["answer"],
            always=True,
        ),
        ItemCheck(
            f"program has {CHANGES}",
            lambda entry: _is_unused(entry, CHANGES),
            always=True,
        ),
        ItemCheck("program is random", lambda entry: _is_unused(entry, RANDOM)),
        ItemCheck("program takes long", lambda entry: _is_unused(entry, SLOW)),
        ItemCheck("answer holds a number that JSON does not have", _is_not_json),
        ItemCheck("program might do more with an input than compute", _is_risky),
        ItemCheck(
            "program does not produce the output of the input", _is_irreproducible
        ),
    ),
)

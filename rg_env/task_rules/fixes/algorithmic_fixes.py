"""Fixes of the category algorithmic.

Scorers that pay element by element look only as far as the gold answer goes, so that
the gold answer and a second one behind it score 1.0. Each surplus element now takes
back what one right element earns.

No fix for ab, binary_matrix, group_anagrams, palindrome_generation,
palindrome_partitioning, sentence_reordering, spiral_matrix and string_insertion: what
they pay is right or a near miss.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from itertools import chain, pairwise
from typing import Any

from rg_env.task_rules.base_scorer import digit_behind
from rg_env.task_rules.reading.talk_around_answers import is_wrapper
from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

READABLE = 0.01
"""What the library pays for an answer in the form of one."""

SAME_SIZE = 0.1
"""What the library pays for a matrix of the right size with other numbers in it."""

ASKED_DECIMALS = 2
FLOAT_ERROR = 1e-6

_JUG_MOVE = re.compile(r"(?:fill|empty) [A-Z]|pour [A-Z]->[A-Z]")


def _less_surplus(value: float, surplus: int, elements: int) -> float:
    """Take back one element's share of the credit for each surplus element."""
    return max(0.0, min(1.0, value) - surplus / max(1, elements))


def _board(text: str) -> list[list[Any]] | None:
    """Read a board as JSON; None where it is no list of lists."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return None
    return rows


def _cells(rows: list[list[Any]]) -> dict[tuple[int, int], Any]:
    return {(i, j): cell for i, row in enumerate(rows) for j, cell in enumerate(row)}


def _living_cells(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score game_of_life by its living cells, which are few.

    The library pays the share of right cells, 0.95 for an empty board. It stays where
    living cells overlap (right / living in either board) by half or more, and falls to
    nothing where they overlap by a quarter, as a crowded board does with the one that
    it was before. Cells outside the board count as wrong ones.
    """
    rows, gold_rows = _board(answer), _board(entry["answer"])
    if rows is None or gold_rows is None:
        return 0.0
    cells, gold = _cells(rows), _cells(gold_rows)
    right = len([at for at, cell in gold.items() if cells.get(at) == cell])
    value = min(library(answer), right / len(gold.keys() | cells.keys()))
    living = {at for at, cell in gold.items() if cell == 1}
    if not living:
        return value
    # Anything but 0 is a claim that the cell lives, also where it is no number.
    claimed = {at for at, cell in cells.items() if cell != 0}
    found = len([at for at in claimed & living if cells[at] == 1])
    return min(value, max(0.0, 4 * found / len(living | claimed) - 1))


def _three_boards(entry: Entry) -> str:
    """Return the right board with two wrong ones below it."""
    rows = json.loads(entry["answer"])
    return json.dumps(rows + 2 * [[1 - cell for cell in row] for row in rows])


def _each_letter_once(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score cryptarithm: of two digits for a letter, the library takes the last."""
    letters = [pair.partition("=")[0].strip() for pair in answer.split(",")]
    value = library(answer)
    return value if len(set(letters)) == len(letters) else min(READABLE, value)


def _other_digits_first(entry: Entry) -> str:
    gold: str = entry["answer"]
    others = (f"{pair[0]}={9 - int(pair[2])}" for pair in gold.split(","))
    return f"{','.join(others)},{gold}"


def _colors(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object of which every name is given once."""
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("a vertex is colored twice")
    return built


def _each_vertex_once(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score graph_color: a color for each vertex and for nothing else."""
    value = library(answer)
    if value <= READABLE:
        return value
    try:
        colors = json.loads(answer, object_pairs_hook=_colors)
    except ValueError:
        return READABLE
    vertices = {str(vertex) for vertex in entry["metadata"]["puzzle"]["vertices"]}
    whole = all(type(color) is int for color in colors.values())
    return value if whole and colors.keys() == vertices else READABLE


def _other_colors_first(entry: Entry) -> str:
    right = {str(v): c for v, c in entry["metadata"]["possible_answer"].items()}
    others = json.dumps(dict.fromkeys(right, 1))
    return f"{others[:-1]}, {json.dumps(right)[1:]}"


def _moves_of_jugs(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score jugs: a list of moves, and nothing behind a move."""
    value = library(answer)
    if value <= READABLE:
        return value
    moves = json.loads(answer)
    plain = isinstance(moves, list) and all(
        _JUG_MOVE.fullmatch(" ".join(move.split())) for move in moves
    )
    return value if plain else READABLE


def _or_another_move(entry: Entry) -> str:
    return json.dumps([f"{move} or not" for move in json.loads(entry["answer"])])


def _halts(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score game_of_life_halting by the word, which the library does not read."""
    return float(is_wrapper(answer.lower(), entry["answer"].lower()))


def _other_word(entry: Entry) -> str:
    return "False" if entry["answer"] == "True" else "True"


def _words(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score letter_jumble word by word, surplus words and lost capitals included.

    It may begin with a capital, as any sentence.
    """
    words, gold = answer.split(), entry["answer"].split()
    if words[:1] == [gold[0][:1].upper() + gold[0][1:]]:
        words[0] = gold[0]
    surplus = max(0, len(words) - len(gold))
    # The question has the capitals kept, and the library passes over them.
    other_case = sum(
        word != right and word.lower() == right.lower()
        for word, right in zip(words, gold, strict=False)
    )
    return _less_surplus(library(answer), surplus + other_case, len(gold))


def _doubled_words(entry: Entry) -> str:
    gold: str = entry["answer"]
    return gold + " zz" * len(gold.split())


def _rows(text: str) -> str:
    return "\n".join(" ".join(row.split()) for row in text.strip().split("\n"))


def _matrix(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score manipulate_matrix: credit for the matrix inside talk only."""
    gold = entry["answer"].strip()
    if _rows(answer).strip() == gold or is_wrapper(_rows(answer), gold):
        return library(answer)
    return 0.0


def _numbers(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score number_sorting: the numbers of the question, not others near them."""
    value = library(answer)
    if value == 0.0:
        return value
    given, gold = (
        [float(number) for number in json.loads(text.replace("'", '"'))]
        for text in (answer, entry["answer"])
    )
    return value if given == gold else 0.0


def _shifted_numbers(entry: Entry) -> str:
    gold = json.loads(entry["answer"].replace("'", '"'))
    return json.dumps([float(number) + 0.75 for number in gold])


def _pooled(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score pool_matrix: correct to two decimals, and nothing hides behind a `#`.

    A number with more decimals is correct to as many. A column may be written as a row.
    """
    value = 0.0 if "#" in answer else library(answer)
    if value < SAME_SIZE:
        return value
    right = entry["metadata"]["solution"]
    found = [row.split() for row in answer.split("\n") if row.strip()]
    if len(found) == 1 and {len(row) for row in right} == {1}:
        found = [[number] for number in found[0]]
    if [len(row) for row in found] != [len(row) for row in right]:
        return SAME_SIZE
    pairs = zip(chain(*found), chain(*right), strict=True)
    try:
        return 1.0 if all(_is_pooled(*pair) for pair in pairs) else SAME_SIZE
    except ValueError:
        return SAME_SIZE


def _is_pooled(written: str, right: float) -> bool:
    decimals = max(ASKED_DECIMALS, len(written.partition(".")[2]))
    return abs(float(written) - right) <= 0.5 * 10.0**-decimals + FLOAT_ERROR


def _wrong_comment(entry: Entry) -> str:
    return f"{entry['answer']} # or 7"


def _letters(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score spell_backward letter by letter, surplus letters included.

    The word as it stands has the letter in its middle right and every pair that is the
    same from both ends, 0.38 of words of three letters; so half of the letters earn
    nothing.
    """
    gold = entry["answer"]
    surplus = max(0, len(answer) - len(gold))
    return max(0.0, 2 * _less_surplus(library(answer), surplus, len(gold)) - 1)


def _doubled_letters(entry: Entry) -> str:
    gold: str = entry["answer"]
    return gold + "z" * len(gold)


def _sorted_words(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score word_sorting word by word, surplus words included."""
    gold = entry["metadata"]["sorted_words"]
    given = [word for word in re.split(r",\s*", answer) if word.strip()]
    return _less_surplus(library(answer), max(0, len(given) - len(gold)), len(gold))


def _doubled_list(entry: Entry) -> str:
    gold: str = entry["answer"]
    return gold + ", zz" * len(entry["metadata"]["sorted_words"])


def _letters_apart(word: str, other: str) -> int:
    return sum(a != b for a, b in zip(word, other, strict=True))


def _single_steps(words: list[str]) -> list[str]:
    """Return the words up to the first step that changes not exactly one letter."""
    for place, (word, step) in enumerate(pairwise(words), 1):
        if len(step) != len(word) or _letters_apart(word, step) != 1:
            return words[:place]
    return words


def _rungs(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score word_ladder: 1, or half of the share of letters brought into place.

    Steps count up to the first that is no word or changes not exactly one letter. Who
    begins elsewhere, gets no nearer or goes on behind the end has nothing.
    """
    value = library(answer)
    start, end = entry["metadata"]["start_word"], entry["metadata"]["end_word"]
    words = [word.strip() for word in answer.upper().split(",")]
    if value == 1.0 or words[0] != start:
        return value if value == 1.0 else 0.0
    steps = _single_steps(words)
    in_turn = (end[:n] + start[n:] for n in range(1, len(end) + 1))
    to_end = [word for word in dict.fromkeys(in_turn) if word != start]

    def by_way_of(place: int) -> float:
        """Return what is paid for the way to a step, back and one letter after another.

        That is halved for each word that the library does not know.
        """
        there = steps[: place + 1]
        return library(",".join([*there, *there[-2::-1], *to_end]))

    known = bisect_left(
        range(1, len(steps)), True, key=lambda place: by_way_of(place) < by_way_of(0)
    )
    left = _letters_apart(steps[known], end)
    return max(0.0, 1 - left / _letters_apart(start, end)) / 2 if left else 0.0


def _by_way_of_no_word(entry: Entry) -> str:
    """Go one step to what is no word and back, and from there the right way."""
    start = entry["metadata"]["start_word"]
    return f"{start},{start[:-1]}Q,{entry['answer']}"


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="cryptarithm",
        scorer_sha256="09fb8a2afc45aa19347a0966db4e4b0887b4f40a919f8be4f74f3e11dbeaf763",
        fault="Of two digits for one letter, takes the last.",
        proof=_other_digits_first,
        proof_pays=1.0,
        score=_each_letter_once,
    ),
    ScorerFix(
        task="game_of_life",
        scorer_sha256="a7326b26a2eb938563cb8ee0b1652cdaeb46b22ab44507b5c4d4b2f88fbcdf9e",
        fault="An empty board scores 0.9 and more, and rows below the board are not"
        " looked at.",
        proof=_three_boards,
        proof_pays=1.0,
        score=_living_cells,
    ),
    ScorerFix(
        task="game_of_life_halting",
        scorer_sha256="d194de0097bee9d5ebedd3a868b08fddeca9857377c55e50d6e35de001ecf8a6",
        fault="Any text scores 1.0, because bool() of any text is true.",
        proof=_other_word,
        proof_pays=1.0,
        score=_halts,
    ),
    ScorerFix(
        task="graph_color",
        scorer_sha256="9155b74dca15d8afe830da8fdcf145b5a343e46647b91624261a1d68cd7a448a",
        fault="Of two colors for one vertex, takes the last.",
        proof=_other_colors_first,
        proof_pays=1.0,
        score=_each_vertex_once,
    ),
    ScorerFix(
        task="jugs",
        scorer_sha256="c012156723d643fa58eb8a1a41cd4b2698aefba5ba955f8912cef11f2c7f86e8",
        fault="Whatever follows a move is ignored.",
        proof=_or_another_move,
        proof_pays=1.0,
        score=_moves_of_jugs,
    ),
    ScorerFix(
        task="letter_jumble",
        scorer_sha256="ff88ce5e01c6806cd1063955209938441ca99937007cafd3ba8659be7001fa98",
        fault="Words behind the last right one are ignored, and so are capitals.",
        proof=_doubled_words,
        proof_pays=0.99,
        score=_words,
    ),
    ScorerFix(
        task="manipulate_matrix",
        scorer_sha256="ed87437632815dbd21077417e776a8708f693b8be603884519f330290bb0b1ad",
        fault="The right answer with something behind it is paid by its length.",
        proof=digit_behind,
        proof_pays=0.5,
        score=_matrix,
    ),
    ScorerFix(
        task="number_sorting",
        scorer_sha256="3f7732ea4cbf05a9c0902407457e283937adbbf14b0bb5b212540b7455c9fb06",
        fault="Any sorted numbers within 1 of the right ones score 1.0, and so does"
        " NaN.",
        proof=_shifted_numbers,
        proof_pays=1.0,
        score=_numbers,
    ),
    ScorerFix(
        task="pool_matrix",
        scorer_sha256="b84c32177fc266accab2b9e87cac4fda950e7b9c44b3271f0e0366b68db187e2",
        fault="What follows a `#` is ignored, and numbers wrong by 1 % score 1.0.",
        proof=_wrong_comment,
        proof_pays=1.0,
        score=_pooled,
    ),
    ScorerFix(
        task="spell_backward",
        scorer_sha256="1e862479b7149349ccb68e64a83431f9268367addf40bcffaeddb4d6d37fa62e",
        fault="Letters behind the last right one are ignored, the sum can exceed 1, and"
        " the word as it stands earns 0.38 where it has three letters.",
        proof=_doubled_letters,
        proof_pays=0.7,
        score=_letters,
    ),
    ScorerFix(
        task="word_ladder",
        scorer_sha256="aad8610399afb5c1fb4d873c43102d996eca2fc663c37ca56831f552c67fde22",
        fault="Pays for steps that are no words, so that to change one letter after the"
        " other earns 0.37, and nothing for right steps that do not arrive.",
        proof=_by_way_of_no_word,
        proof_pays=0.5,
        score=_rungs,
    ),
    ScorerFix(
        task="word_sorting",
        scorer_sha256="635fe0f126391fcfc53bf8b4108dbb2c4811abf0054dc224390d52d1718c7a73",
        fault="Words behind the last right one are ignored.",
        proof=_doubled_list,
        proof_pays=1.0,
        score=_sorted_words,
    ),
)

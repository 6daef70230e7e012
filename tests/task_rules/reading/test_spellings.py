"""How answers of words, numbers and formulas are spelled for their scorer."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.reading.words import in_any_case
from rg_env.task_rules.table import rules_of

CASES = []


def case(
    task, why, spelled, same=(), gold="", question="", unwrapped=False, **metadata
):
    """Add a case: spellings to the answers that get them, and answers that stay.

    If `unwrapped`, what stands around the answers is taken off too.
    """
    entry = {"question": question, "answer": gold, "metadata": metadata}
    pairs = [(text, right) for right, texts in spelled.items() for text in texts]
    CASES.extend(
        pytest.param(
            task, entry, text, right, unwrapped, id=f"{task}: {why}-{text:.20}"
        )
        for text, right in (*pairs, *((text, text) for text in same))
    )


# -- words -----------------------------------------------------------------------------

case(
    "game_of_life_halting",
    "a verdict with which something is computed is none",
    {},
    same=["1 - 0", "True-1", "True!-1"],
    gold="True",
    question="1. Does it halt?",
)
for gold, answers in {
    "Yes": [
        *("Yes, it follows.", "yes - it logically follows", "Yes (valid)"),
        "Yes, it follows that some teachers are not whales.",
    ],
    "No": [
        *("No, it does not follow.", "No. It doesn\u2019t follow"),
        "No, it does not follow that some teachers are not whales",
    ],
}.items():
    case(
        "syllogism",
        "a verdict may be said again in words of the question and not be taken back",
        {gold: answers},
        same=[
            *("Yes, it does not follow", "No, it follows", "Yes or no", "Yes, no"),
            *("Not yes", "Yes, if pigs fly", "It follows", "Maybe yes"),
            "Yes but false",
        ],
        gold=gold,
        question="1. All engineers are whales\n2. All whales are teachers\nDoes it"
        " logically follow that:\nSome teachers are not whales?\n(Answer Yes or No)",
    )
case(
    "spell_backward",
    "letter by letter or behind an arrow",
    {
        "nolem": [
            *("melon -> nolem", "melon \u2192 n-o-l-e-m", "n-o-l-e-m", "n o l e m"),
            "n, o, l, e, m",
        ]
    },
    same=["no-lem", "n-o-l e-m", "lemon -> nolem", "melon -> nolem -> melon"],
    gold="nolem",
    word="melon",
)
SENTENCE = '"Come in," said Ann to-day.'
case(
    "sentence_reordering",
    "a sentence in its order is right whatever its punctuation",
    {
        SENTENCE: [
            *("Come in, said Ann to-day", "\u201cCome in,\u201d said Ann to-day."),
            *('"Come in" said Ann to-day!', "['Come', 'in', 'said', 'Ann', 'to-day.']"),
        ]
    },
    same=[
        *("Ann said Come in to-day", "Come in, said Ann", "Come in said Ann to day"),
        *("Come in, said Ann to+day", "Come in, said Ann today"),
        *("Come in said Ann to-day or not", "come in said Ann to-day"),
        *("~~Come in, said Ann to-day~~", "\u2260 Come in, said Ann to-day"),
        *("!Come in, said Ann to-day", "\u00acCome in, said Ann to-day"),
    ],
    gold=SENTENCE,
)
case(
    "emoji_mystery",
    "a hidden sentence is right to the letter, with its quotes or without",
    {'"Come home.': ['"Come home', "Come home", '"Come home."', "'Come home.'"]},
    same=['"Come, home.', "come home.", "Come home. Now", ""],
    gold='"Come home.',
)

case(
    "caesar_cipher",
    "a decrypted text may have punctuation",
    {
        "WHEN IT RAINS WE STAY": [
            *("When it rains, we stay.", "WHEN IT RAINS WE STAY!"),
            "When it rains; we stay",
        ]
    },
    gold="WHEN IT RAINS WE STAY",
)
for gold, spelled in {
    "Tuesday": {
        "Tuesday": ["tuesday", "It was a Tuesday"],
        "not a Tuesday": ["It was not a Tuesday"],
    },
    "14": {"14": ["14.0"]},
    "Yes": {"Yes": ["yes"]},
}.items():
    case("calendar_arithmetic", "three kinds", spelled, gold=gold, unwrapped=True)
case(
    "figlet_font",
    "a word may be presented",
    {"CLOWN": ["The word is CLOWN", "It is CLOWN", "Word: CLOWN"]},
    gold="CLOWN",
    unwrapped=True,
)
case(
    "acre",
    "the light is said in one word",
    {"on": ["ON", "The light is on", "Status: on"]},
    same=["not on"],
    gold="on",
    unwrapped=True,
)

# -- formulas --------------------------------------------------------------------------

case(
    "knights_knaves",
    "a name and its role may be joined in any way",
    {
        "Joseph is a angel, and Zoey is a devil": [
            "- Joseph is an angel\n- Zoey is a devil",
            "1. Joseph: angel\n2. Zoey: devil",
            "Joseph is an angel, while Zoey is a devil.",
            "Joseph is an angel but Zoey is a devil",
            "Joseph: angel; Zoey: devil",
            "**Joseph** - Angel\n**Zoey** - Devil",
            "Joseph \u2192 angel, Zoey \u2192 devil",
            '{"Joseph": "angel", "Zoey": "devil"}',
        ]
    },
    same=[
        *("angel: Joseph, devil: Zoey", "Joseph is an angel"),
        "Joseph is not an angel, and Zoey is a devil",
        "Joseph is an angel or a devil, and Zoey is a devil",
        *("Joseph is an angel, and Joseph is a devil", "Joseph and Zoey are angels"),
    ],
    gold="Joseph is an angel, and Zoey is a devil.",
    names=["Joseph", "Zoey"],
    knight_knave_terms={"knight": "angel", "knave": "devil"},
)
case(
    "propositional_logic",
    "what is no formula becomes none",
    {},
    same=["P, Q", "P; Q", "If P then Q", "nothing", "PQ"],
)

# -- numbers ---------------------------------------------------------------------------

case(
    "leg_counting",
    "the right number, however it is presented, and no other or hedged one",
    {
        "256": [
            *("256.0", "0256", "+256", "256/1", "2.56e2", "256 legs", "$256$ legs"),
            *("There are 256 legs.", "Total legs: 256", "**256** legs"),
            "256 legs in total",
        ]
    },
    same=[
        *("-256", "257", "256.5", "2560", "256%", "256^2", "256!", "512/2", "255+1"),
        *("256 or 257", "256, 257", "not 256", "at least 256", "256 more", "256 dozen"),
        *("256 lobsters", "256 legs or so", "half of 256", "about 256 feet"),
    ],
    gold="256",
    question="How many legs are there in total if you have 15 lobsters and 14 ducks?",
)
for task in ("leg_counting", "chain_sum"):
    case(
        task,
        "digits on two lines or in two columns are two numbers",
        {},
        same=[f"1{gap}256" for gap in ("\n", "\t", "\r\n", " \n ", "\n\n")],
        gold="1256",
        question="How many legs are there in total if you have 15 lobsters?",
    )
case(
    "lcm",
    "the question before an equals sign is no part of the answer",
    {"2660": ["LCM(76, 70) = 2660", "76,70 = 2660"]},
    same=["76*35", "76 = 70 = 2660", "LCM(76, 71) = 2660"],
    gold="2660",
    question="Find the LCM of these numbers: 76, 70",
)
case(
    "gsm_symbolic",
    "dollars may be named where they are asked for",
    {"90": ["$90", "90 dollars", "+90", "90/1", "\u2248 90"]},
    gold="90",
    question="One costs $30. How much do three cost? Do not include units.",
)
case(
    "power_function",
    "a power of ten is written with e",
    {"1.12e-15": [r"1.12 \times 10^{-15}", "1.12 x 10^-15"]},
    same=["1.12e-15 or 2", "1/2", r"\frac{1}{2}"],
    gold="1.1e-15",
)
case(
    "coin_flip",
    "a probability may be a fraction or percents",
    {
        "0.234375": ["23.4375%", r"23.4375\%", "P(X = 2) = 0.234375"],
        "0.05": ["5 %"],
        "1.00": ["100%"],
        "15/64": [r"\frac{15}{64}", "15 / 64"],
    },
    same=["23.4375", "15/64%", "15/64 or 1/2"],
    gold="0.234375",
)
FRACTIONS = [r"\frac{3}{4}", "3 / 4", r"\tfrac{3}{4}", "3\u20444"]
case(
    "dice",
    "only a reduced fraction",
    {"3/4": FRACTIONS},
    same=["6/8", "0.75", "75%", "4/3", "-3/4", "3/4 or 1/4"],
    gold="3/4",
)
case("dice", "nothing is 0/1 in lowest terms", {"0": ["0/1"]}, same=["0/5"], gold="0")
case("fraction_simplification", "any way", {"$3/4$": FRACTIONS}, gold="$3/4$")
for base, gold, answers, same in (
    (
        "base-10",
        "243",
        ["243_{10}", "(243)\u2081\u2080", "243 (base 10)"],
        ["243_{11}"],
    ),
    ("base-10", "243", [], ["24 3"]),
    ("binary", "1111", ["0b1111"], []),
    ("hexadecimal", "3d", ["0x3d"], []),
    ("binary", "11110000", ["1111 0000"], []),
    ("base-12", "b1", ["0b1"], []),
    ("base-14", "3d", [], ["3D", "0x3d"]),
):
    case(
        "base_conversion",
        f"{base} may be said again",
        {gold: answers},
        same=same,
        gold=gold,
        question=f"Now, convert the base-11 number 201 to {base}\n",
    )
case(
    "bitwise_arithmetic",
    "hexadecimal digits need no prefix where they are no decimal ones",
    {"0x3d2d": ["3d2d", "0x3D2D_{16}"], "-0x3d": ["-3D"]},
    same=["15661", "3d2d or 1", "3g"],
    gold="0x3d2d",
)
for kind, spelled, same in (
    (
        "date",
        {
            "304 days": ["304 Days", "+304 days,", "304D", "304 D days"],
            "1 days": ["1 day"],
        },
        ["67 01:04", "304 weeks", "304 days or 5 days", "304 days 05:00"],
    ),
    (
        "datetime",
        {
            "67 days, 01:04:00": ["67 Days  01:04:00", "67D 01:04:00", "67 01:04:00"],
            "67 days, 01:04": ["67D, 01:04"],
            "1 days, 01:04": ["1 day and 01:04"],
        },
        ["67 days"],
    ),
    ("time", {"06:09": ["+06:09"]}, ["06:09 or 07:09"]),
):
    case(
        "time_intervals", "a span", spelled, same=same, gold="304 days", task_type=kind
    )
for meant, answers in {
    "41": ["40.99999999999999"],
    "0.3": ["0.30000000000000004"],
    "-1178": ["-1178.0000000000002"],
    "5163.445": ["5163.4450000000001"],
    "40.9999999": ["40.9999999"],
    "0.1234567890123456": ["0.1234567890123456"],
    "12345678.5630001": ["12345678.5630001"],
}.items():
    case("decimal_chain_sum", "noise is not meant", {meant: answers}, gold=meant)
case(
    "leg_counting",
    "of equal sides, eight at most, the last is the answer",
    {
        "20": [
            *("2*4 + 3*4 = 8 + 12 = 20", "2 \u00d7 4 + 3 \u00d7 4 = 20"),
            *("40 / 2 = 20", "4*5 = 20", "4*5 = " * 8 + "20"),
        ]
    },
    same=[
        *("2*4 + 3*4 = 19 = 20", "2*4 + 4*4 = 20", "20 = 2*10", "2*10"),
        *("20 = 20 or 21", "4*5 = " * 9 + "20"),
    ],
    gold="20",
    question="how many legs are there in total?",
)
case(
    "simple_geometry",
    "the unit of an angle may stand",
    {"35": ["35\u00b0", "35 degrees", r"35^\circ", r"35^{\circ}"]},
    gold="35",
    unwrapped=True,
)
case(
    "self_reference",
    "what is counted may stand behind its number",
    {"3": ["3 solutions", "There are 3 possible solutions."]},
    gold="3",
    question="tell me the number of possible solutions: 2 of these are false",
    unwrapped=True,
)
case(
    "self_reference",
    "a word that denies a number is no unit of it",
    {},
    same=["false: 3", "3 false", "true: 3", "wrong: 3"],
    gold="3",
    question="what is the number of false statements?",
    unwrapped=True,
)


@pytest.mark.parametrize(("task", "entry", "answer", "spelled", "unwrapped"), CASES)
def test_an_answer_is_spelled_as_its_scorer_reads_it(
    task, entry, answer, spelled, unwrapped
):
    if unwrapped:
        assert ScoringRules().normalizer(task, entry)(answer) == spelled
    else:
        assert rules_of(task).notation(answer, entry) == spelled


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        *(("yes", "Yes"), ("YES", "Yes"), ("Yes", "Yes"), ("no", "no"), ("", "")),
        *(("yes no", "yes no"), ("yess", "yess")),
    ],
)
def test_only_the_right_word_is_that_word_in_any_case(answer, spelled):
    assert in_any_case(answer, {"answer": "Yes"}) == spelled


@pytest.mark.parametrize("answer", ["WHENIT RAINS WE STAY", "WHEN IT RAINS, WE"])
def test_a_decrypted_text_has_the_words_of_the_encrypted_one(answer):
    entry = {"answer": "WHEN IT RAINS WE STAY"}
    assert rules_of("caesar_cipher").notation(answer, entry) != entry["answer"]


@pytest.mark.parametrize(
    "answer",
    [
        *("(P & ~Q) -> (R | S)", "(P && !Q) => (R || S)"),
        *("(P and not Q) implies (R or S)", "(P AND NOT Q) IMPLIES (R OR S)"),
        r"(P \land \neg Q) \rightarrow (R \lor S)",
        *(r"(P \wedge \lnot Q) \to (R \vee S)", r"(P /\ ~Q) -> (R \/ S)"),
        "[P \u2227 \u00acQ] \u21d2 [R v S]",
        "\u2234 (P \u2227 \u00acQ) \u2192 (R \u2228 S)",
    ],
)
def test_a_connective_may_have_another_sign(answer):
    spelled = rules_of("propositional_logic").notation(answer, {})
    assert "".join(spelled.split()) == "(P\u2227\u00acQ)\u2192(R\u2228S)"


@pytest.mark.parametrize("sign", ["<->", "<=>", r"\leftrightarrow", "iff", "\u21d4"])
def test_an_equivalence_is_no_implication(sign):
    spelled = rules_of("propositional_logic").notation(f"P {sign} Q", {})
    assert "".join(spelled.split()) == "P\u2194Q"

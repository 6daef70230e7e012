"""Examples of arc_1d that show two rules, and the rules that move cells."""

import pytest

from rg_env.library import datasets
from rg_env.task_rules.arc import results
from rg_env.task_rules.table import fault_of


def item(*pairs):
    """Make an entry of pairs of rows; the last pair is the question and its answer."""
    rows = [[[int(cell) for cell in row] for row in pair.split()] for pair in pairs]
    *shown, last = [{"input": row, "output": made} for row, made in rows]
    return {"metadata": {"train_examples": shown, "test_example": last}}


SHOWN = """
    2 rules: 00034 34000, 00051 51000, 00067 67000, 00008 08000
    2 rules: 00660 06600, 03300 33000, 07000 70000, 60006 00066
    2 rules: 06600 00066, 66000 00660, 77000 00770, 30000 03000
    2 rules: 0033300 3330000, 0005550 0555000, 0044400 4440000, 8800088 0008888
    2 rules: 00331 00331, 13300 13300, 33010 03310, 30001 03001
    2 rules: 20777 20777, 02666 02666, 82000 82000, 99902 09992
    1 rule : 00034 03400, 00510 05100, 00067 06700, 00008 00080
    1 rule : 06060 66000, 03003 33000, 00707 77000, 60006 66000
    1 rule : 12000 21000, 10200 21000, 02010 21000, 00102 21000
"""
"""How many rules pairs of rows show; the last pair is the question and its answer."""


@pytest.mark.parametrize("row", SHOWN.strip().splitlines())
def test_an_item_is_used_if_all_rules_that_fit_give_the_same_row(row):
    rules, pairs = row.split(":")
    is_faulty = fault_of("arc_1d", item(*pairs.split(", "))) is not None
    assert is_faulty == ("rules" in rules)


MOVING = ("move_", "gravity_", "block_touch_dot", "reflect_block_")
AROUND_DOT = "reflect_block_around_dot"


@pytest.mark.slow
def test_every_rule_that_moves_cells_is_the_library_s():
    seen = set()
    for seed in range(50_000, 50_600):
        entry = datasets.make_entry("arc_1d", {"max_size": 25}, seed, checked=False)
        metadata = entry["metadata"]
        name = metadata["task_name"]
        if name.startswith(MOVING) and name != AROUND_DOT:
            rows = [*metadata["train_examples"], metadata["test_example"]]
            made = [list(results(tuple(row["input"]))) for row in rows]
            right = tuple(tuple(row["output"]) for row in rows)
            seen.add(name)
            assert right in zip(*made, strict=True), f"{name}, seed {seed}"
    assert len(seen) == 50

"""Files for trainers: what is in them, what is left out, and who can load them."""

import itertools
import json
from collections import Counter

import pytest
import yaml

from rg_env import Item, Tasks, score
from rg_env.adapters import dataset_export
from rg_env.errors import SettingError
from rg_env.run.group import Group
from rg_env.stream.item import ItemMaker

pytestmark = pytest.mark.usefixtures("own_pool")

FORMS = ["jsonl", "parquet"]
FEW = {"gcd": {"min_numbers": 2, "max_numbers": 2, "min_value": 1, "max_value": 4}}
"""Parameters with 16 questions."""

TALK = [{"role": "system", "content": "s"}, {"role": "user", "content": "2 + 2?"}]
TRAINED = {"item_id": "gcd", "task": "gcd", "seed": 7, "level": 0.5, "params": {}}
EVALUATED = {"task": "gcd", "seed": 2**31 + 7, "params": {}, "score": 1.0}
EVALUATED |= {"outcome": "right", "completion": 0, "question": "q"}
PUBLISHED = {
    "name": "gcd",
    "config": {"size": 50, "seed": 45},
    "results": [
        {"question": "q", "completions": [{"full_model_response": "t", "score": 1.0}]}
    ],
}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "x"


def rows_of(folder, split="train"):
    """Return the rows of a split, of either form."""
    lines = folder / f"{split}.jsonl"
    if lines.exists():
        return [json.loads(line) for line in lines.read_text().splitlines()]
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(folder / f"{split}.parquet").to_pylist()


def card_of(folder):
    """Return the head of a card, and what it says of how the rows were made."""
    _, head, text = (folder / "README.md").read_text().split("---\n", 2)
    indented = [line for line in text.splitlines() if line.startswith("    ")]
    return yaml.safe_load(head), yaml.safe_load("\n".join(indented))


def loaded(folder, cache):
    datasets = pytest.importorskip("datasets")
    return datasets.load_dataset(str(folder), cache_dir=str(cache))


# -- items -----------------------------------------------------------------------------


def export_items(out, tasks, number, kind="items", form="jsonl", each=2, level=None):
    with dataset_export.new_export(out, kind, form) as export:
        held_out = tasks.evaluation(each, level=level)
        new = dataset_export.new_items(tasks, held_out, export.left_out)
        for split, items in (
            ("test", held_out),
            ("train", itertools.islice(new, number)),
        ):
            rows = dataset_export.item_rows(tasks, items)
            rows = dataset_export.verl_rows(split, rows) if kind == "verl" else rows
            export.write(split, rows)
    return export


@pytest.mark.processes
def test_items_are_those_of_the_stream_and_of_the_evaluation(out):
    chosen = ("gcd", "chain_sum")
    export_items(out, Tasks(*chosen, levels="random"), 12)
    tasks = Tasks(*chosen, levels="random")
    expected = {"train": [next(tasks) for _ in range(12)], "test": tasks.evaluation(2)}
    for split, items in expected.items():
        rows = rows_of(out, split)
        assert [Item.from_json(row["item"]) for row in rows] == items
        for number, (row, item) in enumerate(zip(rows, items, strict=True)):
            names = ("task", "seed", "level", "question", "gold")
            assert [row[n] for n in names] == [getattr(item, n) for n in names]
            assert (row["number"], row["prompt"]) == (number, item.messages)
            assert row["category"] in ("arithmetic", "algebra")


@pytest.mark.processes
def test_draws_without_an_item_are_counted(monkeypatch):
    make = ItemMaker.make

    async def odd(maker, pool, task, attempts):
        item = await make(maker, pool, task, attempts)
        return None if item.index % 8 < 4 else item

    monkeypatch.setattr(ItemMaker, "make", odd)
    tasks, left_out = Tasks("gcd", levels="random"), Counter()
    items = list(itertools.islice(dataset_export.new_items(tasks, [], left_out), 8))
    assert [item.index for item in items] == [4, 5, 6, 7, 12, 13, 14, 15]
    assert left_out == {"draws without an item": 8}


@pytest.mark.processes
def test_no_question_is_trained_on_twice_or_evaluated_on(out, monkeypatch):
    monkeypatch.setattr(dataset_export, "MAX_REPEATS_IN_A_ROW", 100)
    export = export_items(out, Tasks("gcd", params=FEW), 1000, each=4)
    train = [row["question"] for row in rows_of(out)]
    test = {row["question"] for row in rows_of(out, "test")}
    assert len(set(train)) == len(train) == 16 - len(test)
    assert not test & set(train)
    left_out = card_of(out)[1]["left_out"]
    assert left_out == dict(+export.left_out)
    assert left_out.keys() == {"questions of evaluation", "questions that came again"}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("kind", "form"), [("items", "jsonl"), ("items", "parquet"), ("verl", "parquet")]
)
def test_items_are_loaded_as_they_are_with_a_level_in_one_split_alone(
    tmp_path, out, kind, form
):
    pytest.importorskip("datasets")
    export_items(out, Tasks("gcd"), 5, kind, form, level=0.5)
    splits = loaded(out, tmp_path)
    assert {split: len(rows) for split, rows in splits.items()} == {
        "train": 5,
        "test": 2,
    }
    for split, level in (("train", None), ("test", 0.5)):
        rows = list(splits[split])
        assert rows == rows_of(out, split)
        assert {row.get("extra_info", row)["level"] for row in rows} == {level}


# -- the folder ------------------------------------------------------------------------


ROW = {"messages": TALK, "score": 1.0, "task": "gcd", "level": None, "item": None}


@pytest.mark.parametrize("form", FORMS)
def test_datasets_loads_an_export_with_other_rows_not_the_older_one(tmp_path, form):
    pytest.importorskip("datasets")
    for name, scores in (("a", [1.0]), ("b", [0.5]), ("c", [0.5, 1.0])):
        with dataset_export.new_export(tmp_path / name / "x", "sft", form) as export:
            export.write("train", [ROW | {"score": score} for score in scores])
        rows = loaded(tmp_path / name / "x", tmp_path / "cache")["train"]
        assert rows["score"][:] == scores


def test_the_card_has_the_files_by_split_and_how_they_were_made(out):
    how = {"command": "export sft x"}
    with dataset_export.new_export(out, "sft", how=how) as export:
        export.write("train", [ROW, ROW])
    head, card = card_of(out)
    files_of_splits = [{"split": "train", "path": "train.jsonl"}]
    assert head["configs"][0]["data_files"] == files_of_splits
    assert card["command"] == "export sft x"
    assert card["rows"] == {"train": {"gcd": 2}}


# -- saved completions -----------------------------------------------------------------


def group(*rollouts, question="2 + 2?", **changes):
    """Return a dumped group; each rollout is its text, score and what differs."""
    asked = [TALK[0], {"role": "user", "content": question}]
    found = [
        {
            "conversation": [*asked, {"role": "assistant", "content": text}],
            "score": value,
            "outcome": "right" if value == 1.0 else "partial",
            "finish_reason": "stop",
            **dict(*more),
        }
        for text, value, *more in rollouts
    ]
    return TRAINED | {"rollouts": found} | changes


def exported(folder, *lines, least=1.0, most=4, form="jsonl", **how):
    """Export lines; return the rows and what is left out."""
    sources = pytest.importorskip("rg_env.results.sources", exc_type=ImportError)
    (folder / "lines.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in lines))
    read = sources.Sources(sources.find_files([str(folder / "lines.jsonl")]))
    with dataset_export.new_export(folder / "x", "sft", form) as export:
        samples = dataset_export.select_usable(read.samples(), export.left_out, **how)
        rows = dataset_export.sft_rows(samples, least, most, export.left_out)
        export.write("train", rows)
    return rows_of(folder / "x"), dict(+export.left_out)


def texts(rows):
    return [row["messages"][-1]["content"] for row in rows]


def test_conversations_are_those_with_a_high_score_the_best_first(tmp_path):
    of_one = group(("a", 0.4), ("b", 0.5), ("c", 1.0), ("d", 0.9), ("e", 0.9))
    other = group(("f", 0.1), ("g", 0.5), question="3 + 3?")
    rows, left_out = exported(tmp_path, of_one, other, least=0.5, most=3)
    assert texts(rows) == ["c", "d", "e", "g"]
    assert rows[0]["messages"][:-1] == TALK
    assert [row["score"] for row in rows] == [1.0, 0.9, 0.9, 0.5]
    assert left_out == {"completions that were not chosen": 3}


def test_a_completion_without_a_score_or_cut_off_or_seen_before_is_left_out(tmp_path):
    cut = {"finish_reason": "length"}
    line = group(("a", 1.0), ("b", 0.0), ("c", None), ("d", 1.0, cut), ("", 1.0))
    rows, left_out = exported(tmp_path, line, line, least=0.5)
    assert texts(rows) == ["a"]
    assert left_out == {
        "completions without a score": 2,
        "completions that were cut off": 2,
        "completions without a text or question": 2,
        "completions that came again": 2,
        "completions that were not chosen": 1,
    }


@pytest.mark.parametrize(
    "line", [EVALUATED, PUBLISHED, EVALUATED | {"seed": 45, "preset": "rg-easy"}]
)
def test_completions_of_evaluation_items_are_refused_unless_asked_for(tmp_path, line):
    talk = [*TALK, {"role": "assistant", "content": "t"}]
    line = line if line is PUBLISHED else line | {"messages": talk}
    with pytest.raises(SettingError, match=r"lines.jsonl, 2.*--with_evaluation"):
        exported(tmp_path, group(("a", 1.0)), line)
    rows, _ = exported(tmp_path, group(("a", 1.0)), line, with_evaluation=True)
    assert texts(rows) == ["a", "t"]


@pytest.mark.processes
def test_the_item_of_a_row_scores_its_completion_again(tmp_path):
    item = next(Tasks("gcd", levels="random", partial_credit=False))
    talk = [*item.messages, {"role": "assistant", "content": f"<answer>{item.gold}"}]
    talk[-1]["content"] += "</answer>"
    line = {"task": "gcd", "score": 1.0, "messages": talk}
    (row,), _ = exported(tmp_path, line | Group(item, dataset=item).origin)
    assert row["item"] and row["level"] == item.level
    found = Item.from_json(row["item"])
    assert found.messages == row["messages"][:-1]
    assert found.partial_credit is False
    (result,) = score(found, [row["messages"][-1]["content"]])
    assert result.value == row["score"]


@pytest.mark.processes
@pytest.mark.parametrize("change", [{"seed": None}, {"level": 7}])
def test_a_completion_whose_item_nothing_makes_again_has_none(tmp_path, change):
    (row,), _ = exported(tmp_path, group(("a", 1.0), **change))
    assert (row["item"], row["level"]) == (None, None)


@pytest.mark.parametrize("form", FORMS)
def test_completions_are_loaded_as_they_are_lone_surrogates_included(
    tmp_path, out, form
):
    pytest.importorskip("datasets")
    line = group(("a\ud800 \U0001f600\n", 1.0), ("b", 0.0))
    rows, _ = exported(tmp_path, line, form=form)
    assert list(loaded(out, tmp_path)["train"]) == rows
    assert texts(rows) == ["a? \U0001f600\n"]

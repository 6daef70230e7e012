"""Saved completions are read from files of every kind, and from damaged ones."""

import json

import pytest

from rg_env.group_encoding import encode_for_file
from rg_env.results.sources import NEEDED, Sources, find_files
from tests.support import published
from tests.support.reported import group, rollout, write_lines

TEXT = "<answer>4</answer>"
CUT = rollout(TEXT, 1.0, answer="4", finish_reason="length", question="2 + 2?")
DUMPED = group(CUT, CUT, task="sums")
TALK = DUMPED["rollouts"][0]["conversation"]
ORIGIN = {name: DUMPED[name] for name in ("task", "seed", "level", "params")}
ROW = {
    **ORIGIN,
    "tokens": [[1]],
    "scores": [0.5],
    "task_scores": [1.0],
    "outcomes": ["right"],
    "answers": ["4"],
    "messages": [TALK],
}
EVALUATED = {
    **ORIGIN,
    "question": "2 + 2?",
    "answer": "4",
    "score": 1.0,
    "outcome": "right",
    "messages": TALK,
}
OWN = {"task": "sums", "seed": 7, "params": {"a": 1}, "text": "<answer>4</answer>"}


def read(path):
    sources = Sources(find_files([str(path)]))
    return list(sources.samples()), sources


def lines(path, *values):
    return write_lines(path, values)


@pytest.mark.parametrize("line", [DUMPED, ROW, EVALUATED])
def test_lines_of_ours_are_read_with_item_text_and_score(tmp_path, line):
    samples, _ = read(lines(tmp_path / "x.jsonl", line))
    for sample in samples:
        assert sample.item == ("sums", "2 + 2?")
        assert (sample.score, sample.outcome) == (1.0, "right")
        row = sample.row
        assert (row["seed"], row["answer"], row["completion"]) == (7, "4", TEXT)
        assert row["params"] == ORIGIN["params"]


def test_each_rollout_of_a_dumped_group_is_a_sample_with_its_place(tmp_path):
    samples, _ = read(lines(tmp_path / "x.jsonl", DUMPED, "", DUMPED))
    places = [sample.row["place"] for sample in samples]
    assert places == ["1.1", "1.2", "3.1", "3.2"]
    assert all(sample.is_truncated for sample in samples)


def test_a_line_of_somebody_needs_a_task_what_makes_its_item_and_the_text(tmp_path):
    asked = {"task": "sums", "question": "2 + 2?", "text": "4", "params": {"a": 1}}
    (seeded, unknown), _ = read(lines(tmp_path / "x.jsonl", OWN, asked))
    assert (seeded.score, seeded.row["params"]) == (None, {"a": 1})
    assert (seeded.row["seed"], "seed" in unknown.row) == (7, False)


def test_a_sample_without_a_category_is_of_the_library_an_own_task_or_other(tmp_path):
    of_original = {"item_id": "sums", "rollouts": DUMPED["rollouts"]}
    groups = [DUMPED, ROW, DUMPED | {"task": "gcd"}, of_original]
    groups += [OWN, OWN | {"task": "gcd"}, OWN | {"category": "games"}]
    samples, _ = read(lines(tmp_path / "x.jsonl", *groups))
    found = [sample.category for sample in samples]
    of_groups = ["own"] * 3 + ["arithmetic"] * 2 + ["other"] * 2
    assert found == [*of_groups, "other", "arithmetic", "games"]


def test_a_published_file_is_read_whatever_its_name_and_place(tmp_path):
    entries = [{"question": "q", "answer": "4"}, {"question": "r", "answer": "5"}]
    found = published.document(
        "sums", "arithmetic", {"a": 1}, entries, lambda place: ["right", "untagged"]
    )
    found["results"][1]["completions"][0] |= {"score": 0.0, "error": "ord() expected"}
    path = published.write(tmp_path, "model_1", found)
    samples, _ = read(path)
    outcomes = [sample.outcome for sample in samples]
    assert outcomes == ["right", "no_answer", "scorer_error", "no_answer"]
    assert [s.is_answered for s in samples] == [True, False] * 2
    assert [s.row["index"] for s in samples] == [0, 0, 1, 1]
    first, *_ = samples
    assert (first.score, first.category, first.row["run"]) == (
        1,
        "arithmetic",
        "model_1",
    )
    assert first.row["dataset"] == {"size": 50, "seed": 45, "a": 1}
    in_one_line = lines(tmp_path / "anything", found)
    assert len(read(in_one_line)[0]) == 4


DEEP = "[" * 100_000 + "]" * 100_000
DAMAGED = ['{"task": "sums", "tex', "\x00\x01", DEEP, '{"seed": ' + "9" * 5000 + "}"]
FOREIGN = [
    [1, 2],
    "3",
    {"task": 5, "text": "4"},
    {"task": "sums"},
    {"results": [{"question": "q"}]},
    {"task": "sums", "rollouts": [None]},
    {**ROW, "scores": [1.0, 2.0]},
    {**EVALUATED, "answer": [4]},
    {**EVALUATED, "task": "\ud800"},
]


@pytest.mark.parametrize("place", ["first", "last"])
def test_damaged_and_foreign_lines_are_counted_and_named_once(tmp_path, place):
    bad = [*DAMAGED, *FOREIGN]
    both = [*bad, OWN] if place == "first" else [OWN, *bad]
    path = lines(tmp_path / "x.jsonl", *both)
    samples, sources = read(path)
    assert len(samples) == 1
    assert sources.unread == {"damaged": len(DAMAGED), "foreign": len(FOREIGN)}
    first = 1 if place == "first" else 2
    assert sources.reasons() == [
        f"damaged lines or files: 4, the first: {path}, line {first}",
        f"foreign lines or files: 9, the first: {path}, line {first + 4}{NEEDED}",
    ]


@pytest.mark.parametrize(
    "score", ["NaN", "1e999", "-1", "59.42", '"1"', "true", "null"]
)
def test_a_score_that_is_none_is_no_score(tmp_path, score):
    text = json.dumps(EVALUATED).replace('"score": 1.0', f'"score": {score}')
    (sample,), _ = read(lines(tmp_path / "x.jsonl", text))
    assert sample.score is None
    assert json.loads(encode_for_file(sample.row))["task"] == "sums"


def test_a_torn_line_at_the_end_of_a_file_being_written_is_no_damage(tmp_path):
    path = tmp_path / "rollouts.jsonl.part"
    path.write_text(json.dumps(DUMPED) + "\n" + json.dumps(DUMPED)[:50])
    samples, sources = read(tmp_path)
    assert len(samples) == 2
    assert not sources.unread


def test_a_folder_is_read_without_what_is_no_rollout_the_files_of_one_name_together(
    tmp_path,
):
    for run in ("step-1000", "step-200"):
        for task in ("x", "y"):
            lines(tmp_path / run / f"{task}.json", OWN)
        lines(tmp_path / run / "metrics.json", "{}")
    others = ("notes.txt", "env_checkpoints/step-3.json", "checkpoints/history.jsonl")
    for name in (*others, "policy/config.json", "policy/x.json"):
        lines(tmp_path / name, OWN)
    found = [(path.name, path.parent.name) for path in find_files([str(tmp_path)])]
    runs = ("step-200", "step-1000")
    assert found == [(f"{task}.json", run) for task in "xy" for run in runs]

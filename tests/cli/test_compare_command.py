"""`compare`: results of any kind side by side, and a published mean."""

from __future__ import annotations

import json

import pytest

from rg_env.cli.main import main
from tests.support import published
from tests.support.reported import write_lines

ENTRIES = [{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(10)]


def sums(folder, run, ways, task="chain_sum", entries=ENTRIES):
    document = published.document(
        task, "arithmetic", published.config_of(), entries, ways
    )
    published.write(folder, run, document)
    return document


def compared(capsys, *argv):
    assert main(None, ["compare", *map(str, argv)]) == 0
    return capsys.readouterr().out


def numbers(capsys, *argv):
    return json.loads(compared(capsys, *argv, "--json"))


def samples_file(path, *scores, **more):
    """Write samples of `evaluate` to the items of `ENTRIES`."""
    rows = [
        {
            "task": "chain_sum",
            "category": "arithmetic",
            "question": ENTRIES[place]["question"],
            "answer": "4",
            "score": score,
            "outcome": "right" if score == 1.0 else "wrong",
            "finish_reason": "stop",
            **more,
        }
        for place, score in enumerate(scores)
    ]
    return write_lines(path, rows)


def test_a_published_mean_is_recomputed_from_its_completions(capsys, tmp_path):
    written = ["right", "formatted", "twice", "empty"]
    document = sums(tmp_path, "run", lambda n: [written[n * k % 4] for k in (1, 2, 3)])
    (result,) = numbers(capsys, tmp_path / "run")["results"]
    mean = pytest.approx(document["average_mean_score"], abs=5e-5)
    assert result["task"]["chain_sum"]["by_item"]["mean"] == mean


def test_each_run_of_a_folder_is_compared_with_the_first(capsys, tmp_path):
    for task, way in {"chain_sum": "right", "gcd": "wrong"}.items():
        sums(tmp_path, "model_a", lambda n, way=way: [way], task)
        sums(tmp_path, "model_b", lambda n: ["right"] if n < 4 else ["wrong"], task)
    output = numbers(capsys, tmp_path)
    first, second = (each["name"] for each in output["results"])
    assert (first, second) == (f"{tmp_path}: model_a", f"{tmp_path}: model_b")
    (difference,) = output["differences"]
    assert (difference["of"], difference["less"]) == (second, first)
    assert difference["all"]["by_item"]["mean"] == pytest.approx(-0.1)
    assert difference["all"]["by_item"]["samples"] == 20
    tasks = {task: pair["by_item"]["mean"] for task, pair in difference["task"].items()}
    assert tasks == {"chain_sum": -0.6, "gcd": 0.4}


def test_our_result_is_paired_with_a_published_one_by_question(capsys, tmp_path):
    sums(tmp_path / "published", "model", lambda n: ["wrong"])
    ours = samples_file(tmp_path / "samples.jsonl", 1.0, 1.0, 0.0, None)
    (difference,) = numbers(capsys, tmp_path / "published", ours)["differences"]
    assert difference["all"]["by_item"]["mean"] == pytest.approx(2 / 3)
    assert difference["all"]["by_item"]["samples"] == 3


def test_the_table_has_all_first_then_categories_and_tasks_on_request(capsys, tmp_path):
    a = samples_file(tmp_path / "a.jsonl", 1.0, 0.0, None)
    b = samples_file(tmp_path / "b.jsonl", 1.0, 1.0, 1.0)
    printed = compared(capsys, a, b)
    rows = [line.split() for line in printed.splitlines()]
    assert ["1", "2", "1", "0.500"] in [row[:4] for row in rows]
    first, second = (row for row in rows if row[-1:] == ["(2)"])
    assert first[:4] == ["all", "0.500", "1.000", "0.500"]
    assert second[:4] == ["arithmetic", "0.500", "1.000", "0.500"]
    assert "chain_sum" not in printed
    assert "chain_sum" in compared(capsys, a, b, "--tasks")


def test_all_pairs_of_results_are_compared_on_request(capsys, tmp_path):
    files = [samples_file(tmp_path / f"{n}.jsonl", 1.0, 0.0) for n in "abc"]
    assert len(numbers(capsys, *files)["differences"]) == 2
    assert len(numbers(capsys, *files, "--pairs")["differences"]) == 3
    rows = [line.split() for line in compared(capsys, *files, "--pairs").splitlines()]
    assert rows.count(["1", "2", "3", "2-1", "3-1", "3-2"]) == 1


@pytest.mark.parametrize(
    ("score", "mean"), [("saved", 1.0), ("library", 0.5), ("ours", 0.0), (None, 0.0)]
)
def test_each_score_of_a_rescored_file_can_be_compared(capsys, tmp_path, score, mean):
    options = [] if score is None else ["--score", score]
    more = {"scores": {"saved": 1.0, "library": 0.5, "ours": 0.0}}
    more |= {"run": "model", "source": "f", "place": "1"}
    path = samples_file(tmp_path / "out.jsonl", 0.0, 0.0, None, **more)
    (result,) = numbers(capsys, path, *options)["results"]
    assert result["all"]["by_item"]["mean"] == mean
    assert result["all"]["failed"] == 1


@pytest.mark.parametrize(
    ("argv", "printed"),
    [
        (["nowhere"], "no such file"),
        (["none.jsonl"], "none.jsonl: no completion has a score"),
        (["foreign.json"], "no completion in foreign.json: foreign lines or files: 1"),
        (["a.jsonl", "--score", "saved"], "saved: a.jsonl has a sample without it"),
        (["b.jsonl", "--score", "saved"], "saved: b.jsonl has a sample without it"),
    ],
)
def test_wrong_input_ends_with_status_2_and_a_sentence(
    capsys, tmp_path, monkeypatch, argv, printed
):
    monkeypatch.chdir(tmp_path)
    samples_file(tmp_path / "a.jsonl", 1.0)
    samples_file(tmp_path / "b.jsonl", 1.0, scores={"library": 1.0})
    (tmp_path / "foreign.json").write_text('{"model": "m"}')
    none = {"task": "gcd", "seed": 1, "params": {}, "completion": "4"}
    (tmp_path / "none.jsonl").write_text(json.dumps(none))
    assert main(None, ["compare", *argv]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert printed in output.err.splitlines()[-1]

"""A result becomes a log of Inspect, where its package is installed."""

from __future__ import annotations

import importlib.util
import json

import pytest

from rg_env.errors import SettingError
from rg_env.evaluation.inspect_log import PACKAGE, check_installed, log_of, write
from rg_env.evaluation.samples import Sample

is_installed = importlib.util.find_spec(PACKAGE) is not None


def samples():
    row = {
        "completion": "So <answer>4</answer> \ud800",
        "answer": "4",
        "gold_answer": 4,
        "finish_reason": "length",
        "seed": 7,
    }
    return [
        Sample("sums", "arithmetic", "2 + 2?", 1.0, "right", row=row),
        Sample("sums", "arithmetic", "2 + 2?", 0.0, "wrong", row={"answer": "5"}),
        Sample("sums", "arithmetic", "1 + 2?", None, "request_failed"),
    ]


def test_completions_of_one_item_are_epochs_of_one_sample():
    found = log_of("model", samples())
    places = [(each["id"], each["epoch"]) for each in found["samples"]]
    assert places == [("sums-1", 1), ("sums-1", 2), ("sums-2", 1)]
    assert found["eval"]["config"] == {"epochs": 2}


def test_a_completion_without_a_score_has_none_there():
    found = log_of("model", samples())
    values = [s["scores"].get("reasoning_gym") for s in found["samples"]]
    assert [value and value["value"] for value in values] == [1.0, 0.0, None]
    (score,) = found["results"]["scores"]
    assert score["metrics"]["mean"]["value"] == 0.5


def test_any_text_can_be_encoded():
    json.dumps(log_of("\ud800", samples()), ensure_ascii=False).encode()


def test_without_the_package_it_is_refused_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match="inspect_ai is not installed"):
        check_installed(tmp_path / "x.eval")


def test_a_file_that_is_there_is_not_written_over(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    path = tmp_path / "x.eval"
    path.touch()
    with pytest.raises(SettingError, match="exists"):
        check_installed(path)


@pytest.mark.skipif(not is_installed, reason=f"{PACKAGE} is not installed")
def test_inspect_reads_the_log_back(tmp_path):
    from inspect_ai.log import read_eval_log

    write(tmp_path / "x.eval", "model", samples())
    log = read_eval_log(str(tmp_path / "x.eval"))
    assert (log.status, log.eval.model) == ("success", "model")
    first = log.samples[0]
    assert first.scores["reasoning_gym"].value == 1.0
    assert first.output.completion.startswith("So <answer>4</answer>")
    assert first.output.stop_reason == "max_tokens"
    assert (first.target, first.metadata["seed"]) == ("4", 7)
    assert log.results.scores[0].metrics["mean"].value == 0.5

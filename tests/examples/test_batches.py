"""Batches as the real Atropos API hands them out."""

import json
from unittest.mock import Mock

import pytest

from examples.trainer.batches import MASKED, BatchShape, BatchSource, read_group
from examples.trainer.policy import TrainingError
from examples.trainer.training_loop import EndedError
from tests.support.real_api import ENVIRONMENT, SIZE, RealApi, group

SHAPE = BatchShape(group_size=SIZE, groups=1, max_token_len=256)


def ends_after(times):
    """Return what ends the waiting when it was called so often."""
    return Mock(side_effect=[*[None] * times, EndedError])


@pytest.fixture
def api(api_url):
    return RealApi(api_url)


@pytest.fixture
def source(api):
    source = BatchSource(api.url, SHAPE, check=ends_after(4))
    with pytest.raises(EndedError):
        source.next_batch(0)
    source.check = lambda: None
    return source


def test_a_group_arrives_as_it_was_sent(api, source):
    sent = {
        **group(),
        "generation_params": {"temperature": 0.5},
        "overrides": [{}, {"set_advantage_to_zero": True}],
    }
    api.query("POST", "/scored_data", sent)
    (got,) = source.next_batch(0)
    assert got.tokens == sent["tokens"]
    assert got.scores.tolist() == sent["scores"]
    assert got.temperature == 0.5
    assert got.has_zero_advantage.tolist() == [False, True]
    for mask, logprobs, *row in zip(
        got.trained,
        got.logprobs,
        sent["masks"],
        sent["inference_logprobs"],
        strict=True,
    ):
        assert mask.tolist() == [value != MASKED for value in row[0]]
        assert logprobs[mask] == pytest.approx([v for v in row[1] if v <= 0])


def test_an_api_that_another_trainer_has_is_refused(api):
    api.start_trainer(batch_size=4 * SIZE)
    with pytest.raises(TrainingError, match="another trainer"):
        BatchSource(api.url, SHAPE).next_batch(0)


def test_an_api_that_was_started_anew_is_registered_at_again(api, source, caplog):
    api.forget()
    source.check = ends_after(6)
    with pytest.raises(EndedError):
        source.next_batch(5)
    assert "started anew" in caplog.text
    assert api.query("POST", "/register-env", ENVIRONMENT)["starting_step"] == 5


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"inference_logprobs": None}, "inference_logprobs"),
        ({"scores": [0.0]}, "length"),
        ({"masks": [[1]] * SIZE}, "length"),
        ({"scores": [0.0, float("nan")]}, "finite"),
        ({"generation_params": {"temperature": 0}}, "temperature 0"),
    ],
)
def test_a_group_that_cannot_be_trained_on_is_refused(changes, reason):
    sent = json.loads(json.dumps({**group(), **changes}))
    with pytest.raises(TrainingError, match=reason):
        read_group(sent)

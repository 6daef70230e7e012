"""Batches as the real Atropos API hands them out."""

import json
import threading
import time

import numpy as np
import pytest
from real_api import SIZE, RealApi, group

from examples.train_small.batches import (
    MASKED,
    BatchShape,
    BatchSource,
    NoBatches,
    read_group,
)

SHAPE = BatchShape(group_size=SIZE, groups=1, max_token_len=256, steps=5)


@pytest.fixture
def api(api_url, tmp_path):
    return RealApi(api_url, tmp_path)


@pytest.fixture
def source(api):
    source = BatchSource(api.url)
    source.register(SHAPE)
    return source


def send(api, **changes):
    api.ask("POST", "/scored_data", {**group(), **changes})


def test_a_group_arrives_as_it_was_sent(api, source):
    send(api)
    (got,) = source.next_batch()
    sent = group()
    assert got.tokens == sent["tokens"]
    assert got.scores.tolist() == sent["scores"]
    for mask, logprobs, *row in zip(
        got.trained,
        got.logprobs,
        sent["masks"],
        sent["inference_logprobs"],
        strict=True,
    ):
        assert mask.tolist() == [value != MASKED for value in row[0]]
        assert logprobs[mask].tolist() == [v for v in row[1] if v <= 0]


def test_an_override_of_the_advantage_arrives(api, source):
    send(api, overrides=[{}, {"set_advantage_to_zero": True}])
    (got,) = source.next_batch()
    assert got.has_zero_advantage.tolist() == [False, True]


def test_it_waits_for_a_batch(api, source):
    sender = threading.Timer(0.3, send, [api])
    sender.start()
    assert len(source.next_batch()) == 1
    sender.join()


def test_what_makes_the_groups_may_end_the_waiting(source):
    class Ended(Exception):
        pass

    def check():
        raise Ended

    source.check = check
    with pytest.raises(Ended):
        source.next_batch()


def test_a_batch_that_never_comes_is_not_waited_for_without_end(api, source):
    patient = BatchSource(api.url, longest_wait_s=0.2)
    with pytest.raises(NoBatches, match="no batch came"):
        patient.next_batch()


def test_an_api_that_another_trainer_has_is_refused(api):
    api.start_trainer(batch_size=4 * SIZE)
    with pytest.raises(NoBatches, match="another trainer"):
        BatchSource(api.url).register(SHAPE)


def test_an_api_that_was_started_anew_is_said(api, source):
    api.forget()
    with pytest.raises(NoBatches, match=r"started anew|failed"):
        BatchSource(api.url, give_up_s=0.5).next_batch()


def test_an_api_that_is_not_there_is_said_in_time():
    began = time.monotonic()
    with pytest.raises(NoBatches, match="see the log"):
        BatchSource("http://127.0.0.1:9", give_up_s=0.5).register(SHAPE)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"inference_logprobs": None}, "inference_logprobs"),
        ({"scores": [0.0]}, "length"),
        ({"masks": [[1]] * SIZE}, "length"),
        ({"scores": [0.0, float("nan")]}, "finite"),
    ],
)
def test_a_group_that_cannot_be_trained_on_is_refused(changes, reason):
    sent = json.loads(json.dumps({**group(), **changes}))
    with pytest.raises(ValueError, match=reason):
        read_group(sent)


def test_a_group_without_overrides_has_none():
    sent = {**group(), "overrides": None}
    assert not read_group(sent).has_zero_advantage.any()
    assert np.isfinite(read_group(sent).scores).all()

"""The study of screens, where torch is installed."""

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
screens = pytest.importorskip("examples.studies.screens")


class RightAtTimes:
    """Is right in one completion of every fourth group."""

    def __init__(self, *_):
        pass

    def sample(self, questions, count, *_):
        words = [question.split()[-1] for question in questions]
        right = [f"<answer>{word[::-1]}</answer>" for word in words]
        wrong = ["<answer>wrong</answer>"] * (count - 1)
        texts = [[t if n % 4 == 0 else "", *wrong] for n, t in enumerate(right)]
        return SimpleNamespace(texts=texts)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("seen", "held"), [(0.25, [1, 1, 1, 1]), (0.5, [1, 1, 0, 0]), (0.8, [0, 0, 0, 0])]
)
def test_a_prediction_holds_if_its_interval_has_the_share_of_the_run(
    monkeypatch, seen, held
):
    monkeypatch.setattr(screens, "start", lambda _: (RightAtTimes(), {}))
    rounds = [SimpleNamespace(with_variance=seen)] * 3
    monkeypatch.setattr(screens, "train", lambda *_: rounds)
    result = screens.run("screen", "levels", 100)
    assert sum(result["varied"]) == 10
    assert [result[f"held_{groups}"] for groups in screens.GROUPS] == held
    assert result["away_40"] == pytest.approx(abs(0.25 - seen))

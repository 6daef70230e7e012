"""Groups: a dumped one explains itself, each rollout ends once, rewards are shaped."""

import json

from rg_env.run.group import SCHEMA_VERSION, Rollout
from tests.support.groups import scored

# -- a line of a dump ------------------------------------------------------------------

TALK = [{"role": "user", "content": "2 + 3?"}, {"role": "assistant", "content": "5"}]
ORIGIN = {"index": 17, "seed": 99, "level": 0.7, "params": {"max_numbers": 3}}


def group(*scores, **origin):
    rollouts = [Rollout(TALK, n, n / 2) for n in scores]
    return scored("gcd", rollouts, "5", **origin)


def line(found):
    return found.line({"reasoning_gym": "0.1.25"}, "2026-01-31T12:00:00+00:00")


def test_a_line_has_every_field_in_one_order():
    written = line(group(1.0, 0.0, **ORIGIN))
    rollouts = written["rollouts"]
    assert [(r["score"], r["reward"]) for r in rollouts] == [(1.0, 0.5), (0.0, 0.0)]
    assert rollouts[0]["conversation"] == TALK
    assert list(written.items()) == [
        ("schema_version", SCHEMA_VERSION),
        ("item_id", "gcd"),
        ("rollouts", rollouts),
        ("task", "gcd"),
        ("split", "train"),
        ("index", 17),
        ("seed", 99),
        ("level", 0.7),
        ("params", {"max_numbers": 3}),
        ("gold_answer", "5"),
        ("versions", {"reasoning_gym": "0.1.25"}),
        ("time", "2026-01-31T12:00:00+00:00"),
    ]
    assert json.loads(json.dumps(written)) == written

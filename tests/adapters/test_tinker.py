"""The dataset as tinker-cookbook uses it, with its own rollouts, strategies, renderers.

`test_their_packages.py` runs this file in an environment that holds tinker-cookbook.
The policy writes given texts; no service is called.
"""

import asyncio
import dataclasses
import itertools
import pickle

import pytest

pytest.importorskip("tinker_cookbook")

from tinker_cookbook import tokenizer_utils
from tinker_cookbook.completers import TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.rollout_strategy import FailFast
from tinker_cookbook.rl.rollouts import do_group_rollout
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from rg_env import Tasks, score
from rg_env.adapters.tinker import ReasoningGymDatasetBuilder, RetryUnscored
from rg_env.errors import NoScoreError, RunError

pytestmark = pytest.mark.processes

SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>"]


def tokenizer():
    """Return one of single bytes, since no hub can be reached."""
    letters = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    whole = Tokenizer(models.BPE(letters, []))
    whole.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    whole.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=whole, eos_token="<|im_end|>")
    fast.add_tokens(SPECIAL)
    fast.name_or_path = "bytes"
    return fast


tokenizer_utils.register_tokenizer("bytes", tokenizer)


class Policy(TokenCompleter):
    """Writes the texts in turn, each with the end of a message or cut off before it."""

    def __init__(self, *texts, end="<|im_end|>"):
        self.texts, self.end, self.asked = itertools.cycle(texts), end, 0

    async def __call__(self, model_input, stop, *, max_tokens=None):
        self.asked += 1
        text = next(self.texts) + self.end
        tokens = tokenizer().encode(text, add_special_tokens=False)
        stopped = "stop" if self.end else "length"
        return TokensWithLogprobs(tokens, [-1.0] * len(tokens), stopped)


def datasets(renderer="qwen3", **how):
    given = {"tasks": ["gcd"], "batch_size": 2, "group_size": 4, **how}
    build = ReasoningGymDatasetBuilder(
        model_name_for_tokenizer="bytes", renderer_name=renderer, **given
    )
    return asyncio.run(build())


def rollout(group, policy, strategy=None):
    return asyncio.run(do_group_rollout(group, policy, strategy))


def lost(group):
    """Return the group with an item that no worker can score."""
    item = dataclasses.replace(group.item, task="gcdd")
    return dataclasses.replace(group, item=item)


def test_batches_are_the_draws_of_the_tasks_however_often_asked():
    how = {"options": {"exclude": ["lcm"]}, "num_batches": 9}
    train, test = datasets(tasks=["gcd", "lcm"], seed=4, eval_samples_per_task=3, **how)
    tasks = Tasks("gcd", seed=4, levels="random")
    wanted = [tasks.at(4), tasks.at(5)]
    assert [group.item for group in train.get_batch(2)] == wanted
    assert [group.item for group in train.get_batch(2)] == wanted
    assert (len(train), len(test)) == (9, 1)
    assert [group.item for group in test.get_batch(0)] == tasks.evaluation(3)


@pytest.mark.parametrize(
    ("renderer", "text", "outcome"),
    [
        ("role_colon", "<answer>{}</answer>", "right"),
        ("qwen3", "<think>or <answer>-1</answer></think><answer>{}</answer>", "right"),
        ("qwen3_disable_thinking", "<answer>{}</answer>", "right"),
        ("qwen3_5", "<answer>-1</answer></think><answer>{}</answer>", "right"),
        ("qwen3_5", "</think><answer>{}</answer>", "right"),
        ("qwen3_5", "It is <answer>{}</answer>", "unfinished_thinking"),
        ("nemotron3", "<think>No.</think><answer>{}</answer>", "right"),
    ],
)
@pytest.mark.parametrize("end", ["<|im_end|>", ""])
def test_what_a_renderer_reads_is_scored_with_its_thinking(
    renderer, text, outcome, end
):
    if end and renderer == "role_colon":
        end = "\n\nUser:"
    (group, _) = datasets(renderer)[0].get_batch(0)
    policy = Policy(text.format(group.item.gold), end=end)
    done = rollout(group, policy)
    assert done.get_total_rewards() == [float(outcome == "right")] * 4
    text = done.trajectories_G[0].transitions[0].logs["completion"]
    assert score(group.item, [text])[0].outcome == outcome


def test_results_of_whole_groups_move_the_levels():
    train, _ = datasets(levels="curriculum")
    levels = [train.get_batch(0)[0].item.level]
    for number in range(5):
        for group in train.get_batch(number):
            rollout(group, Policy(f"<answer>{group.item.gold}</answer>"))
        levels.append(train.get_batch(number + 1)[0].item.level)
    assert levels[0] == 0.3
    assert levels[-1] > 0.3
    group = train.get_batch(0)[0]
    names = ("right", "format", "correct", "partial")
    metrics = dict.fromkeys(names, 0) | {"level": levels[-1]}
    assert rollout(group, Policy("")).metrics_G[0] == metrics


def test_a_resumed_run_continues_with_the_levels_of_its_batch(tmp_path):
    how = {"levels": "curriculum", "log_path": str(tmp_path)}

    def trained(train, first, end):
        """Return the items of some batches, each answered right."""
        items = []
        for number in range(first, end):
            for group in train.get_batch(number):
                rollout(group, Policy(f"<answer>{group.item.gold}</answer>"))
                items.append(group.item.to_json())
        return items

    whole = trained(datasets(**how)[0], 0, 6)
    assert trained(datasets(**how)[0], 4, 6) == whole[8:]
    assert trained(datasets(**how)[0], 0, 6) == whole  # a new one begins anew
    with pytest.raises(RunError, match=r"cannot be restored: .*000009\.json"):
        datasets(**how)[0].get_batch(9)


def test_a_group_with_an_unscored_member_is_tried_again_as_a_whole():
    (whole, _) = datasets()[0].get_batch(0)
    group = lost(whole)

    class Mending(Policy):
        async def __call__(self, *given, **more):
            if self.asked == 8:  # the third try
                object.__setattr__(group, "item", whole.item)
            return await super().__call__(*given, **more)

    policy = Mending("<answer>-1</answer>", f"<answer>{whole.item.gold}</answer>")
    done = rollout(group, policy, RetryUnscored())
    assert policy.asked == 12
    assert sorted(done.get_total_rewards()) == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("strategy", "asked"), [(RetryUnscored(1), 8), (FailFast(), 4)]
)
def test_a_group_that_never_has_a_score_fails_and_has_no_rewards(strategy, asked):
    (group, _) = datasets()[0].get_batch(0)
    policy = Policy("<answer>1</answer>")
    with pytest.raises(NoScoreError, match="gcdd: unscored"):
        rollout(lost(group), policy, strategy)
    assert policy.asked == asked
    assert RetryUnscored().catches_group_errors  # so that the training goes on


def test_a_group_pickles_unless_its_results_move_levels():
    (group, _) = datasets()[0].get_batch(0)
    copy = pickle.loads(pickle.dumps(group))
    gold = Policy(f"<answer>{group.item.gold}</answer>")
    assert rollout(copy, gold).get_total_rewards() == [1.0] * 4
    (moving, _) = datasets(levels="curriculum")[0].get_batch(0)
    with pytest.raises(TypeError, match="use fixed levels"):
        pickle.dumps(moving)

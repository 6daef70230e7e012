"""A disk that fails under load and has room again: what fits the memory is kept.

The disk is full by a limit on the size of files, which can be set on a process from
outside and taken back.
"""

import asyncio
import resource

import pytest

from rg_env import line_file
from rg_env.line_file import read_groups
from rg_env.run.dumps import Dumps
from rg_env.run.group import Rollout
from tests.support.groups import scored
from tests.support.parts import env_config, until

LANES = 8
LINE_BYTES = 5000
BEING_WRITTEN = 1
"""Groups that the thread of the dumps may hold at any moment."""


def record(number, text="x" * (LINE_BYTES // 2)):
    """Return a group of two, of which the first is right."""
    rollouts = [
        Rollout(
            conversation=[{"role": "assistant", "content": text}],
            score=score,
            reward=score,
            outcome="right" if score else "wrong",
            answer="4",
            finish_reason="stop",
            prompt_tokens=1,
            completion_tokens=1,
        )
        for score in (1.0, 0.0)
    ]
    return scored("gcd", rollouts, "4", index=number)


class Load:
    """Groups that are recorded by several tasks at once, without a pause."""

    def __init__(self, dumps):
        self.dumps, self.recorded, self._begun = dumps, 0, 0

    async def lane(self):
        while True:
            number, self._begun = self._begun, self._begun + 1
            await self.dumps.take(record(number))
            self.recorded += 1

    async def more(self, groups):
        enough = self.recorded + groups
        await until(lambda: self.recorded >= enough, "groups are recorded")


def dumps_in(folder):
    return Dumps(
        env_config(
            data_dumps_dir=str(folder),
            dump_rollouts=True,
            rollout_save_score_threshold=0.0,
        )
    )


def full():
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * LINE_BYTES, hard))


def mended():
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


@pytest.mark.slow
async def test_an_episode_under_load_loses_nothing_that_fits_the_memory(
    tmp_path, logged, monkeypatch
):
    folder = tmp_path / "dumps"
    monkeypatch.setattr(line_file, "MOST_WAITING", 10**6)

    load = Load(dumps_in(folder))
    lanes = [asyncio.create_task(load.lane()) for _ in range(LANES)]
    for _ in range(2):
        await load.more(20)
        full()
        try:
            await load.more(40)
            assert load.dumps.saved.groups_waiting >= 30
        finally:
            mended()
        await load.more(20)
        assert load.dumps.saved.groups_waiting <= BEING_WRITTEN
    for lane in lanes:
        lane.cancel()
    await asyncio.gather(*lanes, return_exceptions=True)
    await load.dumps.close()
    paths = folder.glob("*.jsonl*")
    found = sorted(group["index"] for path in paths for group in read_groups(path))
    assert found == list(range(len(found)))
    assert len(found) == load.dumps.saved.groups_total >= load.recorded
    assert load.dumps.saved.groups_lost == 0
    assert logged.text.count("takes no lines") == 2
    assert logged.text.count("takes lines again") == 2

"""`process` with parts of the test's own."""

import asyncio
from types import SimpleNamespace

from rg_env.atropos.process_run import Processing
from rg_env.run.group_loop import Refused, Run
from rg_env.run.ledger import Ending


class Parts:
    """The parts of a run whose items are numbers; those in `fruitless` give no row."""

    def __init__(self, fruitless=(), most=2):
        self.fruitless = set(fruitless)
        self.max_num_workers = most
        self.asked = self.at_once = self.most_at_once = self.logs = 0
        self.curr_step = 0
        self.rows = []

    async def next(self):
        self.asked += 1
        return self.asked

    async def complete(self, group):
        group.query(1)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1

    async def score(self, group):
        if group.item in self.fruitless:
            raise Refused(Ending.DISCARDED)

    async def take(self, group):
        self.rows.append(group.item)
        group.end(Ending.WRITTEN)

    async def wandb_log(self):
        self.logs += 1


def written(parts, total, gave_up=False):
    """Return the number of rows at the end."""

    async def run():
        parts._servers = SimpleNamespace(gave_up=asyncio.Event())
        if gave_up:
            parts._servers.gave_up.set()
        parts._items = SimpleNamespace(sampled={})
        parts.n_groups_to_process = total
        run = Run(lambda: parts.next(), parts.complete, parts.score, [parts.take])
        await Processing(parts, run, "process")._write_rows()
        return parts.curr_step

    return asyncio.run(run())


def test_it_writes_as_many_rows_as_asked_for_several_at_a_time():
    parts = Parts(most=3, fruitless=[1, 3])
    assert (written(parts, 9), len(parts.rows), parts.most_at_once) == (9, 9, 3)
    assert (parts.curr_step, parts.logs, parts.asked) == (9, 9, 11)


def test_it_gives_up_after_many_groups_without_a_row(monkeypatch, logged):
    monkeypatch.setattr("rg_env.atropos.process_run.MAX_GROUPS_WITHOUT_ROW", 5)
    assert written(Parts(fruitless=range(20)), 4) == 0
    assert "5 groups in a row gave no row" in logged.text
    assert "only 0 of 4 groups were written" in logged.text


def test_it_begins_nothing_once_the_servers_were_given_up_or_no_item_is_left():
    parts = Parts()
    assert (written(parts, 4, gave_up=True), parts.asked) == (0, 0)
    items = [1, 2, None, None]

    async def get_next_item():
        return items.pop(0)

    parts.next = get_next_item
    assert written(parts, 4) == 2

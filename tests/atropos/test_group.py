"""A group: found by the hooks that work on it, readable as the framework's entries."""

import asyncio
import contextvars
import weakref

from rg_env.atropos.group import Group


def test_a_hook_finds_its_group_beside_others_and_in_tasks_of_its_own():
    async def hook(item):
        await asyncio.sleep(0)
        return await asyncio.create_task(found(item))

    async def found(item):
        return Group.of(item)

    async def work_on(group):
        with group.in_hooks():
            return await hook("another item")

    async def run():
        groups = [Group(i) for i in range(3)]
        return groups, await asyncio.gather(*map(work_on, groups))

    groups, seen = asyncio.run(run())
    assert seen == groups


def test_outside_the_hooks_a_group_is_made_of_the_item():
    with Group("before").in_hooks():
        pass
    assert Group.of("item").item == "item"


def test_what_outlives_a_hook_does_not_keep_its_group():
    group = Group("item")
    with group.in_hooks():
        kept = contextvars.copy_context()
    watched = weakref.ref(group)
    del group
    assert watched() is None
    assert kept.run(Group.of, "another").item == "another"


def test_a_hook_of_the_framework_reads_its_entry_of_the_running_items():
    group = Group("item")
    assert (group["item"], group["worker"]) == ("item", None)
    assert group["start_time"] > 0


def test_a_group_of_the_same_item_is_as_often_tried_and_has_nothing_else_of_it():
    lost = Group("item", tries=2)
    lost.keep({"tokens": [[1]]})
    again = lost.next_try()
    assert (again.item, again.tries) == ("item", 2)
    assert (again.data, again.in_flight) == (None, 0)

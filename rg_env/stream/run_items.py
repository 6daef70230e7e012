"""The items of a run: prefetched, without the questions of its evaluation."""

from __future__ import annotations

import logging

from rg_env.errors import counted, in_section
from rg_env.library.installed_library import read_library
from rg_env.library.registry import LibraryDescription
from rg_env.stream.curriculum import Feedback
from rg_env.stream.draws import Draw, Stream, prepare_stream
from rg_env.stream.evaluation_items import EvaluationItems, wanted_items
from rg_env.stream.item import Item
from rg_env.stream.item_making import ItemMaker
from rg_env.stream.prefetch import LOOKAHEAD, PrefetchedItems
from rg_env.stream.task_selection import StreamSettings
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

EVENTS = (
    "items_overtaken",
    "items_unusable",
    "evaluations_avoided",
    "evaluations_skipped",
)
"""Events that are counted while items are made."""


class RunItems(PrefetchedItems):
    """The prefetched items of a run, which checks each task before it is sampled.

    Attributes:
        library: The description of the installed library.
        evaluation: The evaluation items; none of their questions is handed out.
        failures: Number of draws that gave no item, by task.
    """

    def __init__(
        self,
        pool: WorkerPool,
        library: LibraryDescription,
        stream: Stream,
        evaluation: EvaluationItems,
        lookahead: int = LOOKAHEAD,
    ) -> None:
        super().__init__(stream, self._item_of, lookahead)
        self.library = library
        self.evaluation = evaluation
        self._pool = pool
        self.events.update(dict.fromkeys(EVENTS, 0))
        self._maker = ItemMaker(
            deadline_s=stream.settings.item_deadline_s,
            left_out=evaluation.left_out,
            avoided=evaluation.questions,
            events=self.events,
        )
        self.failures = self._maker.failures

    async def _item_of(self, draw: Draw) -> Item | None:
        await self.evaluation.checked(draw.task)
        attempts = self.stream.attempts(draw)
        return await self._maker.make(self._pool, draw.task, attempts)

    def stop(self) -> None:
        """Make no more items; outstanding draws stay in the state."""
        self._cancel()
        self.evaluation.stop()


async def check_items(pool: WorkerPool, of_run: object) -> None:
    """Raise the errors of `prepare_items` for wrong settings, before anything else."""
    library = await read_library(pool)
    with in_section("env."):
        await prepare_stream(pool, library, StreamSettings.of(of_run), Feedback(0.5))


async def prepare_items(
    pool: WorkerPool, of_run: object, feedback: Feedback
) -> RunItems:
    """Return the items of a run, whose levels follow the feedback.

    `of_run` has the settings of a run.

    Raises:
        SettingError: A name or parameter does not exist.
        LibraryError: reasoning-gym cannot be used.
    """
    settings = StreamSettings.of(of_run)
    library = await read_library(pool)
    logger.info(
        "reasoning-gym %s from %s: %d tasks",
        library.release,
        library.location,
        len(library.tasks),
    )
    with in_section("env."):
        stream = await prepare_stream(pool, library, settings, feedback)
        names = stream.task_names
        logger.info("%s chosen", counted(len(names), "task"))
        unscaled = [name for name in names if name not in stream.difficulty.scales]
        if unscaled and (settings.complexity_mode is not None or settings.task_levels):
            logger.info(
                "these have no levels and keep their default parameters: %s",
                ", ".join(unscaled),
            )
        wanted, evaluated = wanted_items(stream)
    evaluation = EvaluationItems(pool, stream, wanted, evaluated)
    return RunItems(pool, library, stream, evaluation)

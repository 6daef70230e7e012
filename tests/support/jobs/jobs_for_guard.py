"""Scorers that a test guards; what the hostile ones do is read there."""


def hostile(answer):
    names = {}
    exec(f"import os, signal, subprocess, threading, time\n{answer}", names)
    return names["result"]


def matches(completions, solution, **others):
    assert not {"trainer_state", "log_metric"} & set(others)
    for text in completions:
        hostile(f"{text}\nresult = 0")
    return [float(text == solution[0]) for text in completions]


def ranks(completions):
    return [float(sorted(completions).index(text)) for text in completions]


def each(completions):
    return [hostile(text) for text in completions]


def whatever(completions, answer):
    return answer


async def eventual(answer):
    return 1.0

"""The folder of a training, the options that it was begun with, and its runs."""

import argparse

import pytest

from examples.train_small.work_folder import WorkFolder
from rg_env.errors import RunError


def options(**changes):
    return argparse.Namespace(**{"steps": 4, "seeds": [1], **changes})


def test_two_trainings_do_not_share_a_folder(tmp_path):
    with (
        WorkFolder(tmp_path).taken(options()),
        pytest.raises(RunError, match="another process"),
        WorkFolder(tmp_path).taken(options()),
    ):
        pass
    with WorkFolder(tmp_path).taken(options()):
        pass


def test_a_folder_goes_on_with_the_options_that_it_was_begun_with(tmp_path):
    def take(**changes):
        with WorkFolder(tmp_path).taken(options(**changes)):
            pass

    take()
    take(steps=5)  # nothing is made
    WorkFolder(tmp_path).tokenizer.mkdir()
    take(steps=5, seeds=[2])
    with pytest.raises(RunError, match=r"--steps: .* begun with 5, not 6"):
        take(steps=6)

"""The tasks of the examples pass their own tests."""

import pytest

from tests.support.worker_attacks import run_script

TESTS = """
from examples.own_task import test_roman_numerals as own
for name in dir(own):
    if name.startswith("test_"):
        print(vars(own)[name]())
"""


@pytest.mark.processes
def test_the_tests_of_the_examples_pass(tmp_path):
    assert run_script(tmp_path, TESTS) == "None\n" * 2

"""The trainer's program with a policy that needs no torch.

python -m tests.examples.trained_without_torch --model FOLDER ...
"""

import sys

from examples.trainer import train
from tests.examples.answer_policy import load_policy

if __name__ == "__main__":
    sys.exit(train.main(make_policy=lambda folder, device: load_policy(folder)))

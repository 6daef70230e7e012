"""The package form of the plugin, for a folder that lies in a checkout of Atropos.

    from atropos.environments.reasoning_gym_environment import ReasoningGymEnv

Every way of importing gives the same class: the entry is imported by its plain name,
except where this folder itself is known by that name.
"""

import sys
from pathlib import Path

_FOLDER = str(Path(__file__).resolve().parent)
if _FOLDER not in sys.path:
    sys.path.append(_FOLDER)

# `python -m` looks its module up by name after this file has run, and must find it new.
if sys.argv[:1] != ["-m"]:
    if __name__ == "reasoning_gym_environment":
        from reasoning_gym_environment.reasoning_gym_environment import (
            ReasoningGymEnv,
            ReasoningGymEnvConfig,
            system_prompt,
        )
    else:
        from reasoning_gym_environment import (
            ReasoningGymEnv,
            ReasoningGymEnvConfig,
            system_prompt,
        )
    # The module of this package is that same module, under either name.
    sys.modules.setdefault(
        f"{__name__}.reasoning_gym_environment", sys.modules[ReasoningGymEnv.__module__]
    )

__all__ = ["ReasoningGymEnv", "ReasoningGymEnvConfig", "system_prompt"]

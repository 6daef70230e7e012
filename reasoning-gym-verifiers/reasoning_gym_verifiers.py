"""What `vf-eval reasoning-gym-verifiers` loads; see rg_env/adapters/verifiers.py."""

from rg_env.adapters.verifiers import (
    ReasoningGymHarness,
    ReasoningGymSingleTurn,
    ReasoningGymTaskset,
)

__all__ = ["ReasoningGymHarness", "ReasoningGymSingleTurn", "ReasoningGymTaskset"]

"""The tasks as an environment of OpenEnv: `uvicorn app:app --port 8000`, in here."""

from rg_env import Tasks
from rg_env.adapters.openenv import application

app = application(Tasks(levels="random"))

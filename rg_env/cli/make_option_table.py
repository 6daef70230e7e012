"""Writes options.json: `python -m rg_env.cli.make_option_table`."""

from __future__ import annotations

from rg_env.atropos import defaults
from rg_env.cli import option_table


def main() -> None:
    """Describe the models and write the table."""
    table = option_table.describe(defaults.env_config(), defaults.servers()[0])
    option_table.TABLE_FILE.write_text(option_table.as_json(table), encoding="utf-8")


if __name__ == "__main__":
    main()

"""What the stories of family_relationships tell."""

from rg_env.task_rules.graphs.family_relationships import is_parent_in_law

STORY = (
    "Noah is married to Mary. They have a child called Finn. Finn is married to Sky."
    " They have children called Rain and Kai."
)


def test_who_is_parent_of_a_spouse_is_a_parent_in_law():
    assert is_parent_in_law(STORY, "Mary", "Sky")
    assert is_parent_in_law(STORY, "Noah", "Sky")


def test_a_spouse_of_a_child_is_none():
    assert not is_parent_in_law(STORY, "Sky", "Mary")
    assert not is_parent_in_law(STORY, "Mary", "Finn")

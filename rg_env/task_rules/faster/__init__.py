"""Parts of the library that make the same entries in less time.

At random levels two thirds of all the time went into nine tasks, and there into a
function or two that repeat work: clauses translated anew for each one tried
(zebra_puzzles), a class defined in every search (knight_swap), a cache that costs more
than the rule (game_of_life), formulas built to be thrown away (countdown, puzzle24),
solutions counted in the worst order (futoshiki), boards copied deeply (n_queens),
programs run step by step (bf). docs/item_speed.md has the figures.

What stands here returns what those return, down to the order of sets, so that an item
stays what the library makes of its seed.
"""

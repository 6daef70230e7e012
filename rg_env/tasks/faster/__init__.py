"""Parts of the library that make the same entries in less time.

At random levels two thirds of all the time went into five tasks, and there into a
function or two that repeat work: clauses translated anew for each one tried
(zebra_puzzles), a class defined in every search (knight_swap), programs run an
instruction at a time (bf), a cache that costs more than the rule (game_of_life), boards
copied deeply (n_queens). What stands here returns what those return, to the order of a
set, so that an item stays what the library makes of its seed.
"""

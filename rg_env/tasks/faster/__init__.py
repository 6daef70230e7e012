"""Parts of the library that make the same entries in less time and memory.

At random levels three quarters of all the time went into ten tasks, and there into a
function or two that repeat work: clauses translated anew for each one tried
(zebra_puzzles), a class defined in every search (knight_swap), programs run an
instruction at a time (bf), a cache that costs more than the rule (game_of_life), boards
copied deeply (n_queens) or read square by square (sokoban), solutions counted in the
worst order (futoshiki) or with sets (sudoku), formulas built to be thrown away
(puzzle24, countdown). Of the rest, half the time of a run's first minute went into
files that five tasks parse for each level again (files.py, ladder.py).

What stands here returns what those return, down to the order of sets, so that an item
stays what the library makes of its seed.
"""

"""Pure: a fleet as cells, rows and lines of safe text that fit a width, for the console and for the commands.

cells.py   toned parts, cells, grids           glyphs.py    signs, in Unicode and in ASCII
rows.py    the roles     findings.py  the findings and their evidence     headline.py  the head of the screen
"""

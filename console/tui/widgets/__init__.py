"""Widgets of the console: they show plain values (cells.py) and do no I/O."""

"""Actions: plans, their apply, journal, audit and undo."""

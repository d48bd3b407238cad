"""The reference worker for worktop's own job table."""

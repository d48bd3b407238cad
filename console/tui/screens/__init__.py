"""The screens: each shows the newest fleet when asked to, and owns no data."""

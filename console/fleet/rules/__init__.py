"""The rules behind the findings, by what they look at."""

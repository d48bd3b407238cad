"""Pure: crontab bytes, launcher scripts, and what kind of thing a line starts."""

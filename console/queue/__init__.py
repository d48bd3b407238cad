"""The job table in PostgreSQL: presets say what a queue looks like, reads and writes follow the preset."""

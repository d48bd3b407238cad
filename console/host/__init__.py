"""The host agent: systemd, processes, crontabs and the journal of one host, as JSON lines on a pipe."""

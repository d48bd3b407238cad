"""Playbooks: Markdown files that a person can follow by hand, run step by step; resumable, and taken back in order."""

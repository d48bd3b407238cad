"""Starts a thumbnails worker with the settings of its instance (/srv/thumbnails/env/INSTANCE)."""

import os
from collections.abc import Mapping


def settings(environ: Mapping[str, str]) -> dict[str, object]:
    return {"bucket": environ["BUCKET"], "quality": int(environ["QUALITY"])}


if __name__ == "__main__":
    settings(os.environ)
    handlers = "console.demo.handlers:HANDLERS"
    arguments = ["worktop", "worker", "--role", "thumbnails", "--handlers", handlers]
    os.execv("/usr/local/bin/worktop", [*arguments, "--lease", "10", "--concurrency", "2", "--drain-timeout", "8"])

"""What a worker runs: handlers by type, found by a `module:object` reference."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from console.errors import ConfigError


class ClaimedJob:
    """The job a handler gets. `lost` is set when the lease is lost: the result will be dropped, better stop."""

    __slots__ = ("attempt", "id", "lost", "max_attempts", "payload_text", "queue", "token", "type")

    def __init__(
        self, *, id: int, queue: str, type: str, payload_text: str, attempt: int, max_attempts: int, token: int
    ) -> None:
        self.id = id
        self.queue = queue
        self.type = type
        self.payload_text = payload_text  # JSON
        self.attempt = attempt  # 1 for the first
        self.max_attempts = max_attempts
        self.token = token  # the fencing token; grows with every claim
        self.lost = threading.Event()

    @property
    def payload(self) -> Any:
        """The decoded payload. What Python cannot hold fails the job in its handler, not the worker."""
        return json.loads(self.payload_text)

    def __str__(self) -> str:
        return f"job {self.id} ({self.type}, attempt {self.attempt} of {self.max_attempts})"


Handler = Callable[[ClaimedJob], Any]  # sync, runs in a thread; or async
Handlers = Mapping[str, Handler]


def load_handlers(reference: str) -> Handlers:
    """The mapping type -> handler that `module:object` names; ConfigError says which part of it is wrong.

    The module is searched in the working directory first, as `python -m` does.
    """
    key = f"--handlers {reference}"
    module_name, colon, name = reference.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(key, "not of the form module:object", "for example --handlers app.jobs:HANDLERS")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        why = f"no module {missing}" if module_name.startswith(missing) else f"it imports {missing}, which is not there"
        raise ConfigError(key, why, "set PYTHONPATH or start the worker in the folder of the module") from error
    except Exception as error:
        raise ConfigError(key, f"importing {module_name} failed: {type(error).__name__}: {error}") from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(key, f"{module_name} has no {name}", "name a mapping from job type to function") from None
    if not isinstance(found, Mapping) or not found:
        raise ConfigError(key, f"is {_described(found)}", "expected a mapping from job type to function")
    for job_type, handler in found.items():
        if not isinstance(job_type, str) or not callable(handler):
            raise ConfigError(key, f"{job_type!r} -> {_described(handler)}", "expected text -> function(job)")
    return found


def _described(value: object) -> str:
    return "an empty mapping" if isinstance(value, Mapping) and not value else f"a {type(value).__name__}"

"""Steps that edit a file of the host, and make systemd read its files again."""

from __future__ import annotations

from console.actions.steps.doing import Doing
from console.errors import HostError
from console.fleet.plan import FileChange, Step, StepOutcome


class FileSteps:
    """The step kinds "file" and "reload"."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing

    async def replace(self, step: Step) -> StepOutcome:
        """Put the file's new content in its place while it is as it was read; how it was is in the journal before."""
        assert step.file is not None
        edit, host = step.file, self._doing.host
        now = await host.read_file(edit.path)
        if now.problem:
            raise HostError(step.title, now.problem)
        if now.sha256 != edit.expected:
            raise HostError(step.title, f"{edit.path} was changed since the plan was made", "plan it again")
        mode = edit.mode if edit.mode is not None and now.content is None else now.mode
        self._doing.journal.file_change(
            FileChange(
                path=edit.path, before=now.content, after=edit.content, mode=mode, uid=now.uid, gid=now.gid
            )
        )  # fmt: skip
        written = await host.replace_file(
            edit.path, expected=edit.expected, content=edit.content, mode=edit.mode, check=edit.check
        )
        return StepOutcome(state="done", text=written.text)

    async def reload(self, step: Step) -> StepOutcome:
        await self._doing.host.daemon_reload()
        return StepOutcome(state="done", text="systemd has read its unit files again")

"""Tasks that are ended, and the agent, which ends with its stdin whatever goes on in that moment."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from console.ending import end
from console.host.protocol import Watch, encode_request


async def test_a_task_that_loses_a_cancellation_is_ended_all_the_same() -> None:
    lost = 0

    async def loses() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                lost += 1
                if lost == 3:
                    raise

    task = asyncio.create_task(loses())
    await asyncio.sleep(0)
    await asyncio.wait_for(end(task, 0.05), 5)
    assert task.cancelled() and lost == 3


async def test_what_it_raised_is_left_in_it() -> None:
    async def fails() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise ValueError("on its way out")

    task = asyncio.create_task(fails())
    await asyncio.sleep(0)
    await end(task)
    assert isinstance(task.exception(), ValueError)


@pytest.mark.parametrize("last", [b"", encode_request(2, "watch", Watch(interval=6)), encode_request(2, "refresh")])
def test_an_agent_ends_with_its_stdin_whatever_was_asked_in_that_moment(last: bytes) -> None:
    agents = []
    for _ in range(3):
        command = [sys.executable, "-m", "console", "agent"]
        agent = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        agents.append(agent)
    try:
        for agent in agents:
            assert agent.stdin is not None and agent.stdout is not None
            agent.stdin.write(encode_request(1, "watch", Watch(interval=5)))
            agent.stdout.readline()  # its hello
        time.sleep(0.7)
        for agent in agents:
            assert agent.stdin is not None and agent.stdout is not None
            agent.stdin.write(last)
            agent.stdin.close()
            agent.stdout.close()
        assert [agent.wait(10) for agent in agents] == [0, 0, 0]
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()

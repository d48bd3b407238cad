"""Plans that were cut off are shown once when the console starts: continued, given up, or left for later."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from console.errors import WorktopError
from console.tui.screens.base import ConsoleScreen
from console.view.cells import safe
from console.view.offers import Request

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from console.tui.feed import Acting


async def ask_about_unfinished(app: ConsoleApp, acting: Acting) -> None:
    """Ask what is to become of them, if there are any and nothing else is being asked. Raises nothing."""
    from console.tui.screens.question import UnfinishedScreen

    try:
        plans = [plan for plan in await asyncio.to_thread(acting.unfinished) if not plan.running]
    except WorktopError:
        return  # the audit says what is wrong with the folder
    if not plans:
        return
    if not isinstance(app.screen, ConsoleScreen):
        app.notify(f"{len(plans)} actions were cut off: worktop continue, worktop abandon", markup=False, timeout=8)
        return
    titles = {plan.plan: plan.title for plan in plans}

    def take(choice: str | None) -> None:
        verb, _, plan = (choice or "").partition(" ")
        if verb == "continue":
            request = Request(verb="continue", title=f"Continue: {safe(titles[plan], 80)}", plan=plan)
            app.call_later(app.desk.show_plan, request)
        elif verb == "abandon":
            app.background(_abandon(app, acting, plan), "give up a plan")

    app.push_screen(UnfinishedScreen(plans, app.clock()), take)


async def _abandon(app: ConsoleApp, acting: Acting, plan: str) -> None:
    entry = await asyncio.to_thread(acting.abandon, plan)
    app.notify(safe(f"given up: {entry.title}; 9 Audit has it", 200), markup=False, timeout=5)

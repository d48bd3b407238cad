"""Plots of a role's queue, and the numbers of now."""

from __future__ import annotations

import msgspec
import pytest

from console.errors import Problem
from console.fleet.model import Fleet, SourceStatus
from console.tui.screens.jobs import JobsScreen
from console.tui.screens.queue import QueueScreen
from tests.examples import NOW, example_fleet
from tests.tui.hostile import HOSTILE, harmless, hostile_fleet
from tests.tui.queue_feeds import TableFeed, console_on, made_trend


def with_trends(fleet: Fleet) -> Fleet:
    assert fleet.queue is not None
    roles = tuple(msgspec.structs.replace(s, trend=made_trend(s.role.name)) for s in fleet.roles[:-1])
    queue = msgspec.structs.replace(fleet.queue, trends_taken=NOW - 4)
    return msgspec.structs.replace(
        fleet, roles=(*roles, msgspec.structs.replace(fleet.roles[-1], trend=None)), queue=queue
    )


GOLDEN_80 = """\
worktop · wrk01 · system · deploy · app@127.0.0.1:5432/app · 16:42:07 UTC
● units now  ● processes now  ● queue now  ▲ crontabs 42 s old: not permitted
ROLE                     WAITING LATER OLDEST RUN STUCK FAILED DONE/MIN FAIL/MIN
mail                         412     3   0:41   3     0      2      118      0.4
reports                    1 204     3  18:22   7     2      0        9        0
thumbnails                   310     3   6:10   1     4     17        3      0.4
webhooks                      88     3  41:07   0     1      0        0        0
exports                       12     3   9:55   1     1      0        0        0
digest                         0     3      –   1     0      0      2.5        0
TREND of mail  60 minutes
waiting  336                            oldest waiting  1:23
600┤  ⡀                               ⡀ 2:00┤    ⢀⡠⠔⡆            ⡠⠔⡇    ⣀⠤⠒⡇   ⢀
   │⠒⠉⠑⠉⠊⠉⠊⠑⠉⠑⠉⠂    ⠑⠉⠒⠊⠒⠑⠒⠑⠊⠒⠊⠒⠑⠒⠑⠊⠒⠊⠑     │ ⣀⠤⠊⠁  ⡇ ⡠⠔⠁    ⣀⠔⠊⠉  ⢸⢀⡠⠒⠊   ⡇⣀⠔⠒⠁
  0┤                                    0:00┤⠉      ⠈⠉              ⠁      ⠈
   └┬─────────────────────────────────┬     └┬─────────────────────────────────┬
  -59 min                          now    -59 min                           now
done per minute  115                    failed per minute  2
150┤   ⣀⣀   ⣀⣀⡀       ⢀⣀⣀   ⣀⣀   ⣀⣀⡀  ⢀ 2┤ ⣾⢰⡇⢰⡇⢰⡇⢰⡇⢰⡇      ⣾ ⣾⢰⡇⢰⡇⢰⡇⢰⡇⢰⡇⢰⡇⣾ ⣾ ⡎
   │⠉⠉⠉  ⠉⠉⠉  ⠈⠁    ⠉⠉⠁  ⠉⠉⠉  ⠉⠉⠉  ⠈⠉⠉⠁  │⢸⢸⢸⡇⢸⡇⢸⡇⢸⡇⡇⡇⡀     ⣿⢸⢸⢸⡇⢸⡇⢸⡇⢸⡇⡇⡇⡇⡇⣿ ⣿ ⡇
   │                                     │⡇⢸⡇⢸⡇⡇⡇⡇⡇⣿ ⣿     ⢸⢸⡇⢸⡇⢸⡇⢸⡇⡇⡇⣿ ⣿ ⣿ ⣿⢸⢸
  0┤                                    0┤⡇⠸⡇⠸⡇⢿ ⢿ ⢿ ⢿     ⡇⠸⡇⠸⡇⠸⡇⠸⡇⢿ ⢿ ⢿ ⢿ ⢿⠸⡇
   └┬─────────────────────────────────┬  └┬────────────────────────────────────┬
  -59 min                          now   -59 min                            now
1Fleet 2Workers 3Jobs 4Queue 5Log 7Host  q quit  ? help  ⏎ open  m one plot"""

GOLDEN_ASCII_120 = """\
worktop - wrk01 - system - deploy - app@127.0.0.1:5432/app - 16:42:07 UTC - read-only
* units now  * processes now  * queue now  ! crontabs 42 s old: not permitted
ROLE                                                             WAITING LATER OLDEST RUN STUCK FAILED DONE/MIN FAIL/MIN
mail                                                                 412     3   0:41   3     0      2      118      0.4
reports                                                            1 204     3  18:22   7     2      0        9        0
thumbnails                                                           310     3   6:10   1     4     17        3      0.4
webhooks                                                              88     3  41:07   0     1      0        0        0
exports                                                               12     3   9:55   1     1      0        0        0
digest                                                                 0     3      -   1     0      0      2.5        0
TREND of mail  60 minutes
waiting  336                                                oldest waiting  1:23
600+                                                        2:00+           *                       *           *
   |                                                            |          **                     ***         ***
   |                                                            |        ** *                    *  *        *  *
400+   * *  *  *  * *        * *  *                      *      |      **   *                  **   *      **   *      *
   | ** **** *** ** *        * * ** ** ** * ** ** ** * ** *     |     *     *    **          **     *    **     *    **
   |*           *  * *        * *  *  *  * *  *  *  * *     1:00+    **     *    *          *       *  **       *  **
   |                                                            |  **       *  **          **       *  *        * *
200+                                                            |**          **           *          **          **
   |                                                            |
   |                                                            |
  0+                                                        0:00+
   ++-----------------------------------------------------+     ++-----------------------------------------------------+
  -59 min                                              now    -59 min                                               now
done per minute  115                                        failed per minute  2
150+                                                        2+  *  *  *  *  * *           *  *  *  *  *  * *  *  *  *  *
   |                                                         | ** ** ** ** ****          ** ** ** ** ** **** ** ** ** *
   |     ***      ***             ***     ***      ***       | ** ** ** ** ****          ** ** ** ** ** **** ** ** ** *
   |******  ******  **       *****   ******  ******  ******  | ** ** ** ** ****          ** ** ** ** ** **** ** ** ** *
100+                                                         | ** ** ** ** ****          ** ** ** ** ** **** ** ** ** *
   |                                                        1+ ** ** ** ** **** *        ** ** ** ** ** **** ** ** ** *
   |                                                         |* ** ** ** ** * **        * ** ** ** ** ** * ** ** ** **
 50+                                                         |* ** ** ** ** * **        * ** ** ** ** ** * ** ** ** **
   |                                                         |* ** ** ** ** * **        * ** ** ** ** ** * ** ** ** **
   |                                                         |* ** ** ** ** * **        * ** ** ** ** ** * ** ** ** **
   |                                                         |* ** ** ** ** * **        * ** ** ** ** ** * ** ** ** **
  0+                                                        0+*  *  *  *  * *  *        *  *  *  *  *  * *  *  *  *  *
   ++-----------------------------------------------------+  ++--------------------------------------------------------+
  -59 min                                              now   -59 min                                                now
1 Fleet  2 Workers  3 Jobs  4 Queue  5 Log  7 Host  q quit  ? help  Enter open  m one plot  ] next role  : command"""


async def test_80_by_24() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (80, 24), "4") as driven:
        assert driven.text() == GOLDEN_80


async def test_ascii_at_120_by_40() -> None:
    feed = TableFeed(with_trends(example_fleet()), 0)
    async with console_on(feed, (120, 40), "4", unicode=False) as driven:
        assert driven.text().isascii()
        assert driven.text() == GOLDEN_ASCII_120


async def test_40_by_15_shows_one_plot() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (40, 15), "4") as driven:
        text = driven.text()
        assert "waiting  336" in text and "per minute" not in text
        assert "mail                   412   0:41     0" in text
        await driven.press("m", "m", "m")
        assert "done per minute  115" in driven.text()


async def test_one_plot_large_and_back() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (80, 24), "4") as driven:
        await driven.press("m", "m")
        assert "oldest waiting  1:23" in driven.text()
        assert "waiting  336" not in driven.text()
        assert "Esc shows all plots" in driven.text()
        await driven.press("escape")
        assert "waiting  336" in driven.text()


async def test_the_role_under_the_cursor_is_plotted() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (80, 24), "4") as driven:
        await driven.press("down")
        assert "TREND of reports" in driven.text()
        await driven.press("right_square_bracket", "tab")
        assert "TREND of webhooks" in driven.text()
        await driven.press("left_square_bracket")
        assert "TREND of thumbnails" in driven.text()
        await driven.press("enter")
        assert isinstance(driven.app.screen, JobsScreen)
        assert driven.app.screen.role == "thumbnails"
        await driven.press("escape")
        assert isinstance(driven.app.screen, JobsScreen)  # first to all roles
        await driven.press("escape")
        assert isinstance(driven.app.screen, QueueScreen)


async def test_nothing_known_is_no_zero() -> None:
    async with console_on(TableFeed(with_trends(example_fleet()), 0), (80, 24), "4") as driven:
        await driven.press("G")
        text = driven.text()
        assert "TREND of digest  not read yet" in text
        assert "waiting  ?  nothing known" in text


async def test_a_plot_is_drawn_once_for_the_same_minutes() -> None:
    fleet = with_trends(example_fleet())
    async with console_on(TableFeed(fleet, 0), (80, 24), "4") as driven:
        screen = driven.app.screen
        assert isinstance(screen, QueueScreen)
        drawn = [plot.drawn for plot in screen.plots.values()]
        for _ in range(5):
            await driven.say(msgspec.structs.replace(fleet, now=fleet.now + 1))
        assert [plot.drawn for plot in screen.plots.values()] == drawn


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("absent", "no database: name one in worktop.toml"),
        ("down", "the queue could not be read: connection refused; ctrl+r asks again"),
        ("waiting", "asking the queue"),
    ],
)
async def test_empty_loading_and_error(state: str, said: str) -> None:
    problem = Problem("read the queue", "connection refused") if state == "down" else None
    source = SourceStatus(name="queue", state=state, problem=problem)  # type: ignore[arg-type]
    async with console_on(TableFeed(Fleet(now=NOW, sources=(source,)), 0), (80, 24), "4") as driven:
        assert said in driven.text()
    async with console_on(TableFeed(None, 0), (80, 24), "4") as driven:
        assert "asking the queue   q quits, ? help" in driven.text()


async def test_stale_numbers_are_marked_and_the_plots_stay() -> None:
    fleet = with_trends(example_fleet())
    down = msgspec.structs.replace(fleet.sources[2], state="down", age=42.0)
    fleet = msgspec.structs.replace(fleet, sources=(*fleet.sources[:2], down))
    async with console_on(TableFeed(fleet, 0), (80, 24), "4") as driven:
        assert "× queue 42 s old" in driven.text()
        assert "waiting  336" in driven.text()


async def test_hostile_names_and_any_size() -> None:
    async with console_on(TableFeed(with_trends(hostile_fleet(HOSTILE)), 0), (80, 24), "4") as driven:
        assert harmless(driven.text().replace("\n", ""))
        for size in ((1, 1), (4, 3), (20, 8), (60, 10), (200, 60), (80, 24)):
            await driven.pilot.resize_terminal(*size)
            await driven.pilot.pause()
        assert "TREND of" in driven.text()

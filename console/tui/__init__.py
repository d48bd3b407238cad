"""The console: screens over the fleet. Knows the layers below; nothing knows it. Widgets do no I/O.

    run.py         starts it, ends it, true exit statuses        terminal.py, crash.py   around it
    app.py         one feed, one stack of screens                feed.py                 what it needs
    commands.py    every screen and key, in one table            theme.py                how it looks
    asked.py       questions that take a while                   copying.py              out of the console
    screens/       one screen each                               widgets/                parts of screens

Importing this package does not import Textual.
"""

from console.tui.run import run_console

__all__ = ["run_console"]

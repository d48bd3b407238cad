"""The least a Textual program can be: the floor under every first paint. Run with a Python that has Textual."""

from textual.app import App, ComposeResult
from textual.widgets import Static


class Bare(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("bare and ready")


if __name__ == "__main__":
    Bare().run()

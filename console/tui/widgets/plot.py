"""A plot of the last minutes: a title with the present value, and a line with gaps where nothing is known.

Importing this module imports plotext (some 0.05 s), so only the screen that plots does.
"""

from __future__ import annotations

from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Vertical
from textual_plotext import PlotextPlot

from console.tui.widgets.line import Line
from console.view.cells import Part, Tone, cell
from console.view.trends import Measure, PlotData

PLOT_TONES: dict[Measure, Tone] = {"waiting": "note", "oldest": "warn", "done": "ok", "failed": "bad"}
_TALL = 5  # lines from which on there is room for more than the ends of the y axis


class TrendPlot(Vertical):
    """One measure of one role."""

    DEFAULT_CSS = """
    TrendPlot PlotextPlot { height: 1fr; width: 1fr; }
    TrendPlot Line { height: 1; }
    """

    def __init__(self, measure: Measure) -> None:
        super().__init__(id=f"plot-{measure}")
        self.measure: Measure = measure
        self.title_line = Line()
        self.plot = PlotextPlot()
        self.drawn = 0  # how often it was drawn
        self._shown: object = None

    def compose(self) -> ComposeResult:
        yield self.title_line
        yield self.plot

    def show(self, data: PlotData, tones: dict[Tone, Style], unicode: bool, width: int, height: int) -> None:
        """Draw the data in `width` by `height` cells (the title takes one line), if anything is different."""
        shown = (data, id(tones), unicode, width, height)
        if shown == self._shown:
            return
        self._shown = shown
        tone = PLOT_TONES[data.measure]
        title: tuple[Part, ...] = ((data.title, tone),)
        if not data.runs:
            title = ((f"{data.title}  nothing known of the last minutes", "dim"),)
        self.title_line.show((cell(title, max(0, width - 1)).parts,), tones)
        self._draw(data, _rgb(tones[tone]), unicode, height - 1)

    def _draw(self, data: PlotData, colour: tuple[int, int, int] | str, unicode: bool, height: int) -> None:
        plt = self.plot.plt
        plt.clear_figure()
        for run in data.runs:
            plt.plot(list(run.x), list(run.y), marker="braille" if unicode else "*", color=colour)
        plt.xlim(data.first, 0)
        plt.ylim(0, data.top)
        ticks = data.y_ticks if height > _TALL else (data.y_ticks[0], data.y_ticks[-1])
        plt.yticks([value for value, _ in ticks], [label for _, label in ticks])
        plt.xticks([value for value, _ in data.x_ticks], [label for _, label in data.x_ticks])
        plt.xaxes(True, False)
        plt.yaxes(True, False)
        self.drawn += 1
        self.plot.refresh()


def _rgb(style: Style) -> tuple[int, int, int] | str:
    """The colour of a tone, for plotext; its own default where colours are off."""
    if style.color is None or style.color.triplet is None:
        return "default"
    red, green, blue = style.color.triplet
    return red, green, blue

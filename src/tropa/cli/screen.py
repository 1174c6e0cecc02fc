"""What people see while a run works: text as it streams, one line for each call."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from tropa.cli.plain import call_line, one_line, plain, shorten
from tropa.events import Event
from tropa.messages import JsonObject, Media, Notice, Observation, decode
from tropa.model import Delta

if TYPE_CHECKING:
    from rich.console import Console

_MARKS = {
    "ok": ("✓", "green"),
    "error": ("✗", "red"),
    "rejected": ("⊘", "yellow"),
    "cancelled": ("⊘", "yellow"),
    "unknown": ("?", "yellow"),
}
CALLS = ("call.proposed", "call.decided")
"""Events that hold the arguments of a call."""
RESULT = 160
"""Characters of a result that a line shows."""


class Screen:
    """Where output goes: in a terminal all of it to stdout; otherwise answers to stdout and the rest to stderr.

    `interactive` says that somebody can be asked. `show` sends everything to stdout in any case, for demos.
    """

    def __init__(self, *, json: bool = False, show: bool = False) -> None:
        self.json = json
        self.interactive = not json and sys.stdin.isatty() and sys.stdout.isatty()
        self._to_stdout = not json and (show or sys.stdout.isatty())
        self.console = _console(error=not self._to_stdout)

    @property
    def live(self) -> bool:
        """Whether text is shown as it streams."""
        return self._to_stdout and self.console.is_terminal

    def answer(self, text: str) -> None:
        """The answer itself, alone on stdout."""
        if not self.json:
            sys.stdout.write(plain(text) + "\n")
            sys.stdout.flush()

    def line(self, text: str, style: str = "", *, wrap: bool = False) -> None:
        """A line of our own words; foreign parts must have gone through `plain`.

        It is not broken, so that a command in it can be copied; with `wrap`, a terminal's width breaks it at words.
        """
        from rich.text import Text  # noqa: PLC0415  # heavy

        self.console.print(Text(text, style=style), soft_wrap=not (wrap and self.console.is_terminal))


class Progress:
    """A watcher for `Agent.run`: shows each piece as it comes. `said` is the text of the newest reply so far shown."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.said = ""
        self._calls: dict[str, tuple[str, JsonObject]] = {}
        self._open = ""
        """What stands on the line that is not ended yet: a kind of delta, or a hint that will be wiped."""

    def __call__(self, item: Delta | Event) -> None:
        """Show a delta or an event."""
        if isinstance(item, Delta):
            self._delta(item)
            return
        self._note(item)
        body = item.body
        match item.kind:
            case "model.requested":
                self.said = ""
                self._hint("thinking …")
            case "model.replied":
                self.end_line()
                if body["finish"] == "length":
                    self._say("  the reply was cut off by the length limit", "yellow")
            case "call.started":
                self._hint(f"{self._call(body, 60)} …")
            case "call.finished":
                self._finished(body)
            case "message.added":
                message = decode(cast("JsonObject", body["message"]))
                if isinstance(message, Notice):
                    self._say(f"  notice: {plain(message.text)}", "dim")
            case "window.cut":
                self._say(
                    f"  the model's window moved on: what was said before event {body['start']} is no longer sent",
                    "dim",
                )
            case _:
                pass

    def know(self, events: Iterable[Event]) -> None:
        """Take in calls that an earlier process proposed, so that their lines say what was called. Shows nothing."""
        for entry in events:
            self._note(entry)

    def end_line(self) -> None:
        """End the line that is open, or wipe the hint on it."""
        if self._open == "hint":
            self._raw("\r\x1b[2K")
        elif self._open:
            self._raw("\n" if self._open == "text" else "\x1b[0m\n")
        self._open = ""

    def _delta(self, delta: Delta) -> None:
        if not self.screen.live or delta.kind == "call" or not delta.text:
            return
        if self._open != delta.kind:
            self.end_line()
            if delta.kind == "reasoning" and self.screen.console.color_system:
                self._raw("\x1b[2m")
            self._open = delta.kind
        if delta.kind == "text":
            self.said += delta.text
        self._raw(plain(delta.text))

    def _note(self, entry: Event) -> None:
        body = entry.body
        if entry.kind in CALLS and "arguments" in body:
            call = cast("str", body["call"])
            tool = cast("str", body.get("tool") or self._calls.get(call, ("", {}))[0])
            self._calls[call] = tool, cast("JsonObject", body["arguments"])

    def _finished(self, body: JsonObject) -> None:
        observation = cast("Observation", decode(cast("JsonObject", body["message"])))
        mark, style = _MARKS[observation.status]
        seconds = cast("float", body.get("seconds", 0.0))
        call = self._call(body) or f"{observation.tool}(…)"
        self._say(f"{mark} {call} → {result_line(observation, RESULT)}  {seconds:.1f} s", style)

    def _call(self, body: JsonObject, limit: int = 200) -> str:
        known = self._calls.get(cast("str", body["call"]))
        return call_line(*known, limit) if known else ""

    def _hint(self, text: str) -> None:
        if self.screen.live:
            self.end_line()
            room = max(10, self.screen.console.width - 1)
            self._raw(
                f"\x1b[2m{shorten(text, room)}\x1b[0m" if self.screen.console.color_system else shorten(text, room)
            )
            self._open = "hint"

    def _say(self, text: str, style: str) -> None:
        self.end_line()
        self.screen.line(text, style, wrap=True)

    def _raw(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def result_line(observation: Observation, limit: int | None = None) -> str:
    """A result on one line: the text, or the data as JSON, or what kind of file it is."""
    said = [
        f"[{plain(part.media_type, lines=False)}, {len(part.data)} bytes]"
        for part in observation.parts
        if isinstance(part, Media)
    ]
    value = observation.value
    if value not in ("", None) or not said:
        said.insert(0, plain(value, lines=False) if isinstance(value, str) else one_line(value))
    return shorten(" ".join(said), limit) or "(empty)"


def _console(*, error: bool) -> Console:
    from rich.console import Console  # noqa: PLC0415  # heavy

    return Console(stderr=error, highlight=False, markup=False, emoji=False, soft_wrap=False)

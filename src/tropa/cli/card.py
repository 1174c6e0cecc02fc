"""A proposal as a person reads it before deciding: what would run, with which values, and where each came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from tropa.cli.plain import one_line, plain, shorten
from tropa.gate import Proposal
from tropa.messages import Json, JsonObject

if TYPE_CHECKING:
    from rich.panel import Panel

_ARGUMENT = 4000
"""Characters of one argument on a card; `tropa inbox show --json` has all."""


@dataclass(frozen=True, slots=True)
class Card:
    """A proposal with what its tool says about itself (`description`, `schema`, `hints`)."""

    proposal: Proposal
    tool: JsonObject

    @property
    def schema(self) -> JsonObject:
        """The JSON Schema of the arguments."""
        return cast("JsonObject", self.tool.get("schema", {}))

    def effects(self) -> str:
        """The tool's hints in words."""
        hints = cast("dict[str, bool]", self.tool.get("hints", {}))
        if not hints:
            return "unknown"
        words = [
            "may overwrite or delete" if hints["destructive"] else "adds or changes, deletes nothing",
            "repeating it changes nothing more" if hints["idempotent"] else "repeating it does it again",
        ]
        return "; ".join([*words, *(["reaches outside systems"] if hints["open_world"] else [])])

    def panel(self, edited: JsonObject | None = None) -> Panel:
        """The card for a terminal; with `edited`, the arguments as they would run now."""
        from rich.console import Group  # noqa: PLC0415  # heavy
        from rich.panel import Panel  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        proposal = self.proposal
        arguments = proposal.arguments if edited is None else edited
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="bold", no_wrap=True)
        rows.add_column(overflow="fold")
        rows.add_column(overflow="fold")
        for name, value in arguments.items():
            changed = edited is not None and proposal.arguments.get(name) != value
            words, style = ("you changed it", "cyan") if changed else origin_words(proposal, name)
            rows.add_row(Text(plain(name, lines=False)), Text(one_line(value, _ARGUMENT)), Text(words, style=style))
        about = cast("str", self.tool.get("description", "")).strip()
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim", no_wrap=True)
        facts.add_column(overflow="fold")
        if about:
            facts.add_row("does", Text(plain(about.split("\n\n")[0])))
        facts.add_row("effect", Text(self.effects()))
        if proposal.reason:
            facts.add_row("why asked", Text(plain(proposal.reason)))
        facts.add_row("thread", Text(plain(proposal.thread, lines=False)))
        unknown = proposal.kind == "unknown"
        title = Text(" ")
        title.append(plain(proposal.tool, lines=False), style="bold")
        title.append(" was started, and its outcome is unknown " if unknown else " waits for approval ")
        body = Group(rows, Text(""), facts) if arguments else facts
        return Panel(
            body,
            title=title,
            title_align="left",
            subtitle=Text(f" {proposal.id} "),
            subtitle_align="right",
            border_style="red" if unknown else "yellow",
            padding=(1, 2),
        )


def origin_words(proposal: Proposal, name: str) -> tuple[str, str]:
    """Where the value of an argument came from, in words, and a colour for it."""
    found = [
        (path, one)
        for path, one in proposal.origins.items()
        if path == name or path.startswith((f"{name}.", f"{name}["))
    ]
    if not found:
        return "", ""
    style = "green" if all(one.kind in {"user", "instructions"} for _, one in found) else "yellow"
    if any(one.kind == "invented" for _, one in found):
        style = "red"
    if len({str(one) for _, one in found}) == 1:
        return plain(str(found[0][1]), lines=False), style
    parts = [f"{plain(path[len(name) :], lines=False)} {plain(str(one), lines=False)}" for path, one in found]
    return shorten("; ".join(parts), 400), style


def setting(schema: JsonObject, name: str, text: str) -> Json:
    """A value that a person typed for an argument: text where the tool takes text only, else JSON where it is JSON."""
    from tropa.cli.agents import value_of  # noqa: PLC0415  # heavy

    known = cast("JsonObject", cast("JsonObject", schema.get("properties", {})).get(name, {}))
    if known.get("type") == "string":
        bare = text.strip()
        return value_of(bare) if bare[:1] == '"' == bare[-1:] and len(bare) > 1 else text
    return value_of(text)

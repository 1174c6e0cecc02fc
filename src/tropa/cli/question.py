"""The question at an approval: yes, no, edit, or later."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tropa.cli.card import Card, setting
from tropa.cli.plain import one_line, plain
from tropa.cli.screen import Screen
from tropa.cli.work import Break, Worker
from tropa.errors import ApprovalError, InvalidArguments
from tropa.messages import JsonObject
from tropa.store import Store

Answer: TypeAlias = Literal["decided", "later", "leave"]
"""`later` leaves this one proposal pending; `leave` (Ctrl-C, Ctrl-D, SIGTERM) this and all others."""

_APPROVE = "[y]es / [n]o / [e]dit / [l]ater: "
_RESOLVE = "did it happen? [d]one / [n]ot done / [r]etry / [l]ater: "


def ask(worker: Worker, screen: Screen, store: Store, card: Card, *, by: str) -> Answer:
    """Show a proposal and take the person's decision. Nothing is decided before it is recorded."""
    try:
        return (
            _resolve(worker, screen, store, card, by)
            if card.proposal.kind == "unknown"
            else _approve(worker, screen, store, card, by)
        )
    except Break as broken:
        import signal  # noqa: PLC0415

        if broken.signal == signal.SIGINT:
            worker.pressed()
        return "leave"
    except EOFError:
        return "leave"
    except ApprovalError as error:
        # Somebody else was faster, or it cannot be decided so; the run's state says what is left.
        screen.line(plain(str(error)), "yellow")
        return "later"


def _approve(worker: Worker, screen: Screen, store: Store, card: Card, by: str) -> Answer:
    edited: JsonObject | None = None
    screen.console.print(card.panel())
    shown = False
    while True:
        answer = worker.read_line(_APPROVE, unseen=not shown).strip().lower()
        shown = True
        match answer:
            case "y" | "yes":
                try:
                    worker.run(store.approve(card.proposal.id, by=by, edit=edited))
                except InvalidArguments as error:
                    screen.line(f"These arguments do not fit: {plain(str(error))}", "red")
                    continue
                return "decided"
            case "n" | "no":
                reason = worker.read_line("why (for the model; may be empty): ").strip()
                worker.run(store.reject(card.proposal.id, by=by, reason=reason or None))
                return "decided"
            case "e" | "edit":
                edited = _edit(worker, card, edited or card.proposal.arguments)
                screen.console.print(card.panel(edited))
            case "l" | "later":
                return "later"
            case other:
                screen.line(f"{plain(other, lines=False)!r} is none of y, n, e, l" if other else "y, n, e or l?", "dim")


def _edit(worker: Worker, card: Card, arguments: JsonObject) -> JsonObject:
    edited: JsonObject = {}
    for name, value in arguments.items():
        typed = worker.read_line(f"{plain(name, lines=False)} [{one_line(value)}]: ")
        edited[name] = setting(card.schema, name, typed) if typed.strip() else value
    return edited


def _resolve(worker: Worker, screen: Screen, store: Store, card: Card, by: str) -> Answer:
    screen.console.print(card.panel())
    shown = False
    while True:
        answer = worker.read_line(_RESOLVE, unseen=not shown).strip().lower()
        shown = True
        match answer:
            case "d" | "done":
                worker.run(store.resolve(card.proposal.id, "done", by=by))
            case "n" | "not done" | "not_done":
                worker.run(store.resolve(card.proposal.id, "not_done", by=by))
            case "r" | "retry":
                worker.run(store.resolve(card.proposal.id, "retry", by=by))
            case "l" | "later":
                return "later"
            case _:
                screen.line("d, n, r or l?", "dim")
                continue
        return "decided"

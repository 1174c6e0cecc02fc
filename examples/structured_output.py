"""An answer of a given type: checked, asked again where it does not fit, and handed over as a value of the type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tropa import Agent
from tropa.model import Scripted


@dataclass
class Ticket:
    """What a complaint is about."""

    topic: Literal["delivery", "invoice", "product"]
    urgent: bool
    order: int | None = None


MODEL = Scripted(
    [
        '{"topic": "shipping", "urgent": "very"}',  # does not fit: the model is told so and asked again
        '{"topic": "delivery", "urgent": true, "order": 4711}',
    ]
)


def main() -> None:
    """Sort one complaint."""
    agent = Agent("sorter", model=MODEL, instructions="Sort the complaint.", output=Ticket)
    run = agent.run_sync("Order 4711 has been on its way for three weeks, I need it tomorrow!")
    ticket = run.output
    assert isinstance(ticket, Ticket)
    print(ticket)
    print(f"{run.stop} after {run.steps} steps")


if __name__ == "__main__":
    main()

"""Decide by a rule of your own what runs, what a person sees, and what is refused; approve, edit and reject in code."""

from __future__ import annotations

import asyncio

import tropa
from tropa import Agent, Proposed, Ruling, tool
from tropa.model import Scripted, calls


@tool(idempotent=True)
def send(recipient: str, amount: int) -> str:
    """Send money.

    Args:
        recipient: Who gets it.
        amount: How much, in euros.
    """
    return f"sent {amount} to {recipient}"


def policy(proposed: Proposed) -> Ruling:
    """Small sums that the user named run at once; a recipient that the model made up is refused; a person sees the rest."""
    if proposed.origins["recipient"].kind == "invented":
        return Ruling("refuse", "the recipient was invented")
    amount = proposed.arguments["amount"]
    if isinstance(amount, int) and amount <= 10 and proposed.origins["amount"].kind == "user":
        return Ruling("run")
    return Ruling("ask", "more than 10 euros")


MODEL = Scripted(
    [
        calls(
            ("send", {"recipient": "Ann", "amount": 5}),
            ("send", {"recipient": "Bob", "amount": 500}),
            ("send", {"recipient": "Cleo", "amount": 70}),
            ("send", {"recipient": "Mallory", "amount": 5}),
        ),
        "Done as far as it was allowed.",
    ]
)


async def main() -> None:
    """Ann is paid at once, Bob gets less than proposed, Cleo nothing, and Mallory never reaches a person."""
    agent = Agent("cashier", model=MODEL, tools=[send], policy=policy)
    async with tropa.open(":memory:") as store:
        run = await agent.run("Pay 5 to Ann, 500 to Bob and 70 to Cleo", store=store, thread="payday")
        bob, cleo = run.pending
        await store.approve(bob.id, by="ann", edit={"recipient": "Bob", "amount": 50})
        await store.reject(cleo.id, by="ann", reason="she was paid yesterday")
        run = await agent.resume("payday", store=store)
        for step in await store.trail("payday"):
            for call in step.calls:
                assert call.observation is not None
                print(f"{call.arguments}: {call.observation.status}, {call.observation.value}")
        print(run.answer)


if __name__ == "__main__":
    asyncio.run(main())

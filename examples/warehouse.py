"""An agent with a tool that reads and a tool that acts; the second waits for a person.

python examples/warehouse.py            with scripted replies
python examples/warehouse.py needle     with the embedded model
"""

from __future__ import annotations

import asyncio
import sys

import tropa
from tropa import Agent, tool
from tropa.model import Model, Scripted, calls

STOCK = {("A-113", "Hamburg"): 120, ("A-113", "Rotterdam"): 15}


@tool(read_only=True)
def stock(sku: str, site: str) -> int:
    """How many pieces of an article are at a site.

    Args:
        sku: Article number, e.g. A-113.
        site: Name of the site.
    """
    return STOCK.get((sku, site), 0)


@tool(destructive=False)
def move_stock(sku: str, quantity: int, source: str, target: str) -> str:
    """Move pieces of an article from one site to another.

    Args:
        sku: Article number, e.g. A-113.
        quantity: How many pieces.
        source: The site that gives.
        target: The site that receives.
    """
    if STOCK.get((sku, source), 0) < quantity:
        raise tropa.ToolFailed(f"{source} has only {STOCK.get((sku, source), 0)} pieces of {sku}")
    STOCK[sku, source] -= quantity
    STOCK[sku, target] = STOCK.get((sku, target), 0) + quantity
    return f"{quantity} moved; {source} has {STOCK[sku, source]} left"


def scripted() -> Model:
    """What a model might say to the request below."""
    return Scripted(
        [
            calls(("stock", {"sku": "A-113", "site": "Hamburg"})),
            calls(("move_stock", {"sku": "A-113", "quantity": 40, "source": "Hamburg", "target": "Rotterdam"})),
            "I moved 40 pieces of A-113 from Hamburg to Rotterdam.",
        ]
    )


async def main(model: str | Model) -> None:
    """Run one request; say yes to whatever it asks."""
    agent = Agent("warehouse", model=model, tools=[stock, move_stock])
    async with tropa.open(":memory:") as store:
        run = await agent.run("Move 40 of A-113 from Hamburg to Rotterdam", store=store)
        while run.status == "waiting":
            for proposal in run.pending:
                print(f"approving {proposal.tool} {proposal.arguments}")
                for path, origin in proposal.origins.items():
                    print(f"  {path}: {origin}")
                await store.approve(proposal.id, by="this example")
            run = await agent.resume(run.thread, store=store)
        print(run.answer)
        print(f"{run.stop} after {run.steps} steps; stock: {STOCK}")
    await agent.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else scripted()))

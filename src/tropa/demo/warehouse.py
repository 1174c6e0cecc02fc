"""A small warehouse in SQLite, and an agent that looks up its stock and proposes to move it."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypedDict

from tropa.agent import Agent
from tropa.errors import ToolFailed
from tropa.gate import Budget
from tropa.messages import Json
from tropa.model import Model
from tropa.tool import tool

AGENT = "demo.warehouse"
FILE = "warehouse.db"

Site = Literal["Hamburg", "Rotterdam", "Gdansk"]

_OPENING: tuple[tuple[str, Site, int], ...] = (
    ("A-113", "Hamburg", 120),
    ("A-113", "Rotterdam", 15),
    ("A-113", "Gdansk", 60),
    ("B-20", "Hamburg", 8),
    ("B-20", "Rotterdam", 200),
    ("C-7", "Gdansk", 35),
)


class Receipt(TypedDict):
    """What a move left behind: pieces moved, and the stock at both ends afterwards."""

    moved: int
    source_left: int
    target_now: int


class Warehouse:
    """The stock of three sites in a SQLite file `warehouse.db` in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE

    def reset(self) -> None:
        """Set the stock to what the demo begins with."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self._transaction() as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS stock (sku TEXT, site TEXT, quantity INTEGER NOT NULL CHECK (quantity >= 0),"
                " PRIMARY KEY (sku, site))"
            )
            db.execute("DELETE FROM stock")
            db.executemany("INSERT INTO stock VALUES (?, ?, ?)", _OPENING)

    def rows(self) -> list[tuple[str, str, int]]:
        """The whole stock as (article, site, pieces), in order."""
        with self._transaction() as db:
            return db.execute("SELECT sku, site, quantity FROM stock ORDER BY sku, site").fetchall()

    @tool(read_only=True)
    def stock(self, sku: str, site: Site) -> dict[str, Json]:
        """How many pieces of an article are at a site.

        Args:
            sku: Article number, e.g. A-113.
            site: The site.
        """
        with self._transaction() as db:
            return {"sku": sku, "site": site, "pieces": _quantity(db, sku, site)}

    @tool(destructive=False, open_world=False)
    def move_stock(self, sku: str, quantity: int, source: Site, target: Site) -> Receipt:
        """Move pieces of an article from one site to another.

        Args:
            sku: Article number, e.g. A-113.
            quantity: How many pieces.
            source: The site that gives.
            target: The site that receives.
        """
        if quantity < 1:
            raise ToolFailed(f"cannot move {quantity} pieces; move at least 1")
        if source == target:
            raise ToolFailed(f"source and target are both {source}; nothing was moved")
        with self._transaction() as db:
            there = _quantity(db, sku, source)
            if there < quantity:
                raise ToolFailed(f"{source} has {there} pieces of {sku}, not {quantity}; nothing was moved")
            db.execute("UPDATE stock SET quantity = quantity - ? WHERE sku = ? AND site = ?", (quantity, sku, source))
            db.execute(
                "INSERT INTO stock VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET quantity = quantity + excluded.quantity",
                (sku, target, quantity),
            )
            return {"moved": quantity, "source_left": there - quantity, "target_now": _quantity(db, sku, target)}

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """One write transaction, whole or not at all."""
        db = sqlite3.connect(self.file, isolation_level=None, timeout=10)
        try:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                raise ToolFailed(f"there is no warehouse in {self.file}; `tropa demo warehouse` makes one") from None
            raise
        finally:
            db.close()  # an open transaction is rolled back


def _quantity(db: sqlite3.Connection, sku: str, site: str) -> int:
    row = db.execute("SELECT quantity FROM stock WHERE sku = ? AND site = ?", (sku, site)).fetchone()
    return 0 if row is None else int(row[0])


def warehouse_agent(folder: Path, model: str | Model = "needle") -> Agent:
    """The demo's agent on the warehouse in `folder`. `stock` runs freely, `move_stock` waits for a person."""
    return Agent(
        AGENT,
        model=model,
        tools=[Warehouse(folder)],
        instructions="You run a warehouse with sites in Hamburg, Rotterdam and Gdansk.",
        budget=Budget(steps=8),
    )

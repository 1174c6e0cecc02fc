"""The built-in demos: real agents on a real model, made to be tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tropa.agent import Agent
from tropa.demo.warehouse import AGENT as WAREHOUSE
from tropa.demo.warehouse import Warehouse, warehouse_agent
from tropa.model import Model

DEMOS: dict[str, Callable[[Path, str | Model], Agent]] = {WAREHOUSE: warehouse_agent}
"""By the agent's name in the journal: `(folder of the demo's files, model) -> agent`."""

__all__ = ["DEMOS", "WAREHOUSE", "Warehouse", "warehouse_agent"]

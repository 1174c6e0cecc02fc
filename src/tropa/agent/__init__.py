"""Agents: the model decides the steps."""

from tropa.agent.agent import Agent
from tropa.agent.react import react

__all__ = ["Agent", "react"]

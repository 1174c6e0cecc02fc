"""Agents: the model decides the steps."""

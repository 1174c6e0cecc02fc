"""Needle 3 as a model: direct tool calls and extraction on a CPU, offline."""

from tropa.model.needle.model import Needle

__all__ = ["Needle"]

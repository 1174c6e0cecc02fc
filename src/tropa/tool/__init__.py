"""Tools: functions with typed signatures, checked arguments, and a word about their effects."""

from tropa.tool.arguments import Arguments
from tropa.tool.context import ToolContext
from tropa.tool.decorator import tool
from tropa.tool.definition import Tool, masked
from tropa.tool.hints import Hints
from tropa.tool.result import Result, to_parts
from tropa.tool.toolbox import Toolbox, ToolListing, tools_of

__all__ = [
    "Arguments",
    "Hints",
    "Result",
    "Tool",
    "ToolContext",
    "ToolListing",
    "Toolbox",
    "masked",
    "to_parts",
    "tool",
    "tools_of",
]

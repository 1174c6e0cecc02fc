"""Context: the prompt of each ask, assembled from the state."""

from tropa.context.prompt import names, render
from tropa.context.shorten import shorten, shorten_observation
from tropa.context.trim import group, trim, turns
from tropa.context.window import Window, fit

__all__ = ["Window", "fit", "group", "names", "render", "shorten", "shorten_observation", "trim", "turns"]

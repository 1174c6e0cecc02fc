"""Trails: a read-only view over a journal."""

from tropa.trail.trail import Trail, TrailCall, TrailRun, TrailStep, trail_of

__all__ = ["Trail", "TrailCall", "TrailRun", "TrailStep", "trail_of"]

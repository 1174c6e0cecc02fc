"""Trails: a read-only view over a journal."""

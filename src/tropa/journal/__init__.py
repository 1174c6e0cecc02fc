"""The journal: one append-only record per thread."""

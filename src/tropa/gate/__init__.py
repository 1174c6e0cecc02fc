"""The gate: what stands between a proposed call and the world."""

"""Events: what the journal is made of."""

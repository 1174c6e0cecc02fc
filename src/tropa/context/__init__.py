"""Context: the prompt of each ask."""

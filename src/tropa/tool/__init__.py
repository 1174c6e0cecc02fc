"""Tools: a function with a typed signature, its schema, its checks, its execution."""

"""The session: ask, call, note. Every operation is journaled here."""

"""Tropa: an agent runtime. The model proposes; the runtime validates, asks, executes, records, stops."""

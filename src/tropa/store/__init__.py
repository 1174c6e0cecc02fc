"""The store: threads, inbox and trails in one handle."""

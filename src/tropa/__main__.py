"""`python -m tropa` is the command `tropa`."""

from __future__ import annotations

from tropa.cli import main

if __name__ == "__main__":
    main()

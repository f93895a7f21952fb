"""The command line: `octavo`, `octavo chat`, `octavo bench`, `octavo doctor`."""

from octavo.cli.main import main

__all__ = ["main"]

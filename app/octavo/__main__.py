"""Starts Octavo as `python -m octavo`."""

import sys

from octavo.cli import main

if __name__ == "__main__":
    sys.exit(main())

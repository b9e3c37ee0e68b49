"""Makes `python -m swarmbus` the command line."""

import sys

from swarmbus.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m tilewright` is the command `tilewright`."""

import sys

from .cli import main

sys.exit(main())

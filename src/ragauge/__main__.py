"""`python -m ragauge` is the command `ragauge`, and imports nothing from the current folder.

Python puts that folder first on the path. It is taken off before anything else is imported; for
what Python itself imports before this line there is `python -P -m ragauge`.
"""

import os
import sys

if not sys.flags.safe_path and __name__ == "__main__":
    # Where ragauge itself was found there, as in its own source folder, there is no other place.
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.abspath(sys.path[0]) != own:
        del sys.path[0]

from ragauge.cli.main import main

if __name__ == "__main__":
    main()

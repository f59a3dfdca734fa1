"""Starts this checkout's program as an installed `kaizen` does: imported, so that Python's cache of it counts.

Compiling kaizen.py takes longer than most commands; `python kaizen.py` itself is run where a test is about that.
"""

import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import kaizen

sys.exit(kaizen.main())

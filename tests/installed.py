"""Starts this checkout's program quickly: what `support` has compiled is used again.

Compiling kaizen.py takes longer than most commands; `python kaizen.py` itself is run where a test is about that.
"""

import os
import sys

import sections

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

import kaizen

sections.Compiler(kaizen)
sys.exit(kaizen.main())

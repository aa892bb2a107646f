"""The folder to put first on PYTHONPATH for recording a script that knows nothing of it: see sitecustomize.py."""

import os

FOLDER = os.path.dirname(os.path.abspath(__file__))

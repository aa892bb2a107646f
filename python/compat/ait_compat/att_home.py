"""The folder that the older tools' documents call $ATT_HOME: `export ATT_HOME=$(python -m ait_compat.att_home)`."""

import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "att")

if __name__ == "__main__":
    print(FOLDER)

"""The pre-check of torch APIs under its old name: all of it lies below the folder that stands in for $ATT_HOME."""

import os

from ait_compat.att_home import FOLDER

__path__ = [os.path.join(FOLDER, "debug", "accuracy_tools", "api_accuracy_checker")]

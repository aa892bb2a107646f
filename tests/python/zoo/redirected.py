"""A script that catches what is written to its own streams, or has none."""

import contextlib
import io
import logging
import sys

import torch

out, err = io.StringIO(), io.StringIO()
with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    print("inside", model(torch.ones(1, 2)).shape)
print(repr(out.getvalue()), repr(err.getvalue()))
logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s", stream=sys.stdout)
torch.nn.Linear(2, 2)(torch.ones(1, 2))
logging.getLogger("script").warning("its own")
sys.stderr = None
torch.nn.Linear(3, 3)(torch.ones(1, 3))
print(sorted(name for name in logging.root.manager.loggerDict if name == "script"))

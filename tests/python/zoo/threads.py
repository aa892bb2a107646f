"""One model in many threads at once."""

import concurrent.futures
import threading

import torch
from listen import recorded


class Local(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.thread = threading.local()

    def forward(self, x):
        self.thread.calls = getattr(self.thread, "calls", 0) + 1
        return self.fc(x), self.thread.calls > 0


torch.manual_seed(0)
torch.set_num_threads(1)
model = Local()
recorded(model)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for output, flag in pool.map(model, [torch.full((1, 4), float(i)) for i in range(12)]):
        print(output.tolist(), flag)

"""Processes that are started anew and get the model as an argument."""

import torch
import torch.multiprocessing as multiprocessing
from listen import recorded


def work(rank, model, x, queue):
    queue.put((rank, model(x).tolist(), sorted(vars(model))))


if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    recorded(model)
    x = torch.ones(2, 4)
    print(model(x).tolist(), flush=True)
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    multiprocessing.start_processes(work, (model, x, queue), nprocs=1, start_method="spawn")
    print(queue.get())

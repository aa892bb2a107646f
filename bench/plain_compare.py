"""The seven metrics of two dumps as people write them: torch.load and float32, on as many threads as asked for.

    python bench/plain_compare.py GOLDEN MY [--threads N] [--repeats N]

Prints one JSON line: the seconds of each repeat, torch's own start aside. bench/real_bench.py holds
`ait llm compare` against it.
"""

import argparse
import json
import pathlib
import time

import torch
import torch_opcheck

EPSILON = 2.0**-23


def metrics(golden: torch.Tensor, actual: torch.Tensor) -> list[float]:
    g, m = golden.flatten().float(), actual.flatten().float()
    difference = m - g
    error = difference.abs()
    live = g.abs() > EPSILON
    relative = torch.where(live, (m / g - 1).abs(), torch.zeros(()))
    log_p, log_q = torch.log_softmax(g, 0), torch.log_softmax(m, 0)
    values = (
        torch.nn.functional.cosine_similarity(g, m, 0),
        relative.max(),
        relative.mean(),
        error.max(),
        error.mean(),
        (log_p.exp() * (log_p - log_q)).sum(),
        difference.norm() / g.norm(),
    )
    return [value.item() for value in values]


def files(dump: pathlib.Path) -> tuple[pathlib.Path, list[pathlib.Path]]:
    """The folder of the only rank, and its tensors."""
    root = next(dump.glob("*tensors/*"))
    return root, sorted(path for path in root.rglob("*") if path.suffix in (".pth", ".bin"))


def load(path: pathlib.Path) -> torch.Tensor:
    return torch.load(path, weights_only=True) if path.suffix == ".pth" else torch_opcheck.read(path)


def compare(golden: pathlib.Path, actual: pathlib.Path) -> int:
    golden_root, paths = files(golden)
    actual_root, _ = files(actual)
    for path in paths:
        metrics(load(path), load(actual_root / path.relative_to(golden_root)))
    return len(paths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("actual", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    seconds = []
    with torch.no_grad():
        for _ in range(options.repeats):
            start = time.perf_counter()
            pairs = compare(options.golden, options.actual)
            seconds.append(time.perf_counter() - start)
    print(json.dumps({"pairs": pairs, "seconds": seconds}))


if __name__ == "__main__":
    main()

"""The same attention computed twice, with a fault planted in the second: input for `make demo`.

numpy in fp32 is the trusted run and is saved as .npy; torch in fp16 is the run under test and is saved as .pth.
In the second run one head forgets to divide by the square root of its size.
"""

import pathlib
import sys

import numpy as np
import torch

HEADS, TOKENS, SIZE = 8, 64, 64
FAULTY_HEAD = 5


def golden_attention(q, k, v):
    scores = np.einsum("htd,hsd->hts", q, k) / np.sqrt(SIZE)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hts,hsd->htd", weights, v).astype(np.float32)


def faulty_attention(q, k, v):
    scale = torch.full((HEADS, 1, 1), SIZE**-0.5)
    scale[FAULTY_HEAD] = 1.0
    scores = (q @ k.transpose(1, 2)).float() * scale
    return (torch.softmax(scores, -1).half() @ v)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((HEADS, TOKENS, SIZE), dtype=np.float32) for _ in range(3))
    np.save(folder / "golden.npy", golden_attention(q, k, v))
    torch.save(faulty_attention(*(torch.from_numpy(x).half() for x in (q, k, v))), folder / "actual.pth")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))

"""The small files that pages on single commands use: two tensors that differ in one element, in several formats."""

import pathlib
import sys

import numpy as np
import safetensors.numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from conftest import atb_bin, sample_pair

golden, actual = sample_pair()
np.save("golden.npy", golden)
np.save("actual.npy", actual)
torch.save(torch.from_numpy(golden).half(), "layer.pth")
pathlib.Path("layer.bin").write_bytes(atb_bin(actual.astype(np.float16), 1))
actual.astype(np.float16).tofile("layer.raw")
weights = {"lm_head.weight": golden[0], "model.norm.weight": np.ones(4, np.float16)}
safetensors.numpy.save_file(weights, "model.safetensors")
for side in ("golden_folder", "my_folder"):
    pathlib.Path(side).mkdir()
    for i in range(5):
        np.save(f"{side}/layer{i}.npy", golden + i)
np.save("my_folder/layer1.npy", actual + 1)
np.save("my_folder/layer2.npy", (golden + 2) * np.float32(1.001))
np.save("my_folder/layer3.npy", golden[0])
pathlib.Path("my_folder/layer4.npy").unlink()

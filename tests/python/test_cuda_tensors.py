"""Tensors on a CUDA device that are met more than once: test_hooks_written.py on a real one."""

import json
from pathlib import Path

import pytest
import torch
from ait_llm import DumpConfig, register_hook

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Restless(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.same, self.after = torch.nn.Linear(256, 256), torch.nn.Identity(), torch.nn.Identity()

    def forward(self, x):
        return self.after(self.same(self.fc(x)).mul_(2))


@pytest.mark.parametrize("inference", [False, True])
def test_cuda_a_tensor_that_is_met_again_gets_a_further_name(inference, tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(Restless() for _ in range(8))).cuda()
    x = torch.randn(64, 256, device="cuda")
    seen = {}

    def note(name):
        def hook(_module, args, output):
            seen[f"{name}/output"] = output.detach().cpu()

        return hook

    hooks = [module.register_forward_hook(note(f"root.{name}")) for name, module in model.named_modules() if name]
    with torch.inference_mode() if inference else torch.no_grad():
        with register_hook(model, DumpConfig(str(tmp_path), token_range=[0, 1])) as handle:
            for number in range(2):
                model(x + number)
    for hook in hooks:
        hook.remove()
    folder = Path(handle.folder)
    tensors = json.loads((folder / "manifest.json").read_text())["tensors"]
    assert tensors["failed"] == 0
    if not inference:
        first = (folder / "0" / "root.0.fc" / "output.pth").stat()
        assert first.st_ino == (folder / "0" / "root.0.same" / "input_0.pth").stat().st_ino
        assert tensors["linked"] >= 2 * 8 * 4
    for name, output in seen.items():
        stored = torch.load(folder / "1" / f"{name}.pth", weights_only=True)
        # `same` gives a tensor that is changed in place afterwards; hooks and recording both saw it before.
        assert torch.equal(stored.cpu(), output), name

"""Quantised dynamically and statically; torch.ao puts hooks and observers on the model, and swaps modules."""

import warnings

import torch
from listen import recorded

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
recorded(model)
x = torch.randn(4, 8)
print(model(x).tolist())
dynamic = torch.ao.quantization.quantize_dynamic(model)
print(dynamic, dynamic(x).tolist())
torch.save(dynamic.state_dict(), "dynamic.pt")
static = torch.nn.Sequential(torch.ao.quantization.QuantStub(), model, torch.ao.quantization.DeQuantStub()).eval()
recorded(static)
static.qconfig = torch.ao.quantization.get_default_qconfig(torch.backends.quantized.engine)
torch.ao.quantization.prepare(static, inplace=True)
static(x)
torch.ao.quantization.convert(static, inplace=True)
print(static, static(x).tolist())

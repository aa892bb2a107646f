"""Models that change their type, place and weights between calls."""

import torch
from listen import recorded

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
recorded(model)
x = torch.ones(2, 4)
for dtype in (torch.float64, torch.bfloat16, torch.float16, torch.float32):
    print(model.to(dtype)(x.to(dtype)).tolist())
state = {name: value + 1 for name, value in model.state_dict().items()}
print(model.load_state_dict(state), model(x).tolist())
meta = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)).to("meta")
recorded(meta)
print(meta(x.to("meta")))
print(meta.to_empty(device="cpu").load_state_dict(state, assign=True), meta(x).tolist())
with torch.device("meta"):
    recorded(other := torch.nn.Linear(4, 4))
    print(other(torch.ones(1, 4)).device)
with torch.autocast("cpu", torch.bfloat16):
    print(model(x).dtype)
with torch.inference_mode():
    print(model(x).is_inference())
print(model.share_memory()(x).tolist(), model.requires_grad_(False)(x).requires_grad)

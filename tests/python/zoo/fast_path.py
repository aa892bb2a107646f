"""torch's encoder has a faster way that it only takes without hooks: other bits, and nested tensors inside."""

import warnings

import torch
from listen import recorded

warnings.simplefilter("ignore")
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 2).eval()
recorded(model)
x = torch.randn(2, 5, 8)
mask = torch.tensor([[False] * 5, [False, False, False, True, True]])
for context in (torch.no_grad, torch.inference_mode, torch.enable_grad):
    with context():
        print(model(x).detach().view(torch.int32).tolist())
        print(model(x, src_key_padding_mask=mask).detach().view(torch.int32).tolist())
attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
recorded(attention)
with torch.no_grad():
    print([each.view(torch.int32).tolist() for each in attention(x, x, x)])

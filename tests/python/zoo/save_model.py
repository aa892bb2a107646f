"""A checkpoint of the model as a whole, not of its weights."""

import io

import torch
from listen import recorded

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2)).eval()
recorded(model)
x = torch.ones(2, 4)
print(model(x).tolist())
torch.save(model, "model.pt")
old = io.BytesIO()  # its bytes hold addresses
torch.save(model, old, _use_new_zipfile_serialization=False)
for content in (open("model.pt", "rb").read(), old.getvalue()):
    loaded = torch.load(io.BytesIO(content), weights_only=False)
    print(loaded, loaded(x).tolist(), len(content), b"ait_llm" in content)
torch.save(loaded, "again.pt")

"""A stand-in for torch_npu on machines without an NPU; see torchair.py beside it."""

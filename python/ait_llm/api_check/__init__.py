"""Pre-check of a training's torch APIs: record each call of one iteration, run each again on its own, and compare.

    import api_accuracy_checker.dump           # in the training script; or without a word in it:
    # ait api dump --exec "python train.py"
    # ait api check -forward forward_info_4711.json -backward backward_info_4711.json

See docs/api-check.md. Importing this package does not import torch.
"""

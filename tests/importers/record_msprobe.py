"""Records a small Llama model that generates three words with msprobe.

python record_msprobe.py FOLDER LEVEL TASK SUMMARY [FAULT]
"""

import json
import pathlib
import sys

import torch
import transformers


def make_model(faulty=False):
    torch.manual_seed(0)
    sizes = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).eval()
    if faulty:
        with torch.no_grad():
            model.model.layers[1].mlp.up_proj.weight[0] *= 3
    return model


def generate(model):
    with torch.no_grad():
        model.generate(torch.tensor([[1, 15, 7]]), max_new_tokens=3, min_new_tokens=3, do_sample=False)


def main(folder, level, task, summary, faulty=""):
    from msprobe.pytorch import PrecisionDebugger

    details = {"scope": [], "list": [], "data_mode": ["all"]}
    if task == "statistics":
        details["summary_mode"] = summary
    config = pathlib.Path(folder + ".json")
    config.write_text(
        json.dumps({"task": task, "dump_path": folder, "rank": [], "step": [], "level": level, task: details})
    )
    model = make_model(bool(faulty))
    debugger = PrecisionDebugger(config_path=str(config))
    debugger.start(model)
    generate(model)
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(*sys.argv[1:])

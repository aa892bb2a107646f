"""Pairs by hand: the script says which of its tensors is which file of the acceleration library.

Three steps: record the library, insert `dump_data` into the model's script, compare. The library's run has a wrong MLP
in layer 1. Writes to ./manual_mapping.
"""

import glob
import shutil
import subprocess

import torch
import transformers
from ait_llm.dump.manual_dump import dump_data, flush

OUT = "manual_mapping"
shutil.rmtree(OUT, ignore_errors=True)


def run(*words):
    subprocess.run(words, check=True)


# 1. The library's side, recorded from outside.
run("ait-llama", "--make-model", f"{OUT}/model")
llama = f"ait-llama --model {OUT}/model --tokens 1,15,7 --steps 1 --dtype fp16"
llama += " --fault scale@layer=1,op=Linear,index=6,size=0.1"
run("ait", "llm", "dump", "--exec", llama, "-o", f"{OUT}/my")
(recorded,) = glob.glob(f"{OUT}/my/ait_dump/tensors/0_*/0")

# 2. The model's script, with one line more where a tensor is to be compared.
model = transformers.AutoModelForCausalLM.from_pretrained(f"{OUT}/model", dtype=torch.float32).eval()
hidden_states = model.model.embed_tokens(torch.tensor([[1, 15, 7]]))
position = model.model.rotary_emb(hidden_states, torch.arange(3)[None])
with torch.no_grad():
    for number, layer in enumerate(model.model.layers):
        hidden_states = layer(hidden_states, position_embeddings=position)
        my_path = f"{recorded}/{number + 2}_Prefill_layer/after/outtensor0.bin"
        dump_data(
            token_id=0,
            data_id=f"layer {number}",
            golden_data=hidden_states,
            my_path=my_path,
            output_path=f"{OUT}/golden",
        )
flush()

# 3. All pairs at once.
(golden,) = glob.glob(f"{OUT}/golden/ait_dump/*_-1")
run("ait", "llm", "compare", "--golden-path", golden, "--output", f"{OUT}/report")

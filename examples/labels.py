"""Torch and the acceleration library side by side in one script that labels what belongs together.

    ait debug compare aclcmp --exec "python labels.py"

`set_label` marks one side of a pair: a tensor that is at hand (high-level), or a file that the library saves by itself
inside of its model (low-level). Writes to the current folder.
"""

import os
import subprocess

import ait_engine
import torch
import transformers
from ait_llm.dump.labels import gen_id, set_label, set_task_id

os.environ.update(ACLTRANSFORMER_SAVE_TENSOR="1", ACLTRANSFORMER_SAVE_TENSOR_RUNNER="SelfAttentionRunner")
subprocess.run(["ait-llama", "--make-model", "model"], check=True)
pta_model = transformers.AutoModelForCausalLM.from_pretrained("model", dtype=torch.float32).eval()
acl_model = ait_engine.Model("model", dtype="fp16")
seen = {}
attention = pta_model.model.layers[0].self_attn.o_proj
attention.register_forward_pre_hook(lambda module, args: seen.update(attention_output=args[0]))

for dialogue in ([1, 15, 7], [2, 9, 33, 5]):
    set_task_id()
    with torch.no_grad():
        logits = pta_model(torch.tensor([dialogue])).logits[:, -1]
    acl_model_out = torch.from_numpy(acl_model.prefill([dialogue]))

    data_id = gen_id()
    set_label("pta", data_id, logits)
    set_label("acl", data_id, acl_model_out)

    data_id = gen_id()
    set_label("pta", data_id, data_val=seen["attention_output"])
    set_label(
        "acl",
        data_id,
        tensor_path="0_LlamaPrefillModel/2_Prefill_layerGraphRunner/1_AttentionGraphRunner/5_SelfAttentionRunner"
        "/after/outTensor0.bin",
    )

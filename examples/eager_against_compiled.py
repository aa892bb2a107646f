"""An eager torch model against the same model compiled, where a compiler pass has gone wrong.

`faulty_pass` stands for any rewrite of a graph: in the second of four blocks it puts GELU for SiLU. The graph that
comes out of it is recorded node by node by ait's backend, the eager model module by module; who corresponds to whom is
found by data. Writes to ./eager_against_compiled.
"""

import shutil
import subprocess

import ait_llm.dump
import torch
from ait_llm import DumpConfig, register_hook

OUT = "eager_against_compiled"
shutil.rmtree(OUT, ignore_errors=True)


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 2 * width)
        self.act = torch.nn.SiLU()
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


def faulty_pass(graph_module, inputs):
    silus = [node for node in graph_module.graph.nodes if "silu" in str(node.target) or "act" in str(node.target)]
    node = silus[1]
    with graph_module.graph.inserting_before(node):
        wrong = graph_module.graph.call_function(torch.nn.functional.gelu, (node.args[0],))
    node.replace_all_uses_with(wrong)
    graph_module.graph.erase_node(node)
    graph_module.recompile()
    return ait_llm.dump.fx_backend(dump_path=f"{OUT}/my")(graph_module, inputs)


torch.manual_seed(0)
model = torch.nn.Sequential(*(Block(32) for _ in range(4))).eval()
x = torch.randn(6, 32)
with torch.no_grad():
    with register_hook(model, DumpConfig(f"{OUT}/golden")):
        model(x)
    torch.compile(model, backend=faulty_pass)(x)
command = ["ait", "llm", "compare", "-gp", f"{OUT}/golden/ait_dump", "-mp", f"{OUT}/my/msit_fx_dump", "-o", OUT]
subprocess.run(command, check=True)

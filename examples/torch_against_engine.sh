#!/usr/bin/env bash
# A model in torch against the same model on the acceleration library, where one kernel is wrong.
#
# The acceleration library is the one that comes with ait and computes on the CPU; `ait-llama` runs a model on it. Both
# runs are recorded without changing either program. Writes to ./torch_against_engine.
set -euo pipefail
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rm -rf torch_against_engine && mkdir torch_against_engine && cd torch_against_engine
prompt=1,15,7,22,3,81

ait-llama --make-model model
ait llm dump --probe torch --exec "python $examples/generate.py model $prompt 2" -er 0,1 -o golden
ait llm dump --exec "ait-llama --model model --tokens $prompt --steps 2 --dtype fp16 --fault scale@layer=1,op=SelfAttention,size=0.2" \
  -time 2 -o my
ait llm compare -gp golden/ait_dump -mp my/ait_dump -o report --html report.html

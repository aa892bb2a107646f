#!/usr/bin/env bash
# A model in fp16 against itself with int8 weights and activations (W8A8), both on the acceleration library.
#
# int8 is off by a percent everywhere, and that is no fault. The second quantised run has a norm that is 30 % too large.
# Writes to ./quantised.
set -euo pipefail
rm -rf quantised && mkdir quantised && cd quantised
run="ait-llama --model model --tokens 1,15,7,22,3,81 --steps 1"

ait-llama --make-model model
ait llm dump --exec "$run --dtype fp16" -time 2 -o float
ait llm dump --exec "$run --dtype w8a8" -time 2 -o healthy
ait llm dump --exec "$run --dtype w8a8 --fault scale@layer=2,op=RmsNorm,size=0.3" -time 2 -o faulty
for side in healthy faulty; do
  echo "== $side"
  ait llm compare -gp float/ait_dump -mp "$side/ait_dump" -o report
done

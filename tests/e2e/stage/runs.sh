# Links to recorded runs of one small llama, made once for all pages:
#
#   golden_run, torch_run   torch in float32
#   my_run                  torch in bfloat16; the down projection of layer 2 is 20 % too large
#   golden_in_bf16          torch in bfloat16, healthy
#   statistics_run          golden's statistics
#   library_run             the acceleration library in fp16; attention of layer 1 is 20 % too large
#   ait_dump                library_run's folder of that name
set -euo pipefail
runs=$SHARED/runs
(
  flock 9
  [ ! -d "$runs" ] || exit 0
  rm -rf "$runs.new"
  mkdir "$runs.new"
  cd "$runs.new"
  ait-llama --make-model model
  "$PYTHON" "$STAGE/torch_runs.py" model 1,15,7,22,3,81 3
  ln -s golden_run torch_run
  ait llm dump --exec "ait-llama --model model --tokens 1,15,7,22,3,81 --steps 3 --dtype fp16 --fault scale@layer=1,op=SelfAttention,size=0.2" \
    -er 0,1 -time 2 -o library_run
  mv "$runs.new" "$runs"
) 9>"$SHARED/lock"
for run in "$runs"/*_run "$runs/golden_in_bf16" "$runs/model" "$runs/library_run/ait_dump"; do ln -s "$run" .; done

#!/bin/bash
# LLNL Tuolumne: 2 nodes, a rank for each of the 4 MI300A of a node. Submit with: flux batch tuolumne.sh
# flux: --nodes=2
# flux: --exclusive
# flux: --queue=pbatch
# flux: --bank=BANK
# flux: --time-limit=30m
# flux: --job-name=train
# flux: --output=train-{{id}}.out

module load rocm
source "$HOME/envs/torch/bin/activate"

# Inside the job's own Flux instance, "flux run" with its map of cores; --setattr=rdzv_get_en=0 goes with alt_read.
# With partitioned APUs, # flux: --amd-gpumode=TPX above and --node-type tpx here.
hpclaunch run -- python3 train_ddp.py

#!/bin/bash -l
# tuolumne: 2 nodes, at most 01:00:00, queue pbatch, 8 ranks
# Written by: hpclaunch script --profile tuolumne -N 2 -t 1h -- python3 train_ddp.py
# Submit with: flux batch FILE
# --exclusive: ranks are placed on whole nodes
# flux: --exclusive
# flux: -N 2
# flux: -t 60m
# flux: -q pbatch
# flux: --job-name=train_ddp

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile tuolumne -- python3 train_ddp.py

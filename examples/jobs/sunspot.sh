#!/bin/bash -l
# sunspot: 2 nodes, at most 01:00:00, queue workq, 24 ranks
# Written by: hpclaunch script --profile sunspot -N 2 -t 1h -- python3 train_ddp.py
# Submit with: qsub FILE
# -l place=scatter, -k doe: one chunk per node; output grows while the job runs
#PBS -l place=scatter
#PBS -k doe
#PBS -l select=2
#PBS -l walltime=01:00:00
#PBS -A PROJECT
#PBS -q workq
#PBS -l filesystems=tegu:home
#PBS -N train_ddp
#PBS -j oe

cd "$PBS_O_WORKDIR" || exit 1

# Stack frameworks-2025.3 of sunspot.
module load frameworks || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile sunspot -- python3 train_ddp.py

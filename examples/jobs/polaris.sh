#!/bin/bash -l
# polaris: 2 nodes, at most 01:00:00, queue debug, 8 ranks
# Written by: hpclaunch script --profile polaris -N 2 -t 1h -- python3 train_ddp.py
# Submit with: qsub FILE
# -l place=scatter, -k doe: one chunk per node; output grows while the job runs
#PBS -l place=scatter
#PBS -k doe
#PBS -l select=2:system=polaris
#PBS -l walltime=01:00:00
#PBS -A PROJECT
#PBS -q debug
#PBS -l filesystems=home:eagle
#PBS -N train_ddp
#PBS -j oe

cd "$PBS_O_WORKDIR" || exit 1

# Stack today of polaris.
module use /soft/modulefiles || exit 1
module load conda || exit 1
conda activate base || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile polaris -- python3 train_ddp.py

#!/bin/bash -l
# fir: 2 nodes, at most 01:00:00, 8 ranks
# Written by: hpclaunch script --profile fir -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --gpus-per-node=h100:4: by the GPU's model: without it a job may be refused or start on another model
# --ntasks-per-node=4, -c 12, --mem=0: a job gets the cores that it asks for and 256 MB with each: memory goes
# with GPUs or cores, and 0 is all of a whole node
#SBATCH --gpus-per-node=h100:4
#SBATCH --ntasks-per-node=4
#SBATCH -c 12
#SBATCH --mem=0
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A def-PROJECT
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

# Stack StdEnv-2023 of fir.
module load StdEnv/2023 python/3.11 cuda/12.6 || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile fir -- python3 train_ddp.py

#!/bin/bash -l
# perlmutter: 2 nodes, at most 01:00:00, queue regular, 8 ranks
# Written by: hpclaunch script --profile perlmutter -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --constraint=gpu, --gpus-per-node=4: srun takes the GPUs from what sbatch was asked for; --gpu-bind=none then
# shows all of them to every rank
#SBATCH --constraint=gpu
#SBATCH --gpus-per-node=4
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A PROJECT
#SBATCH -q regular
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

# Stack pytorch of perlmutter.
module load pytorch/2.8.0 || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile perlmutter -- python3 train_ddp.py

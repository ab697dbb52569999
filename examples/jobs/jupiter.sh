#!/bin/bash -l
# jupiter: 2 nodes, at most 01:00:00, queue booster, 8 ranks
# Written by: hpclaunch script --profile jupiter -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --gres=gpu:4: the site's own default for jobs that name no GPUs; nodes are charged whole
#SBATCH --gres=gpu:4
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A PROJECT
#SBATCH -p booster
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

# Stack stages-2026 of jupiter.
module purge || exit 1
module load Stages/2026 GCCcore/.14.3.0 Python/3.13.5 CUDA/13 || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile jupiter -- python3 train_ddp.py

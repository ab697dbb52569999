#!/bin/bash -l
# daint: 2 nodes, at most 01:00:00, queue normal, 8 ranks
# Written by: hpclaunch script --profile daint -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --uenv=pytorch/v2.9.1:/user-environment, --view=default: PyTorch and its libraries are in this image; the view
# puts them on the paths
# --gpus-per-node=4: srun takes the GPUs from what sbatch was asked for; hpclaunch orders or masks them itself
#SBATCH --uenv=pytorch/v2.9.1:/user-environment
#SBATCH --view=default
#SBATCH --gpus-per-node=4
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A PROJECT
#SBATCH -p normal
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile daint -- python3 train_ddp.py

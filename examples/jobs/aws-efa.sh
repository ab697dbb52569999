#!/bin/bash -l
# aws-efa: 2 nodes, at most 01:00:00, 16 ranks
# Written by: hpclaunch script --profile aws-efa -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --gpus-per-node=8, --exclusive: srun shows to ranks only the GPUs that sbatch was asked for
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile aws-efa -- python3 train_ddp.py

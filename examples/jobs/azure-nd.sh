#!/bin/bash -l
# azure-nd: 2 nodes, at most 01:00:00, queue gpu, 16 ranks
# Written by: hpclaunch script --profile azure-nd -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --gpus-per-node=8, --exclusive, --mem=0: srun shows to ranks only the GPUs that sbatch was asked for; --mem=0
# is all memory of the node
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -p gpu
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile azure-nd -- python3 train_ddp.py

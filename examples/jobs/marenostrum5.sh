#!/bin/bash -l
# marenostrum5: 2 nodes, at most 01:00:00, queue acc_ehpc, 8 ranks
# Written by: hpclaunch script --profile marenostrum5 -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --gres=gpu:4: a job gets the GPUs that it asks for, and the CPUs that go with them: 20 each
# --ntasks-per-node=4, -c 20: the 80 CPUs of a node: the site requires 20 for each GPU
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=4
#SBATCH -c 20
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A PROJECT
#SBATCH -q acc_ehpc
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile marenostrum5 -- python3 train_ddp.py

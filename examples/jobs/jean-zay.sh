#!/bin/bash -l
# jean-zay: 2 nodes, at most 01:00:00, 8 ranks
# Written by: hpclaunch script --profile jean-zay -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --constraint=h100: without the constraint a job is one for V100, and an account for H100 is refused
# --gres=gpu:4, --ntasks-per-node=4, --cpus-per-task=24: a job gets the cores that it asks for, and memory with
# each of them
# --hint=nomultithread: hardware threads are on, and --cpus-per-task counts them unless the job says this
#SBATCH --constraint=h100
#SBATCH --gres=gpu:4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=24
#SBATCH --hint=nomultithread
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A PROJECT@GPU
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

# Stack pytorch-h100 of jean-zay.
module purge || exit 1
module load arch/h100 pytorch-gpu/py3/2.8.0 || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile jean-zay -- python3 train_ddp.py

#!/bin/bash -l
# leonardo: 2 nodes, at most 01:00:00, 8 ranks
# Written by: hpclaunch script --profile leonardo -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --partition=boost_usr_prod, --gres=gpu:4: without a partition a job goes to lrd_all_serial, which has 4 cores
# and no GPUs
# --exclusive, --ntasks-per-node=4, --cpus-per-task=8: jobs share nodes and get only the cores that they ask for
# --mem=494000: memory is given by the core unless it is asked for; this is what a Booster node has for jobs
#SBATCH --partition=boost_usr_prod
#SBATCH --gres=gpu:4
#SBATCH --exclusive
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --mem=494000
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A PROJECT
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

# Stack cineca-ai of leonardo.
module load profile/deeplrn cineca-ai/4.3.0 || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile leonardo -- python3 train_ddp.py

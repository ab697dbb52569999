#!/bin/bash -l
# lumi-g: 2 nodes, at most 01:00:00, queue standard-g, 16 ranks
# Written by: hpclaunch script --profile lumi-g -N 2 -t 1h -- singularity run container.sif python3 train_ddp.py
# Submit with: sbatch FILE
# --gpus-per-node=8, --exclusive, --mem=0: masks of cores are accepted only where the job has the whole node,
# and srun takes the GPUs from what sbatch was asked for
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A project_PROJECT
#SBATCH -p standard-g
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

# Stack lumi-aif of lumi-g.
module purge || exit 1
module use /appl/local/laifs/modules || exit 1
module load lumi-aif-singularity-bindings || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile lumi-g -- singularity run container.sif python3 train_ddp.py

#!/bin/bash -l
# frontier: 2 nodes, at most 01:00:00, queue batch, 16 ranks
# Written by: hpclaunch script --profile frontier -N 2 -t 1h -- python3 train_ddp.py
# Submit with: sbatch FILE
# --network=disable_rdzv_get: alt_read needs an allocation whose network has no rendezvous get
# Decided without the job's environment: rule alt-read-allocation holds (value.FI_CXI_RDZV_PROTO = alt_read)
#SBATCH --network=disable_rdzv_get
#SBATCH -N 2
#SBATCH -t 01:00:00
#SBATCH -A PROJECT
#SBATCH -p batch
#SBATCH -C nvme
#SBATCH -J train_ddp

cd "$SLURM_SUBMIT_DIR" || exit 1

# A job submitted with --export=NONE would keep its variables from the ranks.
export SLURM_EXPORT_ENV=ALL

# Stack rocm-7.1 of frontier.
module load PrgEnv-gnu/8.7.0 cpe/26.03 miniforge3/23.11.0-0 rocm/7.1.1 rccl-net-plugin craype-accel-amd-gfx90a || exit 1

command -v hpclaunch >/dev/null || {
  echo 'hpclaunch is not on PATH in this job: add its directory to PATH here' >&2
  exit 127
}

# The job ends with the exit status of this line. hpclaunch plan shows what it does.
hpclaunch run --profile frontier -- python3 train_ddp.py

#!/bin/bash
#SBATCH --nodes=2
# SBATCH --nodes=4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=a100:4
#SBATCH --time=1-02:00:00
set -euo pipefail
module load cuda
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29500
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export NCCL_DEBUG=WARN
srun --ntasks-per-node=1 mkdir -p /tmp/cache
srun --cpus-per-task=8 python train.py --lr 0.1 | tee log
srun --ntasks-per-node=1 --cpus-per-task=32 bash -c 'torchrun --nproc_per_node=4 --nnodes=2 --node_rank $SLURM_NODEID --master_addr $MASTER_ADDR --master_port 29501 train.py'
srun --cpus-per-task=8 apptainer exec --nv image.sif python train.py

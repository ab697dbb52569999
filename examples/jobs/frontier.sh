#!/bin/bash
# OLCF Frontier: 2 nodes, a rank for each of the 8 GCDs of a node. Submit with: sbatch frontier.sh
#SBATCH -A PROJECT
#SBATCH -J train
#SBATCH -o %x-%j.out
#SBATCH -p batch
#SBATCH -t 00:30:00
#SBATCH -N 2
# The profile sets FI_CXI_RDZV_PROTO=alt_read, which needs an allocation with this:
#SBATCH --network=disable_rdzv_get

module load PrgEnv-gnu/8.7.0 cpe/26.03 miniforge3/23.11.0-0 rocm/7.1.1 rccl-net-plugin craype-accel-amd-gfx90a
source activate "$HOME/envs/torch"

# -c7 --gpus-per-task=1 --gpu-bind=closest; MIOpen's cache is made on every node, for this job alone.
hpclaunch run -- python3 train_ddp.py

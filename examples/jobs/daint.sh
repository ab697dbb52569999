#!/bin/bash
# CSCS Daint (Alps): 2 nodes, a rank for each of the 4 GH200 of a node. Submit with: sbatch daint.sh
#SBATCH --account=PROJECT
#SBATCH --job-name=train
#SBATCH --output=%x-%j.out
#SBATCH --partition=normal
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --uenv=pytorch/v2.9.1:v2
#SBATCH --view=default

# The uenv of the job is what PyTorch comes from, and srun gives it to the ranks.
hpclaunch run -- python3 train_ddp.py

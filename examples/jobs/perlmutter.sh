#!/bin/bash
# NERSC Perlmutter: 2 nodes, a rank for each of the 4 GPUs of a node. Submit with: sbatch perlmutter.sh
#SBATCH --account=PROJECT
#SBATCH --job-name=train
#SBATCH --output=%x-%j.out
#SBATCH --qos=regular
#SBATCH --time=00:30:00
#SBATCH --constraint=gpu
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4

module load pytorch

# GPU i lies beside the NUMA node 3 - i: ranks take the NUMA nodes backwards, so that rank i has GPU i.
hpclaunch run -- python3 train_ddp.py

#!/bin/bash
# Alliance, Trillium: 2 nodes with 4 H100 each, 24 cores for each. Submit with: sbatch trillium.sh
#SBATCH --account=def-PROJECT
#SBATCH --job-name=train
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --gpus-per-node=h100:4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=24
# Whole nodes come with all of their memory.

module load StdEnv/2023 python/3.11
# $HOME can only be read here: checkpoints belong under $SCRATCH.
source "$HOME/envs/torch/bin/activate"

hpclaunch run -- python3 train_ddp.py

#!/bin/bash
# Alliance, Nibi: 2 nodes with 8 H100 each, 14 cores for each. Submit with: sbatch nibi.sh
#SBATCH --account=def-PROJECT
#SBATCH --job-name=train
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --gpus-per-node=h100:8
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=14
#SBATCH --mem=2000G

module load StdEnv/2023 python/3.11
# Made beforehand: virtualenv --no-download, then pip install --no-index torch (2.5.1 or newer for H100).
source "$HOME/envs/torch/bin/activate"

hpclaunch run -- python3 train_ddp.py

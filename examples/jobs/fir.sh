#!/bin/bash
# Alliance, Fir: 2 nodes with 4 H100 each, 12 cores for each. Submit with: sbatch fir.sh
#SBATCH --account=def-PROJECT
#SBATCH --job-name=train
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --gpus-per-node=h100:4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=12
#SBATCH --mem=1120G

module load StdEnv/2023 python/3.11
# Made beforehand: virtualenv --no-download, then pip install --no-index torch (2.5.1 or newer for H100).
source "$HOME/envs/torch/bin/activate"

hpclaunch run -- python3 train_ddp.py

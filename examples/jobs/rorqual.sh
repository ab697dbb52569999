#!/bin/bash
# Alliance, Rorqual: 2 nodes with 4 H100 each, 16 cores for each. Submit with: sbatch rorqual.sh
#SBATCH --account=def-PROJECT
#SBATCH --job-name=train
#SBATCH --output=%x-%j.out
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --gpus-per-node=h100:4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --mem=496G

module load StdEnv/2023 python/3.11
# Compute nodes have no internet: the environment was made beforehand, with pip install --no-index torch.
source "$HOME/envs/torch/bin/activate"

hpclaunch run -- python3 train_ddp.py

#!/bin/bash
# Alliance, Béluga: a node with 4 V100, 10 cores for each. Was submitted with: sbatch beluga.sh
# RETIRED on 2025-07-31, and replaced by Rorqual: use rorqual.sh. Kept to show what such a job was.
#SBATCH --account=def-PROJECT
#SBATCH --job-name=train
#SBATCH --output=%N-%j.out
#SBATCH --time=0-03:00
#SBATCH --nodes=1
#SBATCH --gpus-per-node=v100:4
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=10
#SBATCH --mem=191000M

module load StdEnv/2023 python/3.11
source "$HOME/envs/torch/bin/activate"
hpclaunch run -- python3 train_ddp.py

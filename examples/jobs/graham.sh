#!/bin/bash
# Alliance, Graham: one GPU and its share of a node. Was submitted with: sbatch graham.sh
# RETIRED on 2025-09-01, and replaced by Nibi: use nibi.sh. Kept to show what such a job was.
#SBATCH --account=def-PROJECT
#SBATCH --job-name=train
#SBATCH --output=%N-%j.out
#SBATCH --time=0-03:00
#SBATCH --nodes=1
#SBATCH --gpus-per-node=p100:1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64000M

module load StdEnv/2023 python/3.11
source "$HOME/envs/torch/bin/activate"
hpclaunch run -- python3 train_ddp.py

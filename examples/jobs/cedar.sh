#!/bin/bash
# Alliance, Cedar: one GPU and its share of a node. Was submitted with: sbatch cedar.sh
# RETIRED on 2025-09-12, and replaced by Fir: use fir.sh. Kept to show what such a job was.
#SBATCH --account=def-PROJECT
#SBATCH --job-name=train
#SBATCH --output=%N-%j.out
#SBATCH --time=0-03:00
#SBATCH --nodes=1
#SBATCH --gpus-per-node=p100:1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=6
#SBATCH --mem=32000M

module load StdEnv/2023 python/3.11
source "$HOME/envs/torch/bin/activate"

# A part of a node: cores and GPU are what the job was given, found out when it runs.
hpclaunch run -- python3 train_ddp.py

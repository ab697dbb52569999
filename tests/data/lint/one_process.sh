#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=4
#SBATCH --array=0-3
source env/bin/activate
python train.py --config config.yaml
# expect 6 nodes-unused

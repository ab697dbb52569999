#!/bin/bash -l
# LUMI-G: 2 nodes, a rank for each of the 8 GCDs of a node. Submit with: sbatch lumi-g.sh
#SBATCH --account=project_PROJECT
#SBATCH --job-name=train
#SBATCH --output=%x-%j.out
#SBATCH --partition=standard-g
#SBATCH --time=00:30:00
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --exclusive

module purge
module use /appl/local/containers/ai-modules
module load singularity-AI-bindings

# PyTorch comes in a container, which every rank enters for itself: binding and variables go with it.
container=/appl/local/containers/sif-images/lumi-pytorch-rocm-6.2.4-python-3.12-pytorch-v2.7.0.sif
hpclaunch run -- singularity exec "$container" python3 train_ddp.py

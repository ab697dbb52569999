#!/bin/bash -l
# ALCF Polaris: 2 nodes, a rank for each of the 4 GPUs of a node. Submit with: qsub polaris.sh
#PBS -A PROJECT
#PBS -q debug-scaling
#PBS -l select=2:system=polaris
#PBS -l place=scatter
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:eagle
#PBS -k doe
#PBS -j oe

cd "$PBS_O_WORKDIR" || exit 1
module use /soft/modulefiles
module load conda
conda activate base

# Each rank sees one GPU, as device 0: the one beside its cores (they are counted backwards here).
hpclaunch run -- python3 train_ddp.py

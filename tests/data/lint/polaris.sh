#!/bin/bash -l
# The settings of the PyTorch page for Polaris in a job of two nodes.
#PBS -l select=2:ncpus=64:ngpus=4:mpiprocs=4
#PBS -l walltime=0:30:00
#PBS -A project
module load conda
conda activate
NNODES=$(wc -l < $PBS_NODEFILE)
export NCCL_COLLNET_ENABLE=1
export NCCL_NET_GDR_LEVEL=PHB
mpiexec -n 8 --ppn 4 --cpu-bind verbose,list:0,8,16,24 python train.py
# expect 8 node-file-lines
# expect 11 cpu-list-one-group

#!/bin/bash -l
# ALCF Aurora: 2 nodes, a rank for each of the 12 tiles of a node. Submit with: qsub aurora.sh
#PBS -A PROJECT
#PBS -q debug-scaling
#PBS -l select=2
#PBS -l place=scatter
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:flare
#PBS -k doe
#PBS -j oe

cd "$PBS_O_WORKDIR" || exit 1
module load frameworks

# 12 ranks per node, oneCCL's settings, the list of cores and --pmi=pmix follow from the profile;
# "hpclaunch explain" says why, "hpclaunch plan" shows where each rank will be.
hpclaunch run -- python3 train_ddp.py

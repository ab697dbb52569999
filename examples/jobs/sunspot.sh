#!/bin/bash -l
# ALCF Sunspot, Aurora's test bed: the same node, so the same job. Submit with: qsub sunspot.sh
#PBS -A PROJECT
#PBS -q workq
#PBS -l select=2
#PBS -l place=scatter
#PBS -l walltime=00:30:00
#PBS -l filesystems=home
#PBS -k doe
#PBS -j oe

cd "$PBS_O_WORKDIR" || exit 1
module load frameworks
hpclaunch run -- python3 train_ddp.py

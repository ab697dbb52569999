#!/bin/bash -l
# The launch with Copper of the guide to AI frameworks at scale.
#PBS -l select=2
#PBS -l walltime=0:30:00
#PBS -A project
module load frameworks
module load copper
launch_copper.sh
NRANKS=24
RANKS_PER_NODE=12
time mpirun --np ${NRANKS} --ppn ${RANKS_PER_NODE} --cpu-bind=list:4:9:14:19:20:25:56:61:66:71:74:79 --genvall --genv=PYTHONPATH=/tmp/${USER}/copper/lus/flare/projects/p/packages python3 train.py
# expect 11 path-replaced

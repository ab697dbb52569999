#!/bin/bash
#BSUB -nnodes 2
#BSUB -n 8
export MASTER_ADDR=localhost
jsrun -n 8 -a 1 python train.py
# expect 4 address-loopback

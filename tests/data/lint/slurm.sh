#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=a100:4
#SBATCH --time=1h
export MASTER_ADDR=localhost
export MASTER_PORT=29500
export NCCL_IB_DISABLE=1
export CUDA_VISIBLE_DEVICES=0
export FI_CXI_RDZV_PROTO=alt_read
OMP_NUM_THREADS=16
mkdir -p /tmp/miopen
srun python train.py | tee log
srun --ntasks-per-node=4 torchrun --nproc_per_node=8 --nnodes=2 --node_rank 0 train.py
torchrun --nproc-per-node 8 --nnodes=2 train.py
srun apptainer exec image.sif python train.py &
# expect 6 bad-time
# expect 7 address-loopback
# expect 9 slow-setting
# expect 10 one-device-for-all
# expect 11 alt-read-without-flag
# expect 12 not-exported
# expect 13 folder-on-first-node
# expect 14 srun-cpus-per-task
# expect 14 status-of-pipe
# expect 15 srun-cpus-per-task
# expect 15 launcher-in-launcher
# expect 15 rendezvous-missing
# expect 15 workers-above-devices
# expect 15 node-rank-constant
# expect 16 one-node-only
# expect 16 rendezvous-missing
# expect 16 workers-above-devices
# expect 17 no-wait
# expect 17 srun-cpus-per-task
# expect 17 container-without-devices

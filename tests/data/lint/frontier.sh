#!/bin/bash
# The job of the PyTorch page for Frontier, and the settings that the page recommends further down.
#SBATCH -A PROJECT_ID
#SBATCH -J ddp_test
#SBATCH -o logs/ddp_test-%j.o
#SBATCH -t 00:05:00
#SBATCH -p batch
#SBATCH -N 2
unset SLURM_EXPORT_ENV
module load PrgEnv-gnu/8.5.0
module load rocm/5.7.1
module load craype-accel-amd-gfx90a
module load miniforge3/23.11.0-0
source activate /path/to/my_env
export MASTER_ADDR=$(hostname -i)
export MIOPEN_USER_DB_PATH="/tmp/my-miopen-cache"
export MIOPEN_CUSTOM_CACHE_DIR=${MIOPEN_USER_DB_PATH}
rm -rf ${MIOPEN_USER_DB_PATH}
mkdir -p ${MIOPEN_USER_DB_PATH}
export LD_LIBRARY_PATH=${PATH TO THE PLUGIN}/lib/:${LD_LIBRARY_PATH}
NCCL_CROSS_NIC=1
export FI_CXI_RDZV_PROTO=alt_read
srun -N2 -n16 -c7 --gpus-per-task=1 --gpu-bind=closest python3 -W ignore -u ./multinode_olcf.py 2000 10 --master_addr=$MASTER_ADDR --master_port=3442
# expect 14 placeholder
# expect 16 shared-fixed-folder
# expect 17 shared-fixed-folder
# expect 19 folder-on-first-node
# expect 20 bad-substitution
# expect 21 not-exported
# expect 22 alt-read-without-flag
# expect 23 devices-per-task

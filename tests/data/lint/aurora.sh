#!/bin/bash -l
# The settings and the launch of the PyTorch page for Aurora, as it stood when it was written for 512 nodes.
#PBS -l select=512
#PBS -l place=scatter
#PBS -l walltime=1:59:00
#PBS -q EarlyAppAccess
#PBS -A Aurora_deployment
#PBS -l filesystems=home
#PBS -k doe
#PBS -e /home/$USER/path/to/errordir
#PBS -o /home/$USER/path/to/outdir
#PBS -j oe
#PBS -N a.name.for.the.job

NNODES=`wc -l < $PBS_NODEFILE`
NRANKS_PER_NODE=12
let NRANKS=${NNODES}*${NRANKS_PER_NODE}

export FI_CXI_DEFAULT_CQ_SIZE=131072
export FI_CXI_OFLOW_BUF_SIZE=8388608
export FI_CXI_CQ_FILL_PERCENT=20
export FI_LOG_LEVEL=warn
export FI_LOG_PROV=cxi
export MPIR_CVAR_ENABLE_GPU=0
export CCL_KVS_GET_TIMEOUT=600
DATA_FORMAT="channels_last"
export IPEX_FP32_MATH_MODE=TF32

module use /soft/modulefiles
module load frameworks
export NUMEXPR_NUM_THREADS=64

export FI_CXI_DEFAULT_CQ_SIZE=131072
export FI_CXI_OVFLOW_BUF_SIZE=8388608
export FI_CXI_CQ_FILL_PERCENT=20
export FI_LOG_LEVEL=warn
export FI_LOG_PROV=cxi
export CCL_KVS_GET_TIMEOUT=600
export LD_LIBRARY_PATH=$CCL_ROOT/lib:$LD_LIBRARY_PATH
export CPATH=$CCL_ROOT/include:$CPATH
export LIBRARY_PATH=$CCL_ROOT/lib:$LIBRARY_PATH
export CCL_PROCESS_LAUNCHER=pmix
export CCL_ATL_TRANSPORT=mpi
export CCL_ALLREDUCE=topo
export CCL_ALLREDUCE_SCALEOUT=rabenseifner
export CCL_BCAST=double_tree
export CCL_KVS_MODE=mpi
export CCL_CONFIGURATION_PATH=""
export CCL_CONFIGURATION=cpu_gpu_dpcpp
export CCL_KVS_CONNECTION_TIMEOUT=600
export CCL_ZE_CACHE_OPEN_IPC_HANDLES_THRESHOLD=1024
export CCL_KVS_USE_MPI_RANKS=1
export CCL_LOG_LEVEL="WARN"
export CPU_BIND="verbose,list:2-4:10-12:18-20:26-28:34-36:42-44:54-56:62-64:70-72:78-80:86-88:94-96"
HOROVOD_THREAD_AFFINITY="4,12,20,28,36,44,56,64,72,80,88,96"
CCL_WORKER_AFFINITY="5,13,21,29,37,45,57,65,73,81,89,97"
ulimit -c 0
mpiexec -np ${NRANKS} -ppn ${NRANKS_PER_NODE} --cpu-bind ${CPU_BIND} python path/to/application.py
# expect 6 retired
# expect 10 variable-in-directive
# expect 11 variable-in-directive
# expect 17 let-command
# expect 20 export-before-module
# expect 20 harmful-setting
# expect 24 export-before-module
# expect 24 harmful-setting
# expect 26 not-exported
# expect 33 unneeded-setting
# expect 34 unknown-variable
# expect 49 setting-without-effect
# expect 55 not-exported
# expect 56 not-exported
# expect 42 pmix-without-option

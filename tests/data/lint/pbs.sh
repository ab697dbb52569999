#!/bin/bash -l
#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4
#PBS -l walltime=01:00:00
NNODES=`wc -l < $PBS_NODEFILE`
NRANKS_PER_NODE=4
NTOTRANKS=$(( NNODES * NRANKS_PER_NODE ))
export ZE_FLAT_DEVICE_HIERARCHY=FLAT
export ZE_AFFINITY_MASK=0.0,0.1
export CCL_WORKER_AFFINITY=1,2,3
mpiexec -n ${NTOTRANKS} --ppn ${NRANKS_PER_NODE} --depth=8 --cpu-bind list:0,8,16,24 -env OMP_NUM_THREADS=16 ./a.out
mpiexec -n 8 --ppn 4 --cpu-bind verbose,list:0-7:8-15:16-32:24-31 ./a.out
mpiexec -n 7 --ppn 4 --cpu-bind list:0-7:8-15:16-23 ./a.out
# expect 4 node-file-lines
# expect 8 affinity-mask-form
# expect 9 worker-affinity-length
# expect 10 threads-above-cores
# expect 10 cpu-list-one-group
# expect 11 cpu-list-overlap
# expect 12 ranks-uneven
# expect 12 cpu-list-length

#!/bin/bash -l
# Four ranks on each tile, by the PyTorch page for Aurora; then what people add to it.
#PBS -l select=1
#PBS -l walltime=0:30:00
#PBS -A project
export ZEX_NUMBER_OF_CCS=0:4,1:4,2:4,3:4,4:4,5:4,6:4,7:4,8:4,9:4,10:4,11:4
BIND_LIST="1:2:4:6:8:10:12:14:16:18:20:22:24:26:28:30:32:34:36:38:40:42:44:46:53:54:56:58:60:62:64:66:68:70:72:74:76:78:80:82:84:86:88:90:92:94:96:98"
mpiexec --pmi=pmix --envall -n 48 --ppn 48 --cpu-bind=verbose,list:${BIND_LIST} python training_script.py --ppd=4
export CCL_ALLREDUCE_SCALEOUT=direct:0-1048576;rabenseifner:1048577-max
export ZE_FLAT_DEVICE_HIERARCHY=FLAT
export ZE_AFFINITY_MASK=0.0,0.1
LOCAL_TILE=$((PMIX_RANK % 12))
mpiexec -n 12 --ppn 12 --cpu-bind list:1-8:9-16 --gpu-bind list:0.0:0.1 python train.py $LOCAL_TILE
# expect 9 unquoted-semicolon
# expect 11 affinity-mask-form
# expect 12 global-rank-as-local
# expect 13 cpu-list-length
# expect 10 gpu-bind-flat

#!/bin/sh
# Written by hpclaunch: what `hpclaunch run` would do, for any POSIX shell.

# host of rank 0
export MASTER_ADDR=node01
# would move threads
unset OMP_PLACES
export NOTE='it'\''s $HOME'

exec /usr/bin/mpiexec.hydra \
  -n 24 \
  -ppn 12 \
  -hosts node01,node02 \
  -bind-to user:1-8,105-112,9-16,113-120,17-24,121-128,25-32,129-136,33-40,137-144,41-48,145-152,53-60,157-164,61-68,165-172,69-76,173-180,77-84,181-188,85-92,189-196,93-100,197-204 \
  -genvall \
  /opt/libexec/hpclaunch-shim \
  /usr/bin/python3 \
  -u train.py \
  --epochs 3 \
  --fast \
  '--out=a b;c'

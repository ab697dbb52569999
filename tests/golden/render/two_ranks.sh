#!/bin/sh
# Written by hpclaunch: what `hpclaunch run` would do, for any POSIX shell.

exec /usr/bin/python3 train.py --name 'it'\''s mine' --lr -3e-4

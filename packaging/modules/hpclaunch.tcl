#%Module
# Environment Modules. The installation is where this file is: share/modulefiles/hpclaunch/VERSION
set prefix [file dirname [file dirname [file dirname [file dirname [file normalize $ModulesCurrentModulefile]]]]]
module-whatis "hpclaunch: launcher and environment configuration for distributed PyTorch jobs"
proc ModulesHelp {} { puts stderr "hpclaunch run -n 2 -- python3 train.py; see man hpclaunch" }
conflict hpclaunch
prepend-path PATH $prefix/bin
prepend-path MANPATH $prefix/share/man

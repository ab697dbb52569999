-- Lmod. The installation is where this file is: share/modulefiles/hpclaunch/VERSION.lua
local prefix = myFileName():match("^(.*)/share/modulefiles/hpclaunch/[^/]*$")
whatis("Name: hpclaunch")
whatis("Version: " .. myModuleVersion())
whatis("Description: launcher and environment configuration for distributed PyTorch jobs")
help([[hpclaunch run -n 2 -- python3 train.py; see man hpclaunch]])
conflict("hpclaunch")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))

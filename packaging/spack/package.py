# Recipe for Spack 0.23 and newer. Use it from a repository of your own:
#   spack repo create ~/hpc-tools && mkdir -p ~/hpc-tools/packages/hpclaunch
#   cp package.py ~/hpc-tools/packages/hpclaunch/ && spack repo add ~/hpc-tools
#   spack dev-build hpclaunch@main        (in a clone of the sources)
from spack.package import *


class Hpclaunch(CMakePackage):
    """Launcher and environment configuration for distributed PyTorch jobs."""

    license("Apache-2.0")

    version("main")

    variant("tests", default=False, description="Build the tests")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fmt@8:")
    depends_on("cli11@2.1:")
    depends_on("nlohmann-json@3.9:")
    depends_on("hwloc@2.3:2")
    depends_on("catch2@2.13:", type="build", when="+tests")
    depends_on("python@3:", type="build", when="+tests")

    conflicts("%gcc@:10", msg="hpclaunch is written in C++20 and needs GCC 11 or newer")
    conflicts("%clang@:13", msg="hpclaunch is written in C++20 and needs Clang 14 or newer")

    def cmake_args(self):
        return [
            # All libraries come from Spack.
            self.define("HPCLAUNCH_FETCH", "OFF"),
            self.define_from_variant("HPCLAUNCH_TESTS", "tests"),
        ]

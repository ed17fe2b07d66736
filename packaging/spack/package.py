# SPDX-License-Identifier: BSD-3-Clause
"""For Spack. Nobody has run it yet. Copy it to <repository>/packages/muster/package.py, and say
where the sources are:

    spack dev-build -d <clone> muster@main
"""
from spack.package import *


class Muster(CMakePackage):
    """Barriers and locks for threads, processes and MPI programs that know where their
    participants sit."""

    license("BSD-3-Clause")

    version("main")

    variant("tools", default=False, description="The command muster: benchmarks, model, checker")
    variant("mpi", default=False, description="What makes MPI_Barrier faster, for the MPI here")
    variant("shared", default=True, description="libmuster.so; libmuster.a without")

    conflicts("~shared", when="+tools")
    conflicts("~shared", when="+mpi")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2:")
    depends_on("fmt@9:")
    depends_on("mpi", when="+mpi")
    with when("+tools"):
        depends_on("nlohmann-json")
        depends_on("cli11")
        depends_on("boost+context")

    def cmake_args(self):
        return [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("MUSTER_PROGRAMS", "tools"),
            self.define_from_variant("MUSTER_MPI", "mpi"),
            self.define("MUSTER_MEMORY", False),
            self.define("MUSTER_TESTS", False),
        ]

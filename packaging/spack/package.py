# SPDX-License-Identifier: BSD-3-Clause
"""Run with Spack 0.23.0 and 1.2.0.dev0, GCC 12 and Debian 12's packages as externals: dev-build of
the default, ~shared and +tools+mpi, and spack test; with 0.23.0 of +mpi and +tools, too.

    spack repo create <folder> local        # says what to `spack repo add`
    cp packaging/spack/package.py <that>/packages/muster/
    spack dev-build -d <clone> muster@main

Spack's own repository has another muster, a library of clusterings: the one added last goes first.
"""
from spack.package import *

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:  # before Spack 1.0 spack.package has it
    pass


class Muster(CMakePackage):
    """Barriers and locks for threads, processes and MPI programs that know where their
    participants sit."""

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("tools", default=False, description="The command muster: benchmarks, model, checker")
    variant("mpi", default=False, description="What makes MPI_Barrier faster, for the MPI here")
    variant("shared", default=True, description="libmuster.so; libmuster.a without")

    conflicts("~shared", when="+tools", msg="the command muster wants libmuster.so")
    conflicts("~shared", when="+mpi", msg="MPI programs load libmuster.so")
    conflicts("%gcc@:11")
    conflicts("%clang@:13")
    requires("platform=linux")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2.4:")
    depends_on("fmt@9:")
    depends_on("mpi", when="+mpi")
    with when("+tools"):
        depends_on("boost@1.74:+context")
        depends_on("cli11@2.1:")
        depends_on("nlohmann-json@3.9:")
        depends_on("python@3:", type=("build", "run"))

    sanity_check_is_file = [join_path("include", "muster", "muster.h")]

    def cmake_args(self):
        return [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("MUSTER_PROGRAMS", "tools"),
            self.define_from_variant("MUSTER_MPI", "mpi"),
            self.define("MUSTER_MEMORY", False),
            self.define("MUSTER_TESTS", False),
            self.define("MUSTER_CLANGXX", ""),  # not the system's, for a benchmark's peer
        ]

    @run_after("install", when="+mpi ^openmpi")
    def install_component(self):
        cmake("--install", self.build_directory, "--component", "openmpi")

    def setup_run_environment(self, env):
        if self.spec.satisfies("+mpi ^openmpi"):
            path = "SYSTEM_DEFAULT:" + self.prefix.lib.openmpi
            env.set("OMPI_MCA_mca_base_component_path", path)

    def test_topo(self):
        """the command prints this machine's tree"""
        if self.spec.satisfies("~tools"):
            raise SkipTest("built without the command muster")
        Executable(self.prefix.bin.muster)("topo")

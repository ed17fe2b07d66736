# SPDX-License-Identifier: BSD-3-Clause
"""libmuster for Conan 2, from this tree: `conan create packaging/conan`. hwloc and {fmt} are the
system's, as the topology of a machine is (`-c tools.system.package_manager:mode=install`)."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.system.package_manager import Apt, Dnf, Zypper

ROOT = os.path.join("..", "..")


class MusterConan(ConanFile):
    name = "muster"
    license = "BSD-3-Clause"
    description = "Barriers and locks that know where their participants sit"
    topics = ("barrier", "lock", "numa", "synchronization")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": True, "fPIC": True}
    implements = ["auto_shared_fpic"]

    def set_version(self):
        project = load(self, os.path.join(self.recipe_folder, ROOT, "CMakeLists.txt"))
        self.version = re.search(r"^  VERSION (\S+)", project, re.M)[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, ROOT)
        for pattern in ("CMakeLists.txt", "LICENSE", "*.md", "cmake/*", "src/*", "include/*",
                        "doc/*", "examples/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Muster runs on Linux")

    def system_requirements(self):
        Apt(self).install(["libhwloc-dev", "libfmt-dev", "pkg-config"])
        Dnf(self).install(["hwloc-devel", "fmt-devel", "pkgconf"])
        Zypper(self).install(["hwloc-devel", "fmt-devel", "pkg-config"])

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("PROGRAMS", "MPI", "MEMORY", "TESTS"):
            toolchain.cache_variables["MUSTER_" + part] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        # Our own CMake files serve, with what an archive is made of.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "muster")]
        self.cpp_info.libs = ["muster"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["hwloc", "fmt", "stdc++", "m", "pthread"]

# SPDX-License-Identifier: BSD-3-Clause
"""A user's project, test/install/consumer, against the package."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class ConsumerConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "CMakeDeps", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self, build_folder=os.path.join("..", "..", "..", "build", "conan"))

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=os.path.join("..", "..", "..", "test", "install",
                                                         "consumer"))
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ("consumer_c", "consumer_cpp"):
                self.run(os.path.join(self.cpp.build.bindir, program), env="conanrun")

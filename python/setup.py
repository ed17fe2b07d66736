# SPDX-License-Identifier: BSD-3-Clause
# A wheel for any CPython from 3.9 on, which needs nothing but the C++ runtime: pip wheel ./python
import os
import re
import sysconfig

from setuptools import Extension, setup

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
parts = [
    "machine/cgroup", "machine/hardware", "machine/identity", "machine/usable_cpus",
    "memory/fd_server", "memory/memory_room", "memory/pages", "memory/segment",
    "memory/segment_header", "wait/futex_lot", "wait/policy",
]
with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as file:
    version = re.search(r"VERSION (\S+)", file.read().split("project(muster")[1]).group(1)

# A free-threaded one has no limited API: a wheel of its own.
limited = not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    version=version,
    ext_modules=[
        Extension(
            "muster._barrier",
            ["muster/_barrier.cpp"] + [f"../src/{part}.cpp" for part in parts],
            include_dirs=["../src", "../include"],
            define_macros=[("FMT_HEADER_ONLY", None)]
            + limited * [("Py_LIMITED_API", "0x03090000")],
            extra_compile_args=["-std=c++20", "-O2", "-fvisibility=hidden"],
            py_limited_api=limited,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp39"}} if limited else {},
)

#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes the XML files here with hwloc's own tools (Debian: hwloc). They are kept in the repository;
# this is how they came about, and how to add one.
set -eu
cd "$(dirname "$0")"

# 6 P-cores with 2 PUs and an L2 each, 8 E-cores with an L2 for four.
lstopo-no-graphics --no-io -f -i "package:1 l3:1 l2:8 core:4 pu:2" \
  --restrict 0x5555030303030303 hybrid-6p8e.xml

# 4 dies, only dies 0 and 2 with memory.
lstopo-no-graphics --no-io -f -i "package:1 group:4 [numa] l3:2 l2:4 core:1 pu:2" \
  --restrict nodeset=0x5 memoryless-dies.xml

# The third package's PUs are gone, its memory is still there.
lstopo-no-graphics --no-io -f -i "package:3 [numa] l3:1 l2:8 core:1 pu:2" \
  --restrict 0xffffffff cpuless-numa.xml

# PUs 3, 8, 9 and half of the second package are not allowed.
lstopo-no-graphics --no-io -f --disallowed --allow 0x00c0fcf7 \
  -i "package:2 [numa] l3:1 l2:6 core:1 pu:2" disallowed-pus.xml

# 5, 2, 4 and 1 cores on four NUMA nodes, holes in the PUs' numbers.
lstopo-no-graphics --no-io -f -i "package:2 numa:2 l3:1 l2:5 core:1 pu:1" \
  --restrict 0x7986f1f uneven-numa.xml

# One L3 of four has no memory: the NUMA nodes add nothing to the L3s.
lstopo-no-graphics --no-io -f -i "package:2 l3:2 [numa] l2:4 core:1 pu:1" \
  --restrict nodeset=0x7 half-memoryless-package.xml

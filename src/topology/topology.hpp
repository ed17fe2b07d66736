// SPDX-License-Identifier: BSD-3-Clause
// The machine's cores and memory hierarchy, read through hwloc: this machine, one kept in an XML
// file, or one described in a line. Once made it is plain data: copy it, read it from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/levels.hpp"
#include "topology/placement.hpp"
#include "topology/pu_set.hpp"

namespace muster {

/// SMT siblings are one core. Where the machine names no cores each PU is one.
struct Core {
  unsigned id = 0;            ///< hwloc's logical index
  std::vector<unsigned> pus;  ///< usable PUs, in hwloc's order; never empty

  PuSet pu_set() const {
    PuSet set;
    for (const unsigned pu : pus) set.add(pu);
    return set;
  }
};

/// As hwloc has it; empty where it does not say.
struct Processor {
  std::string architecture;  ///< "x86_64", "aarch64", "ppc64le"
  std::string vendor;        ///< "AuthenticAMD"; on aarch64 the number of who designed the core
};

/// Mappings of ranks to cores [K22, section 3]: `core`, `numa`, `socket`.
enum class Mapping { core, numa, socket };
std::string_view mapping_name(Mapping mapping);
std::vector<std::string> mapping_names();
/// In any case; "package" = socket, "node" and "numanode" = numa. Throws
/// Error(Status::unknown_name) listing the valid ones.
Mapping parse_mapping(std::string_view text);

class Topology {
 public:
  /// Which of this machine's PUs count.
  enum class Cpus {
    of_process,  ///< the calling thread's affinity mask, which threads that it makes inherit
    of_host,     ///< all that the operating system allows (cpuset), even if this process is bound:
                 ///< for a process among others, all bound by a launcher
  };

  /// Throws Error(Status::system) if hwloc cannot read this machine.
  static Topology this_machine(Cpus cpus = Cpus::of_process);

  /// A regular file made by hwloc (`lstopo file.xml`), or a text file with one synthetic
  /// description ('#' begins a comment). Throws Error(invalid) if it cannot be read, is malformed
  /// or of a format that this hwloc does not know. Nothing that stands in the file is in the text:
  /// a program may read what its caller may not.
  static Topology from_file(const std::string& path);

  /// hwloc's synthetic description, outermost first: "package:2 numa:2 core:32 pu:1"; "[numa]" in
  /// the line attaches memory. Throws Error(Status::invalid) if malformed.
  static Topology from_synthetic(const std::string& description);

  /// "" is this machine; what names a file, ends in ".xml" or contains '/' is a file; all else is
  /// synthetic.
  static Topology from_spec(const std::string& spec, Cpus cpus = Cpus::of_process);

  /// `spec` if not empty, else the environment variable MUSTER_TOPOLOGY, else this machine.
  static Topology from_spec_or_environment(const std::string& spec, Cpus cpus = Cpus::of_process);
  static bool environment_imposes();  ///< MUSTER_TOPOLOGY is set, and may be read

  /// For people: "this machine", "kunpeng.xml", "synthetic package:2 core:4 pu:1".
  const std::string& source() const { return source_; }
  /// Whether PU numbers are this machine's, so that threads can be bound to them.
  bool is_this_machine() const { return is_this_machine_; }

  const Processor& processor() const { return processor_; }
  /// Cores with at least one usable PU, in hwloc's logical order; not empty.
  const std::vector<Core>& cores() const { return cores_; }
  /// Usable PUs: online and allowed.
  const PuSet& pus() const { return pus_; }
  /// PUs the machine has that are offline or not allowed.
  const PuSet& unusable_pus() const { return unusable_pus_; }
  /// Position in cores() of the core a PU belongs to; kOutside if it is not usable here.
  unsigned core_of(unsigned pu) const;
  /// hwloc's logical index of each PU: os_index_of_pu()[logical]; PuSet::kEnd where not usable.
  const std::vector<unsigned>& os_index_of_pu() const { return os_index_of_pu_; }

  /// Every level this machine has, in the order of LevelKind, groups outermost first; nothing is
  /// dropped here. NUMA: each PU belongs to the NUMA node with the fewest PUs around it; nodes
  /// without PUs form no unit.
  const std::vector<Level>& levels() const { return levels_; }
  /// The level of that kind (of GROUP the outermost); null if the machine has none.
  const Level* level(LevelKind kind) const;

  /// NUMA nodes the machine has, those without usable PUs included.
  unsigned numa_nodes() const { return numa_nodes_; }

  /// [K22, step 1]: the levels of the mask that group cores here, bottom up. Kept: levels with a
  /// unit of two or more cores (CORE and L1, where named: two or more PUs); of those that group the
  /// same cores one (NUMA if it is among them, else the lowest). The rest is in `dropped`, with the
  /// reason. GROUP stands for all levels of groups.
  ActiveLevels active_levels(const LevelMask& mask = {}) const;

  /// Every set of the levels that are active by default, as parse_level_mask() takes it, the
  /// largest first: "L3-NUMA-SOCKET", "L3-NUMA", ..., "SOCKET". None where nothing is grouped.
  std::vector<std::string> level_sets() const;

  /// Binds `ranks` ranks to one core each (all its usable PUs). `core`: rank i on core i; `numa`,
  /// `socket`: rank i on NUMA node or package i mod n, next free core there. Full ones are skipped;
  /// cores outside of all come last; past the last core it starts again with every core free.
  std::vector<PuSet> map_ranks(Mapping mapping, unsigned ranks) const;

  /// [K22, step 2] for bindings by PU number. A rank is unbound if its set is empty or, on more
  /// than one core, holds every usable PU. Throws Error(Status::invalid) for PUs not usable here.
  Placement place(const std::vector<PuSet>& bindings, const ActiveLevels& active) const;

  /// A binding each, as people write them: PUs ("0-3,8"), a PMIX_LOCALITY_STRING (it begins with a
  /// letter), "" or "none" for an unbound rank. Throws Error(Status::invalid), naming the rank, for
  /// what is neither and for PUs not usable here.
  std::vector<PuSet> read_bindings(const std::vector<std::string>& texts) const;

  /// The bindings that PMIX_LOCALITY_STRINGs mean on this topology (HT, else CR ids); an unbound
  /// rank has the empty set. It must be the topology they were made on. Throws
  /// Error(Status::invalid).
  std::vector<PuSet> bindings_of(const std::vector<std::string>& localities) const;

 private:
  friend class TopologyReader;  // topology.cpp
  Topology() = default;

  /// Throws Error(Status::invalid) if a PU of the rank's binding is not usable here.
  void check_usable(std::size_t rank, const PuSet& binding) const;

  std::string source_;
  Processor processor_;
  bool is_this_machine_ = false;
  std::vector<Core> cores_;
  PuSet pus_;
  PuSet unusable_pus_;
  std::vector<unsigned> core_of_pu_;
  std::vector<unsigned> os_index_of_pu_;
  std::vector<Level> levels_;
  unsigned numa_nodes_ = 0;
};

/// The packages or NUMA nodes that hold several units of that level each; the larger ones where
/// both do, null where none does.
const Level* level_around(const Topology& topology, const Level& inner);

}  // namespace muster

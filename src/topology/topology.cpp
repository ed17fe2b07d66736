// SPDX-License-Identifier: BSD-3-Clause
#include "topology/topology.hpp"

#include <hwloc.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "machine/format.hpp"
#include "topology/hwloc_input.hpp"
#include "topology/hwloc_topology.hpp"
#include "topology/partition.hpp"
#include "topology/text_file.hpp"

namespace muster {

namespace {

/// hwloc has files read and plugins loaded as HWLOC_* in the environment say. Of a program with
/// rights that its caller has not (setuid, file capabilities) that would be the caller's to say: so
/// they are taken out, as the dynamic linker takes out LD_PRELOAD. At load, before there are
/// threads.
[[gnu::constructor]] void drop_hwloc_variables() {
  if (getauxval(AT_SECURE) == 0 || environ == nullptr) return;
  char** kept = environ;
  for (char** at = environ; *at != nullptr; ++at) {
    if (!std::string_view(*at).starts_with("HWLOC_")) *kept++ = *at;
  }
  *kept = nullptr;
}

HwlocTopology load_this_machine(unsigned long flags) {
  HwlocTopology topology = make_hwloc_topology();
  hwloc_topology_set_flags(topology.get(), flags);
  if (hwloc_topology_load(topology.get()) == 0) return topology;
  throw Error(Status::system, format("hwloc cannot read this machine: {}; describe it with "
                                     "MUSTER_TOPOLOGY or --topology",
                                     std::strerror(errno)));
}

/// hwloc's x86 backend asks every CPU itself, and moves the calling thread to all of them in turn,
/// where others may be busy. That is left out where the system itself tells of all that is used.
HwlocTopology load_this_machine() {
#if HWLOC_API_VERSION >= 0x00020500 && (defined(__x86_64__) || defined(__i386__))
  HwlocTopology topology = load_this_machine(HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  const auto has = [&](hwloc_obj_type_t type) {
    return hwloc_get_nbobjs_by_type(topology.get(), type) > 0;
  };
  if (has(HWLOC_OBJ_CORE) && has(HWLOC_OBJ_L2CACHE) && has(HWLOC_OBJ_L3CACHE)) return topology;
#endif
  return load_this_machine(0);
}

PuSet to_pu_set(hwloc_const_bitmap_t bitmap) {
  PuSet set;
  if (bitmap == nullptr) return set;
  if (hwloc_bitmap_last(bitmap) < 0) return set;  // empty, or infinite: no machine's
  for (int pu = hwloc_bitmap_first(bitmap); pu >= 0; pu = hwloc_bitmap_next(bitmap, pu)) {
    set.add(static_cast<unsigned>(pu));
  }
  return set;
}

/// The first number of `<topology version="2.0">`; 1 where there is none, as hwloc 1 wrote it.
int xml_version(const std::string& text) {
  const std::size_t tag = text.find("<topology");
  const std::string_view key = "version=\"";
  const std::size_t at = text.find(key, tag);
  if (at == std::string::npos || at > text.find('>', tag)) return 1;
  return std::atoi(text.c_str() + at + key.size());
}

std::string hwloc_version() {
  const unsigned api = hwloc_get_api_version();
  return format("{}.{}", api >> 16, api >> 8 & 0xffU);
}

std::string trimmed(std::string text) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), blank));
  text.erase(std::find_if_not(text.rbegin(), text.rend(), blank).base(), text.end());
  return text;
}

}  // namespace

// Reads a loaded hwloc topology into plain data.
class TopologyReader {
 public:
  TopologyReader(hwloc_topology_t hwloc, std::string source, bool is_this_machine,
                 const PuSet* affinity)
      : hwloc_(hwloc) {
    result_.source_ = std::move(source);
    result_.is_this_machine_ = is_this_machine;
    // Offline and disallowed PUs are in the complete set only.
    result_.pus_ = to_pu_set(hwloc_topology_get_topology_cpuset(hwloc_));
    if (affinity != nullptr && affinity->intersects(result_.pus_)) result_.pus_ &= *affinity;
    result_.unusable_pus_ = to_pu_set(hwloc_topology_get_complete_cpuset(hwloc_)) - result_.pus_;
    read_processor();
    read_cores();
    for (const auto& [kind, type] :
         {std::pair{LevelKind::core, HWLOC_OBJ_CORE}, std::pair{LevelKind::l1, HWLOC_OBJ_L1CACHE},
          std::pair{LevelKind::l2, HWLOC_OBJ_L2CACHE}, std::pair{LevelKind::l3, HWLOC_OBJ_L3CACHE},
          std::pair{LevelKind::numa, HWLOC_OBJ_NUMANODE}}) {
      read_level(kind, std::string(level_name(kind)), objects_of_type(type));
    }
    result_.numa_nodes_ = static_cast<unsigned>(objects_of_type(HWLOC_OBJ_NUMANODE).size());
    read_groups();
    read_level(LevelKind::die, "DIE", objects_of_type(HWLOC_OBJ_DIE));
    read_level(LevelKind::package, "PACKAGE", objects_of_type(HWLOC_OBJ_PACKAGE));
  }

  Topology take() { return std::move(result_); }

 private:
  using Objects = std::vector<hwloc_obj_t>;

  Objects objects_of_type(hwloc_obj_type_t type) const {
    Objects objects;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(hwloc_, type, object)) != nullptr) {
      objects.push_back(object);
    }
    return objects;
  }

  void read_processor() {
    const auto info = [&](hwloc_obj_type_t type, const char* name) {
      const hwloc_obj_t object = hwloc_get_next_obj_by_type(hwloc_, type, nullptr);
      const char* const text =
          object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, name);
      return std::string(text == nullptr ? "" : text);
    };
    result_.processor_.architecture = info(HWLOC_OBJ_MACHINE, "Architecture");
    std::string& vendor = result_.processor_.vendor;
    for (const char* const name : {"CPUVendor", "CPUImplementer"}) {
      for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_MACHINE}) {
        if (vendor.empty()) vendor = info(type, name);
      }
    }
  }

  void read_cores() {
    std::vector<unsigned>& core_of_pu = result_.core_of_pu_;
    hwloc_obj_t last_core = nullptr;
    PuSet seen;
    for (const hwloc_obj_t pu : objects_of_type(HWLOC_OBJ_PU)) {
      seen.add(pu->os_index);
      const bool usable = result_.pus_.contains(pu->os_index);
      result_.os_index_of_pu_.push_back(usable ? pu->os_index : PuSet::kEnd);
      if (!usable) continue;
      const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc_, HWLOC_OBJ_CORE, pu);
      if (core == nullptr || core != last_core) {
        result_.cores_.push_back({core != nullptr ? core->logical_index : pu->logical_index, {}});
        last_core = core;
      }
      result_.cores_.back().pus.push_back(pu->os_index);
      if (core_of_pu.size() <= pu->os_index) core_of_pu.resize(pu->os_index + 1, kOutside);
      core_of_pu[pu->os_index] = static_cast<unsigned>(result_.cores_.size() - 1);
    }
    // A damaged description names some that are not there.
    result_.pus_ &= seen;
    if (result_.cores_.empty()) {
      throw Error(Status::invalid, result_.source_ + " has no usable PU");
    }
  }

  // Each depth of groups is a level of its own.
  void read_groups() {
    std::vector<std::pair<unsigned, Objects>> depths;
    for (int depth = 0; depth < hwloc_topology_get_depth(hwloc_); ++depth) {
      if (hwloc_get_depth_type(hwloc_, depth) != HWLOC_OBJ_GROUP) continue;
      Objects objects;
      for (unsigned i = 0; i < hwloc_get_nbobjs_by_depth(hwloc_, depth); ++i) {
        objects.push_back(hwloc_get_obj_by_depth(hwloc_, depth, i));
      }
      const unsigned number = static_cast<unsigned>(depths.size());
      depths.emplace_back(number, std::move(objects));
    }
    for (const auto& [number, objects] : depths) {
      read_level(LevelKind::group, depths.size() == 1 ? "GROUP" : format("GROUP{}", number),
                 objects);
    }
  }

  // Objects over the same PUs are one unit (KNL: DRAM and MCDRAM), those without usable PUs none.
  // hwloc's objects of a type do not overlap, except NUMA nodes: there the smallest node around a
  // PU has it.
  void read_level(LevelKind kind, std::string name, const Objects& objects) {
    Level level;
    level.kind = kind;
    level.name = std::move(name);
    for (const hwloc_obj_t object : objects) {
      PuSet pus = to_pu_set(object->cpuset) & result_.pus_;
      if (pus.empty()) continue;
      const auto twin = std::find_if(level.units.begin(), level.units.end(),
                                     [&pus](const Unit& unit) { return unit.pus == pus; });
      if (twin != level.units.end()) {
        twin->other_ids.push_back(object->logical_index);
      } else {
        Unit unit;
        unit.id = object->logical_index;
        unit.os_index = object->os_index;
        unit.pus = std::move(pus);
        level.units.push_back(std::move(unit));
      }
    }
    std::vector<unsigned> sizes;
    for (const Unit& unit : level.units) sizes.push_back(unit.pus.count());
    std::vector<std::size_t> by_size(level.units.size());
    for (std::size_t u = 0; u < by_size.size(); ++u) by_size[u] = u;
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](std::size_t a, std::size_t b) { return sizes[a] < sizes[b]; });
    PuSet taken;
    for (const std::size_t u : by_size) {
      Unit& unit = level.units[u];
      unit.pus -= taken;
      taken |= unit.pus;
    }
    level.units.erase(std::remove_if(level.units.begin(), level.units.end(),
                                     [](const Unit& unit) { return unit.pus.empty(); }),
                      level.units.end());
    if (level.units.empty()) return;
    for (Unit& unit : level.units) {
      for (const unsigned pu : unit.pus.to_vector()) {
        if (level.unit_of_pu.size() <= pu) level.unit_of_pu.resize(pu + 1, kOutside);
        level.unit_of_pu[pu] = unit.id;
        const unsigned core = result_.core_of(pu);
        // Its first PU decides where a core is counted.
        if (result_.cores_[core].pus.front() == pu) unit.cores.push_back(core);
      }
      std::sort(unit.cores.begin(), unit.cores.end());
    }
    result_.levels_.push_back(std::move(level));
  }

  hwloc_topology_t hwloc_;
  Topology result_;
};

namespace {

struct MappingName {
  std::string_view text;
  Mapping mapping;
};
constexpr MappingName kMappings[] = {
    {"core", Mapping::core}, {"numa", Mapping::numa},     {"numanode", Mapping::numa},
    {"node", Mapping::numa}, {"socket", Mapping::socket}, {"package", Mapping::socket},
};

}  // namespace

std::string_view mapping_name(Mapping mapping) {
  for (const MappingName& name : kMappings) {
    if (name.mapping == mapping) return name.text;
  }
  return "?";
}

std::vector<std::string> mapping_names() {
  std::vector<std::string> names;
  for (const Mapping mapping : {Mapping::core, Mapping::numa, Mapping::socket})
    names.emplace_back(mapping_name(mapping));
  return names;
}

Mapping parse_mapping(std::string_view text) {
  std::string wanted;
  for (const char c : text) {
    wanted += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const MappingName& name : kMappings) {
    if (name.text == wanted) return name.mapping;
  }
  throw Error(Status::unknown_name,
              format("no mapping is called '{}'; mappings are core, numa, socket", text));
}

Topology Topology::this_machine(Cpus cpus) {
  const HwlocTopology hwloc = load_this_machine();
  if (hwloc_topology_is_thissystem(hwloc.get()) == 0) {
    return TopologyReader(hwloc.get(), "the machine that HWLOC_XMLFILE or HWLOC_SYNTHETIC gives",
                          false, nullptr)
        .take();
  }
  if (cpus == Cpus::of_host) {
    return TopologyReader(hwloc.get(), "this machine", true, nullptr).take();
  }
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> bound(hwloc_bitmap_alloc(),
                                                                            &hwloc_bitmap_free);
  // Where the mask cannot be read (not on Linux), all that the system allows counts.
  const bool known = hwloc_get_cpubind(hwloc.get(), bound.get(), HWLOC_CPUBIND_THREAD) == 0;
  const PuSet affinity = known ? to_pu_set(bound.get()) : PuSet{};
  return TopologyReader(hwloc.get(), "this machine", true, known ? &affinity : nullptr).take();
}

namespace {

/// Null if hwloc does not understand it, or would take too long.
HwlocTopology load_synthetic(const std::string& description) {
  HwlocTopology hwloc = make_hwloc_topology();
  if (trimmed(description).empty() || is_too_large(description) ||
      hwloc_topology_set_synthetic(hwloc.get(), description.c_str()) != 0 ||
      hwloc_topology_load(hwloc.get()) != 0) {
    return nullptr;
  }
  return hwloc;
}

}  // namespace

Topology Topology::from_file(const std::string& path) {
  const std::string text = read_text_file(path, "topology file");
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) {
    throw Error(Status::invalid, format("topology file '{}' is empty", path));
  }
  if (text[begin] != '<') {
    std::string description;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      description += text.substr(at, std::min(text.find('#', at), end) - at) + ' ';
      at = end + 1;
    }
    const HwlocTopology hwloc = load_synthetic(trimmed(description));
    if (hwloc == nullptr) {
      throw Error(Status::invalid,
                  format("topology file '{}' is neither XML nor a synthetic topology; {}", path,
                         how_to_describe()));
    }
    return TopologyReader(hwloc.get(), path, false, nullptr).take();
  }
  if (text.find("<topology") == std::string::npos) {
    throw Error(Status::invalid,
                format("topology file '{}' is XML, but none of hwloc's: it has no <topology>; "
                       "make one with 'lstopo file.xml'",
                       path));
  }
  const int version = xml_version(text);
  if (version > static_cast<int>(hwloc_get_api_version() >> 16)) {
    throw Error(Status::invalid,
                format("topology file '{}' is in hwloc's XML format {}, too new for the hwloc "
                       "here (API {}): write it again with 'lstopo --export-xml-flags v2 file.xml'",
                       path, version, hwloc_version()));
  }
  check_xml(text, path);
  const HwlocTopology hwloc = make_hwloc_topology();
  // From the buffer: the very text whose version was checked.
  if (hwloc_topology_set_xmlbuffer(hwloc.get(), text.c_str(), static_cast<int>(text.size()) + 1) !=
          0 ||
      hwloc_topology_load(hwloc.get()) != 0) {
    throw Error(Status::invalid,
                format("topology file '{}' (hwloc XML format {}) cannot be read by the hwloc "
                       "here (API {}): it "
                       "is damaged or too old; set HWLOC_XML_VERBOSE=1 to see where",
                       path, version, hwloc_version()));
  }
  return TopologyReader(hwloc.get(), path, false, nullptr).take();
}

Topology Topology::from_synthetic(const std::string& description) {
  const HwlocTopology hwloc = load_synthetic(description);
  if (hwloc == nullptr) {
    throw Error(Status::invalid, format("'{}' is neither a file nor a synthetic topology; {}",
                                        description, how_to_describe()));
  }
  return TopologyReader(hwloc.get(), "synthetic " + trimmed(description), false, nullptr).take();
}

Topology Topology::from_spec(const std::string& spec, Cpus cpus) {
  if (spec.empty()) return this_machine(cpus);
  struct stat status {};
  const std::string_view xml = ".xml";
  const bool ends_in_xml =
      spec.size() >= xml.size() && spec.compare(spec.size() - xml.size(), xml.size(), xml) == 0;
  if (ends_in_xml || spec.find('/') != std::string::npos || stat(spec.c_str(), &status) == 0) {
    return from_file(spec);
  }
  return from_synthetic(spec);
}

bool Topology::environment_imposes() {
  const char* const environment = secure_getenv("MUSTER_TOPOLOGY");
  return environment != nullptr && *environment != '\0';
}

Topology Topology::from_spec_or_environment(const std::string& spec, Cpus cpus) {
  if (!spec.empty()) return from_spec(spec, cpus);
  if (!environment_imposes()) return this_machine(cpus);
  try {
    return from_spec(secure_getenv("MUSTER_TOPOLOGY"), cpus);
  } catch (const Error& error) {
    throw Error(error.code(), format("MUSTER_TOPOLOGY: {}", error.what()));
  }
}

unsigned Topology::core_of(unsigned pu) const {
  return pu < core_of_pu_.size() ? core_of_pu_[pu] : kOutside;
}

const Level* Topology::level(LevelKind kind) const {
  for (const Level& level : levels_) {
    if (level.kind == kind) return &level;
  }
  return nullptr;
}

ActiveLevels Topology::active_levels(const LevelMask& mask) const {
  ActiveLevels active;
  std::vector<Candidate> candidates;
  std::vector<const Level*> levels;
  for (const LevelKind kind : wanted_levels(mask)) {
    const bool counts_pus = kind == LevelKind::core || kind == LevelKind::l1;
    bool present = false;
    for (const Level& level : levels_) {
      if (level.kind != kind) continue;
      present = true;
      const bool is_shared =
          std::any_of(level.units.begin(), level.units.end(), [counts_pus](const Unit& unit) {
            return (counts_pus ? unit.pus.count() : unit.cores.size()) >= 2;
          });
      if (!is_shared) {
        active.dropped.push_back(
            {level.name, counts_pus ? "no two PUs share one" : "no two cores share one"});
        continue;
      }
      Candidate candidate{kind, level.name, {}};
      for (const Core& core : cores_) {
        for (const unsigned pu : core.pus) candidate.column.push_back(level.unit_of(pu));
      }
      candidates.push_back(std::move(candidate));
      levels.push_back(&level);
    }
    if (!present) {
      active.dropped.push_back({std::string(level_name(kind)), "this machine has none"});
    }
  }
  for (const std::size_t c : distinct_bottom_up(candidates, active.dropped, "cores")) {
    active.levels.push_back(*levels[c]);
  }
  return active;
}

std::vector<std::string> Topology::level_sets() const {
  const std::vector<Level> levels = active_levels().levels;
  std::vector<std::string> sets;
  for (std::size_t size = levels.size(); size > 0; --size) {
    for (unsigned set = 1; set < 1U << levels.size(); ++set) {
      if (static_cast<std::size_t>(__builtin_popcount(set)) != size) continue;
      std::string name;
      for (std::size_t l = 0; l < levels.size(); ++l) {
        if ((set >> l & 1) == 0) continue;
        if (!name.empty()) name += '-';
        name += levels[l].kind == LevelKind::package ? "SOCKET" : levels[l].name;
      }
      sets.push_back(name);
    }
  }
  return sets;
}

std::vector<PuSet> Topology::map_ranks(Mapping mapping, unsigned ranks) const {
  // Queues of cores, dealt from in turn; each core is in one.
  std::vector<std::vector<unsigned>> queues;
  std::vector<char> queued(cores_.size(), 0);
  if (mapping != Mapping::core) {
    const Level* const units =
        level(mapping == Mapping::numa ? LevelKind::numa : LevelKind::package);
    if (units != nullptr) {
      for (const Unit& unit : units->units) {
        if (unit.cores.empty()) continue;
        queues.push_back(unit.cores);
        for (const unsigned core : unit.cores) queued[core] = 1;
      }
    }
  }
  std::vector<unsigned> lap;  // cores in the order ranks take them
  lap.reserve(cores_.size());
  std::size_t longest = 0;
  for (const std::vector<unsigned>& queue : queues) longest = std::max(longest, queue.size());
  for (std::size_t turn = 0; turn < longest; ++turn) {
    for (const std::vector<unsigned>& queue : queues) {
      if (turn < queue.size()) lap.push_back(queue[turn]);
    }
  }
  for (unsigned core = 0; core < cores_.size(); ++core) {
    if (!queued[core]) lap.push_back(core);
  }
  std::vector<PuSet> bindings(ranks);
  for (unsigned rank = 0; rank < ranks; ++rank) {
    bindings[rank] = cores_[lap[rank % lap.size()]].pu_set();
  }
  return bindings;
}

void Topology::check_usable(std::size_t rank, const PuSet& binding) const {
  if (binding.is_subset_of(pus_)) return;
  throw Error(Status::invalid,
              format("rank {} is bound to PU {}, which is not usable on {}: "
                     "usable PUs are {}",
                     rank, (binding - pus_).to_string(), source_, pus_.to_string()));
}

Placement Topology::place(const std::vector<PuSet>& bindings, const ActiveLevels& active) const {
  Placement placement;
  placement.participants = static_cast<unsigned>(bindings.size());
  for (const Level& level : active.levels) placement.levels.push_back(level.name);
  placement.unit.assign(active.levels.size(), std::vector<unsigned>(bindings.size(), kOutside));
  for (unsigned rank = 0; rank < bindings.size(); ++rank) {
    const PuSet& binding = bindings[rank];
    check_usable(rank, binding);
    if (binding.empty() || (cores_.size() > 1 && binding == pus_)) {
      placement.unbound.push_back(rank);
      continue;
    }
    for (std::size_t l = 0; l < active.levels.size(); ++l) {
      placement.unit[l][rank] = active.levels[l].unit_of_binding(binding);
    }
  }
  return placement;
}

std::vector<PuSet> Topology::read_bindings(const std::vector<std::string>& texts) const {
  std::vector<PuSet> bindings;
  for (const std::string& text : texts) {
    const std::string binding = trimmed(text);
    const bool locality = !binding.empty() && binding != "none" &&
                          std::isalpha(static_cast<unsigned char>(binding.front())) != 0;
    try {
      bindings.push_back(locality ? bindings_of({binding}).front() : PuSet::parse(binding));
    } catch (const Error& error) {
      throw Error(error.code(), format("rank {}: {}", bindings.size(), error.what()));
    }
    check_usable(bindings.size() - 1, bindings.back());
  }
  return bindings;
}

std::vector<PuSet> Topology::bindings_of(const std::vector<std::string>& localities) const {
  std::vector<PuSet> bindings;
  for (const std::string& text : localities) {
    const Locality locality = parse_locality(text);
    PuSet binding;
    const auto fail = [&](std::string_view what, unsigned id) {
      throw Error(Status::invalid, format("locality string '{}' names {} {}, which is not usable "
                                          "on {}",
                                          text, what, id, source_));
    };
    for (const unsigned id : locality.pu) {
      if (id >= os_index_of_pu_.size() || os_index_of_pu_[id] == PuSet::kEnd) fail("HT", id);
      binding.add(os_index_of_pu_[id]);
    }
    if (locality.pu.empty()) {
      for (const unsigned id : locality.core) {
        const auto core =
            std::find_if(cores_.begin(), cores_.end(), [id](const Core& c) { return c.id == id; });
        if (core == cores_.end()) fail("CR", id);
        binding |= core->pu_set();
      }
    }
    if (!locality.unbound && binding.empty()) {
      throw Error(Status::invalid, format("locality string '{}' names neither HT nor CR", text));
    }
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

const Level* level_around(const Topology& topology, const Level& inner) {
  const Level* around = &inner;
  for (const LevelKind kind : {LevelKind::package, LevelKind::numa}) {
    const Level* const level = topology.level(kind);
    if (level == nullptr || level->units.size() < 2) continue;
    if (level->cores_per_unit_max() > around->cores_per_unit_max()) around = level;
  }
  return around == &inner ? nullptr : around;
}

}  // namespace muster

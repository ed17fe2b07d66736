// SPDX-License-Identifier: BSD-3-Clause
#include "topology/sizes.hpp"

#include <hwloc.h>
#include <hwloc/distances.h>

#include <map>
#include <utility>

#include "machine/error.hpp"
#include "topology/hwloc_topology.hpp"
#include "topology/text_file.hpp"

namespace muster {

Sizes read_sizes(const std::string& spec) {
  const HwlocTopology hwloc = make_hwloc_topology();
  hwloc_topology_t const made = hwloc.get();
#if HWLOC_API_VERSION >= 0x00020500
  hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
#endif
  std::string text;
  if (!spec.empty()) {
    text = read_text_file(spec, "topology file");
    if (hwloc_topology_set_xmlbuffer(made, text.c_str(), static_cast<int>(text.size()) + 1) != 0)
      return {};  // a synthetic description
  }
  if (hwloc_topology_load(made) != 0) {
    throw Error(spec.empty() ? Status::system : Status::invalid,
                "hwloc cannot read " + (spec.empty() ? "this machine" : spec));
  }

  Sizes sizes;
  const std::pair<hwloc_obj_type_t, const char*> levels[] = {
      {HWLOC_OBJ_L1CACHE, "L1"}, {HWLOC_OBJ_L2CACHE, "L2"}, {HWLOC_OBJ_L3CACHE, "L3"}};
  for (const auto& [type, name] : levels) {
    std::map<std::uint64_t, unsigned> counts;
    for (hwloc_obj_t cache = nullptr;
         (cache = hwloc_get_next_obj_by_type(made, type, cache)) != nullptr;) {
      if (cache->attr->cache.size > 0) ++counts[cache->attr->cache.size];
    }
    for (const auto& [bytes, count] : counts) sizes.caches.push_back({name, bytes, count});
  }
  unsigned found = 1;
  hwloc_distances_s* distances = nullptr;
  if (hwloc_distances_get_by_type(made, HWLOC_OBJ_NUMANODE, &found, &distances,
                                  HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY,
                                  0) != 0 ||
      found == 0) {
    return sizes;
  }
  for (unsigned n = 0; n < distances->nbobjs; ++n)
    sizes.nodes.push_back(distances->objs[n]->os_index);
  for (unsigned n = 0; n < distances->nbobjs * distances->nbobjs; ++n)
    sizes.distances.push_back(static_cast<unsigned>(distances->values[n]));
  hwloc_distances_release(made, distances);
  return sizes;
}

}  // namespace muster

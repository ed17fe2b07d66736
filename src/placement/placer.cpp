// SPDX-License-Identifier: BSD-3-Clause
#include "placement/placer.hpp"

#include <algorithm>
#include <string>

#include "machine/error.hpp"
#include "machine/format.hpp"
#include "placement/least_busy.hpp"

namespace muster {

namespace {

constexpr bool is_server(unsigned servers) { return servers != 0; }

std::optional<unsigned> first_server(const Occupancy& now) {
  const auto found = std::find_if(now.servers.begin(), now.servers.end(), is_server);
  if (found == now.servers.end()) return std::nullopt;
  return static_cast<unsigned>(found - now.servers.begin());
}

/// The next core after the last shared one, cyclically, that hosts a server.
unsigned next_shared(const Occupancy& now) {
  const auto cores = static_cast<unsigned>(now.servers.size());
  const unsigned from = now.last_shared ? *now.last_shared + 1 : 0;
  for (unsigned step = 0; step < cores; ++step) {
    const unsigned core = (from + step) % cores;
    if (is_server(now.servers[core])) return core;
  }
  return 0;
}

/// Cores for working threads, nearest to the server first.
std::vector<unsigned> cores_around(const CoreTree& tree, const Occupancy& now, unsigned server) {
  if (std::all_of(now.servers.begin(), now.servers.end(), is_server)) {
    return tree.outwards_from(server, CoreTree::Itself::included);
  }
  std::vector<unsigned> cores = tree.outwards_from(server, CoreTree::Itself::left_out);
  const auto serves = [&](unsigned core) { return is_server(now.servers[core]); };
  cores.erase(std::remove_if(cores.begin(), cores.end(), serves), cores.end());
  return cores;
}

std::optional<unsigned> server_to_be_near(const Occupancy& now, std::optional<unsigned> near) {
  if (!near) return first_server(now);
  if (*near >= now.servers.size() || !is_server(now.servers[*near])) {
    throw Error(Status::invalid, format("there is no server on core {} to be near", *near));
  }
  return near;
}

unsigned least_busy(const std::vector<unsigned>& candidates, const Occupancy& now) {
  return *muster::least_busy(candidates.begin(), candidates.end(),
                             [&](unsigned core) { return now.threads[core]; });
}

/// `had_server`, and the NUMA node that all of them shared; `is`: that of those now.
MemoryDecision decide_memory(bool had_server, std::optional<unsigned> was,
                             std::optional<unsigned> is) {
  MemoryDecision decision;
  if (is != was) {
    decision.binding = is ? MemoryDecision::Binding::bind : MemoryDecision::Binding::lift;
  }
  if (decision.binding == MemoryDecision::Binding::bind) decision.numa = is;
  decision.migrate = !had_server && is;
  return decision;
}

}  // namespace

std::string_view policy_name(ServerPolicy policy) {
  return policy == ServerPolicy::pack ? "pack" : "spread";
}

ServerPolicy parse_policy(std::string_view text) {
  for (const ServerPolicy policy : {ServerPolicy::pack, ServerPolicy::spread}) {
    if (text == policy_name(policy)) return policy;
  }
  throw Error(Status::unknown_name,
              format("no policy \"{}\" for servers; there are: pack, spread", text));
}

unsigned choose_server_core(const CoreTree& tree, const Occupancy& now, ServerPolicy policy) {
  const auto free = std::count(now.servers.begin(), now.servers.end(), 0U);
  if (free <= 1) return next_shared(now);
  return *choose_spare_core(tree, now, policy, std::vector<bool>(tree.cores()));
}

std::optional<unsigned> choose_spare_core(const CoreTree& tree, const Occupancy& now,
                                          ServerPolicy policy, const std::vector<bool>& taken) {
  const auto is_spare = [&](unsigned core) {
    return !is_server(now.servers[core]) && !taken[core];
  };
  const std::vector<unsigned>* best = nullptr;
  std::ptrdiff_t best_usage = 0;
  for (const NumaCores& numa : tree.numa_nodes()) {
    if (std::none_of(numa.cores.begin(), numa.cores.end(), is_spare)) continue;
    const auto usage = std::count_if(numa.cores.begin(), numa.cores.end(),
                                     [&](unsigned core) { return is_server(now.servers[core]); });
    const bool better = policy == ServerPolicy::pack ? usage > best_usage : usage < best_usage;
    if (best == nullptr || better) {
      best = &numa.cores;
      best_usage = usage;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *std::find_if(best->begin(), best->end(), is_spare);
}

std::optional<unsigned> choose_thread_core(const CoreTree& tree, const Occupancy& now,
                                           std::optional<unsigned> near) {
  const std::optional<unsigned> server = server_to_be_near(now, near);
  if (!server) return std::nullopt;
  return least_busy(cores_around(tree, now, *server), now);
}

std::optional<unsigned> servers_numa(const CoreTree& tree, const Occupancy& now) {
  std::optional<unsigned> shared;
  for (unsigned core = 0; core < tree.cores(); ++core) {
    if (!is_server(now.servers[core])) continue;
    const unsigned numa = tree.numa_of(core);
    if (shared && *shared != numa) return std::nullopt;
    shared = numa;
  }
  if (shared && !tree.numa_nodes()[*shared].os_index) return std::nullopt;
  return shared;
}

BlockDecision decide_block(const CoreTree& tree, const Occupancy& now) {
  return {servers_numa(tree, now), !first_server(now)};
}

/// Allocates nothing: a server that has left cannot fail.
MemoryDecision Placer::change_servers(unsigned core, int by) {
  const bool had_server = first_server(now_).has_value();
  const std::optional<unsigned> was = servers_numa(tree_, now_);
  now_.servers[core] += static_cast<unsigned>(by);
  candidates_.clear();
  return decide_memory(had_server, was, servers_numa(tree_, now_));
}

Placer::Server Placer::add_server(ServerPolicy policy) {
  const unsigned core = choose_server_core(tree_, now_, policy);
  if (is_server(now_.servers[core])) now_.last_shared = core;
  return {core, change_servers(core, 1)};
}

Placer::Server Placer::add_server_at(unsigned core) {
  if (core >= tree_.cores()) {
    throw Error(Status::invalid,
                format("core {} of a server: there are cores 0 to {}", core, tree_.cores() - 1));
  }
  return {core, change_servers(core, 1)};
}

MemoryDecision Placer::remove_server(unsigned core) {
  if (core >= tree_.cores() || !is_server(now_.servers[core])) {
    throw Error(Status::invalid, format("there is no server on core {} to remove", core));
  }
  return change_servers(core, -1);
}

const std::vector<unsigned>& Placer::candidates(std::optional<unsigned> near) {
  static const std::vector<unsigned> none;
  const std::optional<unsigned> server = server_to_be_near(now_, near);
  if (!server) return none;
  auto found = candidates_.find(*server);
  if (found == candidates_.end()) {
    found = candidates_.emplace(*server, cores_around(tree_, now_, *server)).first;
  }
  return found->second;
}

std::optional<unsigned> Placer::add_thread(std::optional<unsigned> near) {
  const std::vector<unsigned>& cores = candidates(near);
  if (cores.empty()) return std::nullopt;
  const unsigned core = least_busy(cores, now_);
  ++now_.threads[core];
  return core;
}

std::vector<unsigned> Placer::add_threads(unsigned count, std::optional<unsigned> near) {
  const std::vector<unsigned>& cores = candidates(near);
  std::vector<unsigned> placed;
  if (cores.empty()) return placed;
  placed.reserve(count);
  while (placed.size() < count) {
    // All that have the fewest threads get one more each, nearest first.
    const unsigned fewest = now_.threads[least_busy(cores, now_)];
    for (const unsigned core : cores) {
      if (now_.threads[core] != fewest) continue;
      ++now_.threads[core];
      placed.push_back(core);
      if (placed.size() == count) break;
    }
  }
  return placed;
}

void Placer::remove_thread(unsigned core) {
  if (core >= tree_.cores() || now_.threads[core] == 0) {
    throw Error(Status::invalid, format("there is no thread on core {} to remove", core));
  }
  --now_.threads[core];
}

}  // namespace muster

// SPDX-License-Identifier: BSD-3-Clause
#include "sim/data_memory.hpp"

#include <algorithm>
#include <iterator>
#include <new>

#include "machine/error.hpp"

namespace muster::sim {
namespace {

std::size_t lines_of(double kib, unsigned line_bytes) {
  return static_cast<std::size_t>(kib * 1024) / line_bytes;
}

}  // namespace

Cache::Cache(std::size_t lines, unsigned ways)
    : sets_(std::max<std::size_t>(1, lines / std::max(1U, ways))),
      ways_(static_cast<unsigned>(
          std::min<std::size_t>(std::max(1U, ways), std::max<std::size_t>(lines, 1)))),
      entries_(sets_ * ways_) {}

const Cache::Entry* Cache::peek(std::uint32_t line) const {
  const Entry* const set = &entries_[line % sets_ * ways_];
  for (unsigned way = 0; way < ways_; ++way) {
    if (set[way].line == line) return &set[way];
  }
  return nullptr;
}

Cache::Entry* Cache::find(std::uint32_t line) {
  auto* const entry = const_cast<Entry*>(peek(line));
  if (entry != nullptr) entry->used = ++turn_;
  return entry;
}

Cache::Entry& Cache::insert(std::uint32_t line) {
  Entry* const set = &entries_[line % sets_ * ways_];
  Entry* victim = set;
  for (unsigned way = 0; way < ways_; ++way) {
    if (set[way].line == line) {
      victim = &set[way];
      break;
    }
    if (set[way].used < victim->used) victim = &set[way];
  }
  *victim = Entry{};
  victim->line = line;
  victim->used = ++turn_;
  return *victim;
}

DataMemory::DataMemory(const Geometry& geometry, const Parameters& parameters,
                       Mechanisms mechanisms)
    : geometry_(geometry),
      caches_(mechanisms.has(Mechanism::data_caches)),
      prefetch_(mechanisms.has(Mechanism::prefetch)),
      line_bytes_(static_cast<unsigned>(parameters.cache_line)),
      hit_(from_ns(parameters.hit_ns)),
      memory_(from_ns(parameters.memory_ns)),
      memory_far_(mechanisms.has(Mechanism::distance_classes) ? from_ns(parameters.memory_far_ns)
                                                              : 0),
      transfer_(mechanisms.has(Mechanism::memory_bandwidth)
                    ? from_ns(parameters.cache_line / parameters.memory_bandwidth)
                    : 0),
      private_lines_(lines_of(parameters.private_cache_kib, line_bytes_)),
      shared_lines_(lines_of(parameters.shared_cache_kib, line_bytes_)),
      private_ways_(static_cast<unsigned>(parameters.private_ways)),
      shared_ways_(static_cast<unsigned>(parameters.shared_ways)),
      controller_free_at_(geometry.dies(), 0),
      counts_(geometry.participants()) {}

std::uint64_t DataMemory::allocate(std::uint64_t bytes, unsigned home_die) {
  const std::uint64_t first = lines_;
  const std::uint64_t count = (bytes + line_bytes_ - 1) / line_bytes_;
  if (first + count >= ~std::uint32_t{0}) {
    throw Error(Status::no_memory, "the modelled machine holds no more than 2^32 lines of data");
  }
  if (private_.empty()) {  // runs without data do without caches for it
    try {
      private_.assign(geometry_.participants(), Cache(private_lines_, private_ways_));
      shared_.assign(geometry_.dies(), Cache(shared_lines_, shared_ways_));
    } catch (const std::bad_alloc&) {
      throw Error(Status::no_memory,
                  "the modelled machine's caches do not fit into the memory that this process can "
                  "get: lower private-cache or shared-cache");
    }
  }
  unsigned home = 0;
  while (!geometry_.share_memory(home, home_die)) ++home;  // one die stands for each memory
  regions_.emplace_back(static_cast<std::uint32_t>(first), static_cast<std::uint16_t>(home));
  lines_ = first + count;
  return first * line_bytes_;
}

DataMemory::LineState& DataMemory::state_of(std::uint32_t line) {
  const auto [at, is_new] = touched_.try_emplace(line);
  if (is_new) {
    const auto after = std::upper_bound(
        regions_.begin(), regions_.end(), line,
        [](std::uint32_t wanted, const auto& region) { return wanted < region.first; });
    at->second.home = std::prev(after)->second;
  }
  return at->second;
}

std::uint32_t DataMemory::version_of(std::uint32_t line) const {
  const auto found = touched_.find(line);
  return found == touched_.end() ? 0 : found->second.version;
}

bool DataMemory::is_private(unsigned participant, std::uint64_t address) const {
  if (!caches_) return true;
  const auto line = static_cast<std::uint32_t>(address / line_bytes_);
  const Cache::Entry* const entry = private_[participant].peek(line);
  return entry != nullptr && entry->version == version_of(line) && !entry->prefetched;
}

Time DataMemory::from_memory(unsigned participant, unsigned home, Time at) {
  const unsigned die = geometry_.die_of(participant);
  const bool far = !geometry_.share_memory(die, home);
  ++counts_[participant].memory;
  if (far) ++counts_[participant].far_memory;
  Time& free_at = controller_free_at_[home];
  const Time begin = std::max(at, free_at);
  free_at = begin + transfer_;
  if (far && memory_far_ > 0) return begin + memory_far_ + transfer_;
  return begin + geometry_.between(die, far ? home : die) + memory_ + transfer_;
}

/// How far the nearest other die is whose cache has the line; 0 if none has.
Time DataMemory::nearest_copy(unsigned die, std::uint32_t line, std::uint32_t version) const {
  Time least = 0;
  for (unsigned other = 0; other < shared_.size(); ++other) {
    if (other == die) continue;
    const Cache::Entry* const entry = shared_[other].peek(line);
    if (entry == nullptr || entry->version != version) continue;
    const Time distance = geometry_.between(die, other);
    if (least == 0 || distance < least) least = distance;
  }
  return least;
}

/// Brings a line into the participant's private cache; when it is there.
Time DataMemory::fetch(unsigned participant, std::uint32_t line, Time at, bool prefetch) {
  LineState& state = state_of(line);
  const unsigned die = geometry_.die_of(participant);
  Cache::Entry* const here = shared_[die].find(line);
  const bool in_shared = here != nullptr && here->version == state.version;
  Time done = at;
  // The last writer's copy is the only valid one until somebody else has read it.
  const bool from_writer = state.writer != several && state.writer != participant &&
                           private_[state.writer].peek(line) != nullptr;
  if (from_writer) {
    done = at + geometry_.between(die, geometry_.die_of(state.writer));
  } else if (in_shared) {
    done = std::max(at, here->ready_at) + geometry_.between(die, die);
  } else if (const Time other = nearest_copy(die, line, state.version); other > 0) {
    done = at + other;
  } else {
    done = from_memory(participant, state.home, at);
  }
  if (state.writer != participant) state.writer = several;
  if (!in_shared) {
    if (!prefetch) ++counts_[participant].shared_misses;
    Cache::Entry& entry = shared_[die].insert(line);
    entry.version = state.version;
    entry.ready_at = done;
  }
  Cache::Entry& entry = private_[participant].insert(line);
  entry.version = state.version;
  entry.ready_at = done;
  entry.prefetched = prefetch;
  return done;
}

Time DataMemory::access(unsigned participant, std::uint64_t address, bool writes, Time at) {
  DataCounts& counts = counts_[participant];
  ++counts.accesses;
  if (!caches_) return at + hit_;
  const auto line = static_cast<std::uint32_t>(address / line_bytes_);
  LineState& state = state_of(line);
  Cache::Entry* const entry = private_[participant].find(line);
  const bool hits = entry != nullptr && entry->version == state.version;
  Time done = at + hit_;
  bool next = !hits;
  if (hits) {
    next = entry->prefetched;  // the stream goes on: stay one line ahead of it
    entry->prefetched = false;
    done = std::max(at, entry->ready_at) + hit_;
  } else {
    ++counts.private_misses;
    done = fetch(participant, line, at, false);
  }
  if (prefetch_ && next && line + 1 < lines_) {
    const Cache::Entry* const ahead = private_[participant].peek(line + 1);
    if (ahead == nullptr || ahead->version != version_of(line + 1)) {
      fetch(participant, line + 1, at, true);
    }
  }
  if (writes && state.writer != participant) {
    // Everybody else's copy is of an older version from now on.
    ++state.version;
    state.writer = static_cast<std::uint16_t>(participant);
    if (Cache::Entry* const own = private_[participant].find(line)) own->version = state.version;
    if (Cache::Entry* const own = shared_[geometry_.die_of(participant)].find(line)) {
      own->version = state.version;
    }
  }
  return done;
}

}  // namespace muster::sim

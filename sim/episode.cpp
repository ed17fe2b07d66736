// SPDX-License-Identifier: BSD-3-Clause
#include "sim/episode.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "machine/format.hpp"

namespace muster::sim {

void EpisodeLog::entered(unsigned participant, Time at) {
  inside_[participant] = true;
  Operation operation{Operation::Kind::enter, participant};
  operation.begin = operation.end = at;
  operations_.push_back(operation);
}

void EpisodeLog::left(unsigned participant, Time at) {
  if (!inside_[participant]) return;
  inside_[participant] = false;
  Operation operation{Operation::Kind::leave, participant};
  operation.begin = operation.end = at;
  operations_.push_back(operation);
}

void EpisodeLog::stored(unsigned participant, const Line& line, Time at) {
  if (!inside_[participant]) return;
  Operation operation{Operation::Kind::store, participant, line.index};
  operation.begin = operation.end = at;
  operations_.push_back(operation);
}

void EpisodeLog::committed(const Line& line, unsigned participant, Time at) {
  auto& [last, before] = commits_[line.index];
  before = last;
  last = {participant, at};
}

void EpisodeLog::updated(unsigned participant, const Line& line, Time begin, Time end) {
  if (!inside_[participant]) return;
  Operation operation{Operation::Kind::update, participant, line.index};
  operation.begin = begin;
  operation.end = end;
  const Commit& before = commits_[line.index].second;
  operation.writer = before.writer;
  operation.committed_at = before.at;
  operations_.push_back(operation);
}

void EpisodeLog::awaited(unsigned participant, const Line& line, Time begin, Time end) {
  if (!inside_[participant]) return;
  Operation operation{Operation::Kind::await, participant, line.index};
  operation.begin = begin;
  operation.end = end;
  operation.writer = line.writer;
  operation.committed_at = line.committed_at;
  operations_.push_back(operation);
}

void EpisodeLog::awaited_set(unsigned participant, std::span<Line* const> set, Time begin,
                             Time end) {
  if (!inside_[participant] || set.empty()) return;
  const Line& last = **std::max_element(set.begin(), set.end(), [](const Line* a, const Line* b) {
    return a->committed_at < b->committed_at;
  });
  Operation operation{Operation::Kind::await_set, participant, last.index, set.size()};
  operation.begin = begin;
  operation.end = end;
  operation.writer = last.writer;
  operation.committed_at = last.committed_at;
  operations_.push_back(operation);
}

std::string Episode::cell(std::uint32_t line) const {
  if (line < layout.global_cells) return fmt::format("global cell {}", line);
  const std::uint32_t of_ranks = line - layout.global_cells;
  return fmt::format("cell {} of rank {}", of_ranks % layout.cells_per_rank,
                     of_ranks / layout.cells_per_rank);
}

Episode record_episode(const MachineModel& machine, const Query& query, const Effort& effort) {
  Preparation ready = prepare(machine, query);
  EpisodeLog log(query.ranks);
  ready.setup.warm_up = effort.warm_up;
  ready.setup.measured = effort.measured;
  ready.setup.recorder = &log;
  StackPool pool;
  const BarrierOutcome outcome = run_barrier(ready.name, ready.setup, pool);

  Episode episode;
  episode.operations = log.operations();
  episode.geometry = ready.setup.geometry;
  episode.layout = outcome.layout;
  episode.machine = machine.name;
  episode.barrier = fmt::format("{}, {} by {}", query.algorithm, counted(query.ranks, "ranks"),
                                mapping_name(query.map_by));
  episode.latency_us = outcome.latency_ns / 1000;
  episode.distance = [geometry = ready.setup.geometry, latencies = machine.latencies](unsigned a,
                                                                                      unsigned b) {
    const unsigned die = geometry.die_of(a);
    const Time latency = die == geometry.die_of(b) ? geometry.inside(a, b)
                                                   : geometry.between(die, geometry.die_of(b));
    for (const LatencyClass& known : latencies) {
      if (from_ns(known.ns) == latency) return known.name();
    }
    return std::string("MACHINE");
  };
  return episode;
}

std::string chrome_trace(const Episode& episode) {
  Time origin = INT64_MAX;
  for (const Operation& o : episode.operations) origin = std::min(origin, o.begin);
  const auto us = [&](Time at) { return fmt::format("{:.6f}", to_ns(at - origin) / 1000); };
  const auto track = [&](unsigned participant) {
    return fmt::format("\"pid\":{},\"tid\":{}", episode.geometry.die_of(participant), participant);
  };
  std::vector<std::string> events;
  for (unsigned die = 0; die < episode.geometry.dies(); ++die) {
    events.push_back(fmt::format(
        R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"die {0}"}}}})", die));
  }
  for (unsigned p = 0; p < episode.geometry.participants(); ++p) {
    events.push_back(fmt::format(
        R"({{"ph":"M","name":"thread_name",{},"args":{{"name":"rank {}"}}}})", track(p), p));
  }
  // A store is over at once: its slice, to be visible, is what its core did last, up to that long.
  const Time longest_store = from_ns(1);
  std::map<unsigned, Time> last_end;  // slices of a track never overlap, or one holds the other
  const auto slice = [&](const std::string& name, unsigned participant, Time begin, Time end) {
    events.push_back(fmt::format(R"({{"ph":"X","name":"{}",{},"ts":{},"dur":{:.6f}}})", name,
                                 track(participant), us(begin), to_ns(end - begin) / 1000));
    last_end[participant] = end;
    return begin + (end - begin) / 2;
  };
  std::map<unsigned, Time> entered;
  std::map<std::pair<unsigned, std::uint32_t>, Time> source;  // by participant and line
  std::size_t arrows = 0;
  for (const Operation& o : episode.operations) {
    switch (o.kind) {
      case Operation::Kind::enter:
        entered[o.participant] = last_end[o.participant] = o.begin;
        break;
      case Operation::Kind::leave:
        slice(episode.barrier, o.participant, entered[o.participant], o.end);
        break;
      case Operation::Kind::store:
        source[{o.participant, o.line}] =
            slice("store to " + episode.cell(o.line), o.participant,
                  std::max(last_end[o.participant], o.begin - longest_store), o.begin);
        break;
      case Operation::Kind::update:
        source[{o.participant, o.line}] =
            slice("update of " + episode.cell(o.line), o.participant, o.begin, o.end);
        break;
      case Operation::Kind::await:
      case Operation::Kind::await_set: {
        slice(o.set_size == 1 ? "wait for " + episode.cell(o.line)
                              : fmt::format("wait for {} cells", o.set_size),
              o.participant, o.begin, o.end);
        const auto from = source.find({o.writer, o.line});
        if (from == source.end()) break;
        events.push_back(
            fmt::format(R"({{"ph":"s","name":"seen","cat":"flow","id":{},{},"ts":{}}})", ++arrows,
                        track(o.writer), us(from->second)));
        events.push_back(
            fmt::format(R"({{"ph":"f","bp":"e","name":"seen","cat":"flow","id":{},{},"ts":{}}})",
                        arrows, track(o.participant), us(o.end - (o.end - o.begin) / 100)));
        break;
      }
    }
  }
  return fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"machine\":\"{}\",\"barrier\":\"{}\","
      "\"predicted\":true}},\n"
      "\"traceEvents\":[\n{}\n]}}\n",
      episode.machine, episode.barrier, fmt::join(events, ",\n"));
}

}  // namespace muster::sim

// SPDX-License-Identifier: BSD-3-Clause
// The critical path of an episode: backwards from the last exit, from each wait to the store that
// ended it, from each contended update to the one before it, to the arrival where it began.
#include <fmt/format.h>

#include <algorithm>

#include "sim/episode.hpp"

namespace muster::sim {
namespace {

using Kind = Operation::Kind;

/// A piece of the path: the operation that ended, and since when its end was all that counted.
struct Step {
  const Operation* operation;
  Time since;
  const Operation* cause;  ///< another participant's operation, or null: its own one before
};

class PathFinder {
 public:
  explicit PathFinder(const Episode& episode) : episode_(episode) {
    by_participant_.resize(episode.geometry.participants());
    for (const Operation& o : episode.operations) by_participant_[o.participant].push_back(&o);
  }

  /// From the first arrival to the last exit.
  std::vector<Step> find() const {
    const Operation* at = last_exit();
    std::vector<Step> path;
    while (at != nullptr && path.size() < 100000) {
      const Operation* const cause = cause_of(*at);
      const Operation* const before = cause != nullptr ? cause : one_before(*at);
      const Time since = before == nullptr             ? at->begin
                         : before->kind == Kind::store ? before->begin
                                                       : before->end;
      path.push_back({at, since, cause});
      at = before;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  const Operation* last_exit() const {
    const Operation* last = nullptr;
    for (const Operation& o : episode_.operations) {
      if (o.kind == Kind::leave && (last == nullptr || o.end > last->end)) last = &o;
    }
    return last;
  }

  const Operation* one_before(const Operation& o) const {
    const auto& own = by_participant_[o.participant];
    const auto at = std::find(own.begin(), own.end(), &o);
    return at == own.begin() ? nullptr : *(at - 1);
  }

  /// Whose store or update it had to wait for: what it saw was committed after it had begun.
  const Operation* cause_of(const Operation& o) const {
    if (o.writer == nobody || o.writer == o.participant || o.committed_at < o.begin) return nullptr;
    if (o.kind != Kind::await && o.kind != Kind::await_set && o.kind != Kind::update) {
      return nullptr;
    }
    const Operation* latest = nullptr;
    for (const Operation* other : by_participant_[o.writer]) {
      if (other->line != o.line || other->begin > o.committed_at) continue;
      if (other->kind == Kind::store || other->kind == Kind::update) latest = other;
    }
    return latest;
  }

  const Episode& episode_;
  std::vector<std::vector<const Operation*>> by_participant_;
};

}  // namespace

std::string why(const Episode& episode) {
  const std::vector<Step> path = PathFinder(episode).find();
  if (path.empty()) return "no episode was recorded\n";
  const Time origin = path.front().operation->begin;
  std::string text = fmt::format(
      "{} on {}: {:.2f} us an episode, predicted by the model; the critical path of one\n\n",
      episode.barrier, episode.machine, episode.latency_us);
  std::map<std::string, std::pair<unsigned, Time>> spent;
  const auto spend = [&](const std::string& on, Time time) {
    ++spent[on].first;
    spent[on].second += time;
  };
  for (const Step& step : path) {
    const Operation& o = *step.operation;
    std::string what;
    std::string how;
    switch (o.kind) {
      case Kind::enter:
        what = "arrives";
        break;
      case Kind::leave:
        what = "leaves, the last one";
        break;
      case Kind::store:
        what = "stores to " + episode.cell(o.line);
        spend("stores", o.begin - step.since);
        break;
      case Kind::update: {
        what = "has updated " + episode.cell(o.line);
        if (step.cause != nullptr) {
          how = fmt::format(", after rank {} (same {})", o.writer,
                            episode.distance(o.participant, o.writer));
        }
        spend(step.cause != nullptr ? "updates that waited for another" : "updates",
              o.end - step.since);
        break;
      }
      case Kind::await:
      case Kind::await_set: {
        what = o.set_size == 1
                   ? "sees " + episode.cell(o.line)
                   : fmt::format("sees the last of {} cells, {}", o.set_size, episode.cell(o.line));
        if (step.cause == nullptr) {
          how = ", which was there already";
          spend("reads of what was there already", o.end - step.since);
        } else {
          const std::string distance = episode.distance(o.participant, o.writer);
          how = fmt::format(
              " from rank {} (same {}: visible after {:.0f} ns, seen {:.0f} ns later)", o.writer,
              distance, to_ns(o.committed_at - step.since), to_ns(o.end - o.committed_at));
          spend("stores from the same " + distance + ", until seen", o.end - step.since);
        }
        break;
      }
    }
    text +=
        fmt::format("{:>9.0f} ns  rank {} {}{}\n", to_ns(o.end - origin), o.participant, what, how);
  }
  text += "\nspent on\n";
  for (const auto& [on, sum] : spent) {
    text += fmt::format("{:>9.0f} ns  {} {}\n", to_ns(sum.second), sum.first, on);
  }
  return text;
}

}  // namespace muster::sim

// SPDX-License-Identifier: BSD-3-Clause
#include "sim/waits.hpp"

#include <algorithm>

namespace muster::sim {
namespace {

class WaitLog : public Recorder {
 public:
  explicit WaitLog(unsigned participants) : inside_(participants), result_{{}, {}} {
    result_.inside_ns.resize(participants, {-1, -1});
  }

  void entered(unsigned participant, Time at) override {
    begin_ = std::min(begin_, at);
    inside_[participant] = true;
    result_.inside_ns[participant].first = ns(at);
  }
  void left(unsigned participant, Time at) override {
    if (inside_[participant]) result_.inside_ns[participant].second = ns(at);
    inside_[participant] = false;
  }
  void stored(unsigned, const Line&, Time) override {}
  void committed(const Line& line, unsigned participant, Time at) override {
    auto& [last, before] = commits_[line.index];
    before = last;
    last = {participant, at};
  }
  void updated(unsigned participant, const Line& line, Time, Time end) override {
    hear(participant, commits_[line.index].second, end);
  }
  void awaited(unsigned participant, const Line& line, Time, Time end) override {
    hear(participant, {line.writer, line.committed_at}, end);
  }
  void awaited_set(unsigned participant, std::span<Line* const> set, Time, Time end) override {
    for (const Line* line : set) hear(participant, {line->writer, line->committed_at}, end);
  }

  Waits take() { return std::move(result_); }

 private:
  struct Commit {
    std::uint32_t writer = nobody;
    Time at = -1;
  };

  double ns(Time at) const { return to_ns(at - begin_); }
  void hear(unsigned participant, const Commit& of, Time end) {
    if (!inside_[participant] || of.writer == nobody || of.writer == participant) return;
    // What it stored before it arrived is of the episode before: our own store is on its way.
    const double arrived_ns = result_.inside_ns[of.writer].first;
    if (arrived_ns < 0 || ns(of.at) < arrived_ns) return;
    result_.waits.push_back({participant, of.writer, ns(of.at), ns(end)});
  }

  Time begin_ = INT64_MAX;
  std::vector<bool> inside_;                                    ///< by participant
  std::map<std::uint32_t, std::pair<Commit, Commit>> commits_;  ///< by line: the last, before it
  Waits result_;
};

}  // namespace

Waits waits_of(const MachineModel& machine, const Query& query) {
  Preparation ready = prepare(machine, query);
  WaitLog log(query.ranks);
  ready.setup.measured = 2;  // who is late in one meets those who are in the next
  ready.setup.recorder = &log;
  StackPool pool;
  run_barrier(ready.name, ready.setup, pool);
  return log.take();
}

}  // namespace muster::sim

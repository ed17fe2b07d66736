// SPDX-License-Identifier: BSD-3-Clause
// What `following` takes in the model while threads move: every so many episodes one of them goes
// to a core at random, and who is there comes to where it was. Beside it what bound participants
// would get on each of these placements (fitting.hpp). Every known machine of several places, half
// of its cores and all of them, threads' settings.
//
//   muster-bench-moving [--every EPISODES] [--moves NUMBER] [--profile FILE] [MACHINE...]
//
// --profile: `following` asks it, what it is beside does not.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "fitting/follower.hpp"
#include "fitting/known_machines.hpp"
#include "sim/predict.hpp"
#include "topology/text_file.hpp"

namespace {

using namespace muster;
using sim::Modelled;

struct Options {
  unsigned every = 10000;
  unsigned moves = 10;
  Profile profile;
  std::vector<std::string_view> machines;
};

/// What a look that composes takes, for each participant: measured, 0.3 to 0.6 us, and 2.4 where
/// it finds something.
constexpr std::int64_t look_ns = 1000;
/// Before the first move rank 0 may look as often as it likes, and so has tried everything.
constexpr unsigned settling = 15000;

class Team {
 public:
  Team(const sim::MachineModel& machine, unsigned ranks, std::vector<Profile::Team> profiled,
       sim::StackPool& pool)
      : shape_(*machine.shape),
        barrier_shape_{.participants = ranks},
        layout_(Following<Modelled>::layout(barrier_shape_)),
        engine_(sim::geometry_of(machine, all_of(shape_.cores().size())), machine.parameters,
                machine.mechanisms, 1,
                layout_.global_cells + std::size_t{ranks} * layout_.cells_per_rank, pool),
        barrier_(barrier_shape_, Modelled::Cells(engine_, layout_)),
        call_(sim::from_ns(machine.parameters.call_ns)),
        core_of_(all_of(ranks)),
        follower_(
            shape_, ranks, sim::costs_of(machine), [this] { return now_ns(); },
            std::move(profiled)) {
    for (unsigned rank = 0; rank < ranks; ++rank) {
      tickets_.push_back(barrier_.ticket(rank));
      for (unsigned cell = 0; cell < layout_.cells_per_rank; ++cell) {
        engine_.set_home(layout_.global_cells + std::size_t{rank} * layout_.cells_per_rank + cell,
                         rank);
      }
    }
  }

  /// Nanoseconds an episode.
  double run(unsigned episodes) {
    const sim::Time begin = last_;
    for (unsigned rank = 0; rank < core_of_.size(); ++rank) {
      engine_.start(core_of_[rank], [this, rank, episodes] { take_part(rank, episodes); });
    }
    engine_.run(UINT64_MAX);
    return sim::to_ns(last_ - begin) / episodes;
  }

  void move(sim::Random& random) {
    const unsigned rank = random.below(static_cast<unsigned>(core_of_.size()));
    const unsigned core = random.below(static_cast<unsigned>(shape_.cores().size()));
    const auto there = std::find(core_of_.begin(), core_of_.end(), core);
    if (there != core_of_.end()) *there = core_of_[rank];
    core_of_[rank] = core;
  }

  std::vector<PuSet> bindings() const {
    std::vector<PuSet> where;
    for (const unsigned core : core_of_) where.push_back({shape_.cores()[core].pus.front()});
    return where;
  }

  void settle(bool settled) { look_takes_ns_ = settled ? look_ns : 0; }
  unsigned changes() const { return follower_.state().changes; }

 private:
  static std::vector<unsigned> all_of(std::size_t count) {
    std::vector<unsigned> all(count);
    std::iota(all.begin(), all.end(), 0U);
    return all;
  }

  /// Each time that the follower asks in a look, that has taken so long.
  std::int64_t now_ns() {
    const auto ns = static_cast<std::int64_t>(sim::to_ns(engine_.clock(core_of_[0])));
    return ns + asked_++ * look_takes_ns_ * static_cast<std::int64_t>(core_of_.size());
  }

  std::span<const Word> compose(std::span<const Word> said) {
    std::vector<Word> pus;
    for (const Word core : said) pus.push_back(shape_.cores()[core - 1].pus.front() + 1);
    asked_ = 0;
    const std::span<const Word> next = follower_.look(pus);
    const auto took = (asked_ - 1) * look_takes_ns_ * static_cast<std::int64_t>(core_of_.size());
    engine_.delay(core_of_[0], sim::from_ns(static_cast<double>(took)));
    return next;
  }

  void take_part(unsigned rank, unsigned episodes) {
    Modelled port(engine_, core_of_[rank]);
    port.set_composer([this](Modelled&, std::span<const Word> said) { return compose(said); });
    for (unsigned episode = 0; episode < episodes; ++episode) {
      engine_.delay(core_of_[rank], call_);
      barrier_.wait(port, tickets_[rank]);
    }
    last_ = std::max(last_, engine_.clock(core_of_[rank]));
  }

  const Topology& shape_;
  Shape barrier_shape_;
  Layout layout_;
  sim::Engine engine_;
  Following<Modelled> barrier_;
  sim::Time call_;
  std::vector<unsigned> core_of_;  ///< by rank
  Follower follower_;
  std::vector<Following<Modelled>::Ticket> tickets_;
  sim::Time last_ = 0;
  std::int64_t asked_ = 0;
  std::int64_t look_takes_ns_ = 0;
};

struct Row {
  double moving_ns = 0;
  double bound_ns = 0;
  unsigned changes = 0;
};

Row run(const sim::MachineModel& machine, unsigned ranks, const Options& options,
        sim::StackPool& pool) {
  constexpr sim::Effort effort{.warm_up = 8, .measured = 40, .members = 0, .seeds = 1};
  Profile profile = options.profile;
  Team team(machine, ranks, profile.teams_of(*machine.shape, false), pool);
  sim::Random random(ranks);
  team.run(settling);
  team.settle(true);
  Row row;
  const unsigned before = team.changes();
  for (unsigned move = 0; move < options.moves; ++move) {
    team.move(random);
    row.moving_ns += team.run(options.every) / options.moves;
    const std::vector<PuSet> where = team.bindings();
    const std::string fit =
        fit_choice(*machine.shape, where, sim::costs_of(machine)).algorithm.text();
    const sim::Query query{.algorithm = fit, .ranks = ranks, .bindings = where};
    row.bound_ns += 1000 * sim::latency_us_of(machine, query, effort, 1, pool) / options.moves;
  }
  row.changes = team.changes() - before;
  return row;
}

bool read_number(std::string_view word, unsigned& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size() && number > 0;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  for (int n = 1; n < count; ++n) {
    const std::string_view word = words[n];
    unsigned* const number = word == "--every"   ? &options.every
                             : word == "--moves" ? &options.moves
                                                 : nullptr;
    if (word == "--profile" && n + 1 < count) {
      const std::string path = words[++n];
      options.profile = parse_profile(read_text_file(path, "profile"), path);
    } else if (number == nullptr) {
      options.machines.push_back(word);
    } else if (++n == count || !read_number(words[n], *number)) {
      fmt::print(stderr, "{} takes a number\n", word);
      return 2;
    }
  }
  fmt::print(
      "us an episode in the model: predictions. One of the threads moves every {} episodes, "
      "{} times.\n\n{:<16} {:>5}  {:>6} {:>6} {:>6}  {:>7}\n",
      options.every, options.moves, "", "ranks", "moving", "bound", "ratio", "changes");
  struct Case {
    sim::MachineModel machine;
    unsigned ranks;
  };
  std::vector<Case> cases;
  for (const KnownMachine& known : known_machines()) {
    const auto& asked = options.machines;
    if (!asked.empty() && std::find(asked.begin(), asked.end(), known.name) == asked.end())
      continue;
    sim::MachineModel machine = sim::load_machine(std::string(known.name));
    machine.set("call", 5, "a thread's loop");
    machine.set("poll-turn", 10, "a thread's loop");
    if (!Follower::pays_on(*machine.shape)) continue;
    const auto cores = static_cast<unsigned>(machine.shape->cores().size());
    for (const unsigned ranks : {cores / 2, cores}) cases.push_back({machine, ranks});
  }
  std::vector<Row> rows(cases.size());
  sim::run_parallel(cases.size(), [&](std::size_t n, sim::StackPool& pool) {
    rows[n] = run(cases[n].machine, cases[n].ranks, options, pool);
  });
  for (std::size_t n = 0; n < cases.size(); ++n) {
    fmt::print("{:<16} {:>5}  {:>6.2f} {:>6.2f} {:>6.3f}  {:>7}\n", cases[n].machine.name,
               cases[n].ranks, rows[n].moving_ns / 1000, rows[n].bound_ns / 1000,
               rows[n].moving_ns / rows[n].bound_ns, rows[n].changes);
  }
}

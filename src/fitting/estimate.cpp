// SPDX-License-Identifier: BSD-3-Clause
#include "fitting/estimate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

namespace muster {
namespace {

/// Few participants take more episodes, which differ more: together that is as much work.
constexpr unsigned episodes_for(unsigned participants) {
  return std::min(40U, 3 + 96 / participants);
}
/// What takes so much longer than the least is seldom quicker after all: an episode of those that
/// do not count, and the mean of those that do.
constexpr double hopeless_at_first = 1.5;
constexpr double hopeless = 1.2;

/// What the model does (sim/), for flags and counters alone: events, and whoever is ahead in the
/// next episode disturbs who is still in this one.
class Estimate {
 public:
  Estimate(const Schedule& schedule, const Seats& seats, const Costs& costs)
      : schedule_(schedule),
        seats_(seats),
        costs_(costs),
        domain_of_(seats.levels[seats.domain].unit_of),
        inside_(seats.levels[seats.domain].ns),
        ranks_(schedule.participants()),
        agents_(1 + *std::max_element(domain_of_.begin(), domain_of_.end())),
        flag_at_(schedule.cells.size()),
        reader_at_(schedule.cells.size()),
        episodes_(episodes_for(schedule.participants()), {schedule.participants(), 0}),
        due_(2 * std::bit_ceil(ranks_.size()), never) {
    unsigned awaits_most = 0;
    for (const Step& step : schedule.steps) awaits_most = std::max(awaits_most, step.awaits);
    misses_most_ = std::min(1 + static_cast<unsigned>(costs.poll_overlap), awaits_most);
    misses_.resize(ranks_.size() * misses_most_);
    find_readers();
  }

  double run(double least_ns) {
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].step = schedule_.programs[rank].arrivals;
      due(0, rank);
    }
    const auto count = static_cast<unsigned>(episodes_.size());
    const unsigned left_out = std::max(1U, count / 5);  // they begin in step, as no later ones do
    double begin = 0;
    double most = hopeless_at_first * least_ns;
    for (unsigned over = 0; due_[1] != never;) {
      const double when = first_due();
      const auto rank = static_cast<unsigned>(due_[1] & rank_bits);
      if (when > most) return (when - begin) / std::max(1, static_cast<int>(over - left_out) + 1);
      set_due(never, rank);
      proceed(rank, when);
      while (over < count && episodes_[over].inside == 0) {
        const double end = episodes_[over++].end;
        if (over == left_out) begin = end;
        most = over < left_out
                   ? end + hopeless_at_first * least_ns
                   : begin + least_ns * (hopeless_at_first + hopeless * (over - left_out));
      }
    }
    return (episodes_.back().end - begin) / (count - left_out);
  }

 private:
  /// When, as the bits of a number that is not negative: they are in its order. Below that, who.
  using Due = std::uint64_t;
  static constexpr Due rank_bits = 0xffff;
  static constexpr Due never = std::bit_cast<Due>(HUGE_VAL);

  /// Serves one request after another, those that come at once and those that come out of order.
  struct Agent {
    double at = 0;
    double backlog = 0;

    double serve(double when, double occupancy) {
      if (when > at) {
        backlog = std::max(0.0, backlog - (when - at));
        at = when;
      }
      const double begin = when + backlog;
      backlog += occupancy;
      return begin;
    }
  };

  struct Episode {
    unsigned inside;  ///< who has not left it
    double end;       ///< when the last one did
  };

  /// A pass over a set of flags.
  struct Scan {
    double clock = 0;
    double next = HUGE_VAL;  ///< when the next flag can be seen that is stored already
    unsigned visited = 0;
    unsigned outstanding = 0;  ///< misses
    bool missed = false;
    bool all = true;  ///< are there
  };

  struct Rank {
    double time = 0;
    double committed = 0;  ///< its last store
    unsigned step = 0;
    unsigned episode = 1;
    unsigned first_store = 0;  ///< in cells: of its last step that stored
    unsigned stores = 0;
    bool waits = false;  ///< for a store
    Scan scan = {};
  };

  /// A cell: a flag, or a counter. Its value is the episode of its last store.
  struct Flag {
    unsigned first_reader = 0;
    unsigned readers = 0;
    unsigned writer = 0;
    unsigned added = 0;
    unsigned waited = 0;  ///< of those, how many one after another found it taken
    unsigned episode = 0;
    double served = 0;   ///< who asks for it from then on has to wait for that value
    double granted = 0;  ///< when its writer had the line
    double ready = 0;    ///< when the value can be seen
    double free = 0;     ///< when its writer's domain can hand it out again
  };

  /// Who awaits a flag, in which step.
  struct Reader {
    unsigned rank;
    unsigned step;
    unsigned first;           ///< of its domain: that one's next two are the domain's
    unsigned domain_has = 0;  ///< the episode of the copy there
    double domain_free = 0;   ///< when that can be read again
    unsigned has = 0;         ///< the episode of its own copy
  };

  template <class Fn>
  void for_each_await(Fn&& fn) {
    for (unsigned rank = 0; rank < ranks_.size(); ++rank) {
      const Schedule::Program& program = schedule_.programs[rank];
      for (unsigned s = program.arrivals; s < program.end; ++s) {
        const Step& step = schedule_.steps[s];
        for (unsigned n = 0; n < step.awaits; ++n) fn(step.first_cell + n, rank, s);
      }
    }
  }

  void find_readers() {
    // Where one polls all the others, the others have not as many.
    std::vector<unsigned> first_flag(ranks_.size() + 1);
    for (const CellAt& at : schedule_.cells) {
      first_flag[at.rank + 1] = std::max(first_flag[at.rank + 1], at.index + 1);
    }
    std::partial_sum(first_flag.begin(), first_flag.end(), first_flag.begin());
    flags_.resize(first_flag.back());
    for (std::size_t n = 0; n < flag_at_.size(); ++n) {
      flag_at_[n] = first_flag[schedule_.cells[n].rank] + schedule_.cells[n].index;
    }
    for_each_await([&](unsigned cell, unsigned, unsigned) { ++flag(cell).readers; });
    unsigned all = 0;
    for (Flag& flag : flags_) {
      flag.first_reader = all;
      all += std::exchange(flag.readers, 0);
    }
    readers_.resize(all);
    for_each_await([&](unsigned cell, unsigned rank, unsigned step) {
      const unsigned own = flag(cell).first_reader + flag(cell).readers++;
      unsigned first = flag(cell).first_reader;
      while (first != own && domain_of_[readers_[first].rank] != domain_of_[rank]) ++first;
      readers_[own] = {rank, step, first};
      reader_at_[cell] = own;
    });
  }
  Flag& flag(unsigned cell) { return flags_[flag_at_[cell]]; }
  std::span<Reader> readers_of(const Flag& flag) {
    return {readers_.data() + flag.first_reader, flag.readers};
  }

  double serve(unsigned domain, double when) {
    return agents_[domain].serve(when, costs_.agent_occupancy);
  }

  void due(double when, unsigned rank) {
    set_due(((std::bit_cast<Due>(when) + rank_bits) & ~rank_bits) | rank, rank);
  }
  void set_due(Due due, unsigned rank) {
    std::size_t n = due_.size() / 2 + rank;
    for (due_[n] = due; n > 1; n /= 2) due_[n / 2] = std::min(due_[n], due_[n ^ 1]);
  }
  double first_due() const { return std::bit_cast<double>(due_[1] & ~rank_bits); }
  /// What is nearer than a transaction takes an agent keeps no order.
  bool somebody_before(double when) const { return when > first_due() + costs_.agent_occupancy; }

  /// When who waits looks again: somewhere in its loop's turn.
  double looked_at(double ready) {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    const double turns = 0x1p-32 * static_cast<double>(random_ >> 32);
    return ready + costs_.hit + turns * costs_.poll_turn;
  }

  /// Its steps, until somebody else is due before, or it has to wait.
  void proceed(unsigned number, double when) {
    Rank& rank = ranks_[number];
    const Schedule::Program& program = schedule_.programs[number];
    rank.time = when;
    while (!somebody_before(rank.time)) {
      if (rank.step == program.end) {
        Episode& episode = episodes_[rank.episode - 1];
        episode.end = std::max(episode.end, rank.time);
        --episode.inside;
        if (rank.episode == episodes_.size()) return;
        ++rank.episode;
        rank.step = program.arrivals;
        rank.time += costs_.call;
        continue;
      }
      const Step& step = schedule_.steps[rank.step];
      if (step.awaits > 0) {
        const double next = step.awaits == 1 ? look(rank, step) : scan(rank, step);
        if (rank.waits) return;
        if (next > 0) {
          rank.time = next;
          continue;
        }
      }
      unsigned cell = step.first_cell + step.awaits;
      if (step.stores > 0) {
        rank.first_store = cell;
        rank.stores = step.stores;
      }
      for (unsigned n = 0; n < step.stores; ++n) store(number, flag(cell++));
      if (step.adders > 0 && !add(number, step, flag(cell)))
        rank.step = program.departures;
      else
        ++rank.step;
    }
    due(rank.time, number);
  }

  static constexpr double seen = 0;

  /// At one flag: `seen`, or when it looks again, unless it waits.
  double look(Rank& rank, const Step& step) {
    Flag& awaited = flag(step.first_cell);
    Reader& reader = readers_[reader_at_[step.first_cell]];
    if (awaited.episode < rank.episode) {
      reader.has = awaited.episode;
      rank.waits = true;
      return seen;
    }
    const bool own = awaited.writer == reader.rank;  // sees it at once
    if (rank.time < awaited.ready && !own) {
      if (reader.has + 1 == awaited.episode || rank.time < awaited.served) {
        reader.has = awaited.episode - 1;
        return looked_at(awaited.ready);
      }
      if (awaited.ready == awaited.granted) return awaited.ready;
      reader.has = awaited.episode - 1;
      take_back(awaited);
      return looked_at(awaited.ready);
    }
    if (!own && reader.has != awaited.episode) {
      rank.time = read(awaited, reader, rank.time, awaited.episode);
    }
    reader.has = awaited.episode;
    rank.time += costs_.hit;
    return seen;
  }

  /// At a set of flags, one pass after another: each reads what has come, a few misses at a time,
  /// and is the last one if it had none and all are there. Returns as look().
  double scan(Rank& rank, const Step& step) {
    // More lines than the cache has ways for come from the domain's cache in each pass.
    double hit = costs_.hit;
    double gap = costs_.load_gap;
    if (step.awaits > costs_.poll_ways && costs_.set_fill > 0) {
      hit = gap = costs_.set_fill;
    } else if (step.awaits > costs_.poll_ways) {
      hit = std::max(hit, inside_ / costs_.poll_overlap);
    }
    Scan& scan = rank.scan;
    const double now = rank.time;
    double* const misses = misses_.data() + (&rank - ranks_.data()) * misses_most_;
    if (scan.visited == 0) scan = {};
    double time = std::max(now, scan.clock);
    for (; scan.visited < step.awaits; ++scan.visited) {
      Flag& awaited = flag(step.first_cell + scan.visited);
      Reader& reader = readers_[reader_at_[step.first_cell + scan.visited]];
      const bool ready = awaited.ready <= now;
      if (reader.has + (ready ? 0 : 1) == awaited.episode) {
        time += hit;
        if (reader.has < rank.episode) {
          scan.all = false;
          if (!ready) scan.next = std::min(scan.next, awaited.ready);
        }
        continue;
      }
      if (scan.outstanding >= overlap_at(scan.visited)) {
        double* const first = std::min_element(misses, misses + scan.outstanding);
        scan.clock = time;
        return std::max(now, std::exchange(*first, misses[--scan.outstanding]));
      }
      time += gap;
      scan.missed = true;
      double& end = misses[scan.outstanding++];
      if (ready || (now >= awaited.served && awaited.ready == awaited.granted)) {
        end = read(awaited, reader, std::max(time, awaited.ready), awaited.episode);
      } else if (now >= awaited.served) {
        end = read(awaited, reader, std::max(time, awaited.granted), awaited.episode - 1);
        take_back(awaited);
      } else {
        end = read(awaited, reader, time, awaited.episode - 1);
      }
    }
    scan.visited = 0;
    time = std::accumulate(misses, misses + scan.outstanding, time,
                           [](double a, double b) { return std::max(a, b); });
    if (scan.missed) return time;  // what came has not been looked at
    rank.time = time;
    if (scan.all) return seen;
    if (scan.next < HUGE_VAL) return scan.next > time ? looked_at(scan.next) : time;
    rank.waits = true;
    return seen;
  }
  /// As the model has it.
  unsigned overlap_at(unsigned n) const {
    const double turn = 0.6180339887498949 * n;
    return static_cast<unsigned>(costs_.poll_overlap + turn - std::floor(turn));
  }

  /// Stores commit in their order. Who reads a line that waits for an earlier one sees the old
  /// value, and its writer has to ask for it again.
  void take_back(Flag& taken) {
    Rank& writer = ranks_[taken.writer];
    const double before = taken.ready;
    double way = 0;
    for (const Reader& reader : readers_of(taken)) {
      way = std::max(way, seats_.between(taken.writer, reader.rank));
    }
    taken.granted = taken.ready = before + way;
    bool later = false;
    for (unsigned n = 0; n < writer.stores; ++n) {
      Flag& other = flag(writer.first_store + n);
      later = later || &other == &taken;
      if (later && other.writer == taken.writer && other.ready >= before) {
        other.ready = std::max(other.ready, taken.ready);
      }
    }
    writer.committed = std::max(writer.committed, taken.ready);
  }

  /// When the reader has the value of that episode, for which it asks at `when`. The first of a
  /// domain gets it from the writer's, the others there from that copy, one after another.
  double read(Flag& flag, Reader& reader, double when, unsigned episode) {
    reader.has = episode;
    const unsigned domain = domain_of_[reader.rank];
    const unsigned source = domain_of_[flag.writer];
    double begin = serve(domain, when);
    if (domain == source) {
      begin = std::max(begin, flag.free);
      flag.free = begin + costs_.read_occupancy;
      return begin + seats_.between(flag.writer, reader.rank);
    }
    Reader& first = readers_[reader.first];
    if (first.domain_has >= episode) {
      begin = std::max(begin, first.domain_free);
      first.domain_free = begin + costs_.read_occupancy;
      return begin + inside_;
    }
    const double way = seats_.between(flag.writer, reader.rank);
    begin = std::max(serve(source, begin + way / 2), flag.free);
    flag.free = begin + costs_.read_occupancy;
    first.domain_has = episode;
    first.domain_free = begin + way / 2 - inside_ + costs_.read_occupancy;
    return begin + way / 2;
  }

  /// It can be seen when all copies are gone.
  void store(unsigned number, Flag& flag) {
    Rank& rank = ranks_[number];
    rank.time += costs_.store_gap;
    const unsigned domain = domain_of_[number];
    const double begin = serve(domain, rank.time);
    double way = flag.writer == number ? 0 : seats_.between(number, flag.writer);
    double free = flag.free;
    unsigned last = domain;
    for (const Reader& reader : readers_of(flag)) {
      free = std::max(free, reader.domain_free);
      const unsigned holder = domain_of_[reader.rank];
      if (holder == last && way > 0) continue;
      way = std::max(way, seats_.between(number, reader.rank));
      if (holder != domain) serve(holder, begin + way / 2);
      last = holder;
    }
    flag.served = std::max(begin + (way > inside_ ? way / 2 : 0), free);
    flag.granted = flag.served + (way > inside_ ? way / 2 : way);
    flag.ready = rank.committed = std::max(rank.committed, flag.granted);
    flag.writer = number;
    flag.free = 0;
    ++flag.episode;
    for (const Reader& reader : readers_of(flag)) {
      Rank& waiter = ranks_[reader.rank];
      if (waiter.waits && waiter.step == reader.step && waiter.episode == flag.episode) {
        waiter.waits = false;
        due(looked_at(std::max(flag.ready, waiter.time)), reader.rank);
      }
    }
  }

  /// True for the last.
  bool add(unsigned number, const Step& step, Flag& counter) {
    Rank& rank = ranks_[number];
    const double asked = std::max(rank.time, rank.committed);  // after its own stores
    const unsigned owner = counter.writer;
    const bool inside = domain_of_[owner] == domain_of_[number];
    const double way = seats_.between(owner, number);
    double done = asked + costs_.rmw_local;
    if (owner != number || counter.ready > asked) {
      const double begin = serve(domain_of_[number], asked);
      if (!inside) serve(domain_of_[owner], begin + way / 2);
      if (costs_.ll_sc && counter.ready > begin) {  // all that are still to come read it again
        const double reads = costs_.read_occupancy * (step.adders - counter.added - 1);
        done = counter.ready + costs_.hit + std::max(way, reads) + way;
        ++counter.waited;
        for (unsigned n = 0; n < counter.waited; ++n) serve(domain_of_[number], asked);
      } else if (costs_.ll_sc) {
        done = begin + 2 * way;
        counter.waited = 0;
      } else {
        const double there = inside ? 0 : way / 2;
        done = std::max(begin + there, counter.ready) + way - there;
      }
    }
    counter.ready = rank.time = done;
    counter.writer = number;
    if (++counter.added < step.adders) return false;
    counter.added = 0;
    return true;
  }

  const Schedule& schedule_;
  const Seats& seats_;
  const Costs& costs_;
  const std::vector<unsigned>& domain_of_;
  const double inside_;
  std::vector<Rank> ranks_;
  std::vector<Agent> agents_;        ///< by domain
  std::vector<unsigned> flag_at_;    ///< by cell of the schedule
  std::vector<unsigned> reader_at_;  ///< likewise, where a step awaits it
  std::vector<Flag> flags_;
  std::vector<Reader> readers_;
  std::vector<Episode> episodes_;
  unsigned misses_most_ = 0;
  std::vector<double> misses_;  ///< by rank: when each one outstanding ends
  std::uint64_t random_ = 1;
  std::vector<Due> due_;  ///< by rank in the second half; each one before is the first of its two
};

}  // namespace

double estimate_ns(const Schedule& schedule, const Seats& seats, const Costs& costs,
                   double least_ns) {
  return Estimate(schedule, seats, costs).run(least_ns);
}

}  // namespace muster

// SPDX-License-Identifier: BSD-3-Clause
#include "fitting/estimate.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <queue>
#include <span>
#include <utility>

namespace muster {
namespace {

/// The first episode starts in step, as no later one does.
constexpr unsigned episodes = 3;
/// What takes so much longer than the least is seldom quicker after all. The first episode takes
/// 1.1 times as long as the third in the median, 1.9 times at most; the second up to 1.5 times.
constexpr double hopeless[episodes] = {1.5, 1.2, 1.2};
/// The slowest of a few pollers decides, and looks late in its turn.
constexpr double turn_share = 0.6;

class Estimate {
 public:
  Estimate(const Schedule& schedule, const Seats& seats, const Costs& costs)
      : schedule_(schedule),
        seats_(seats),
        costs_(costs),
        domain_of_(seats.levels[seats.domain].unit_of),
        inside_(seats.levels[seats.domain].ns),
        time_(schedule.participants()),
        step_(schedule.participants()),
        missing_(schedule.participants()),
        agents_(1 + *std::max_element(domain_of_.begin(), domain_of_.end())),
        first_flag_(schedule.participants() + 1) {
    // Where one polls all the others, the others have not as many.
    for (const CellAt& at : schedule.cells) {
      first_flag_[at.rank + 1] = std::max(first_flag_[at.rank + 1], at.index + 1);
    }
    std::partial_sum(first_flag_.begin(), first_flag_.end(), first_flag_.begin());
    flags_.resize(first_flag_.back());
    find_readers();
  }

  double run(double least_ns) {
    double last = -costs_.call;
    double period = 0;
    for (unsigned n = 0; n < episodes; ++n) {
      const double most = last + costs_.call + hopeless[n] * (least_ns - costs_.call);
      const double end = episode(most);
      period = end - last;
      if (end > most) break;
      last = end;
      for (double& time : time_) time += costs_.call;
    }
    return period;
  }

 private:
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

  /// A cell: a flag, or a counter.
  struct Flag {
    unsigned first_reader = 0;
    unsigned readers = 0;
    unsigned writer = 0;
    unsigned added = 0;
    double ready = -1;  ///< when its new value can be seen; -1: not yet in this episode
  };

  /// Who awaits a flag, in which step; and when the copy of its domain can be read again.
  struct Reader {
    unsigned rank;
    unsigned step;
    double free;
  };

  Flag& flag(unsigned cell) {
    const CellAt at = schedule_.cells[cell];
    return flags_[first_flag_[at.rank] + at.index];
  }

  template <class Fn>
  void for_each_await(Fn&& fn) {
    for (unsigned rank = 0; rank < time_.size(); ++rank) {
      const Schedule::Program& program = schedule_.programs[rank];
      for (unsigned s = program.arrivals; s < program.end; ++s) {
        const Step& step = schedule_.steps[s];
        for (unsigned n = 0; n < step.awaits; ++n) fn(flag(step.first_cell + n), rank, s);
      }
    }
  }

  void find_readers() {
    for_each_await([](Flag& flag, unsigned, unsigned) { ++flag.readers; });
    unsigned first = 0;
    for (Flag& flag : flags_) {
      flag.first_reader = first;
      first += std::exchange(flag.readers, 0);
    }
    readers_.resize(first);
    for_each_await([this](Flag& flag, unsigned rank, unsigned step) {
      readers_[flag.first_reader + flag.readers++] = {rank, step, 0};
    });
  }
  std::span<Reader> readers_of(const Flag& flag) {
    return {readers_.data() + flag.first_reader, flag.readers};
  }

  double serve(unsigned domain, double when) {
    return agents_[domain].serve(when, costs_.agent_occupancy);
  }

  /// When it ends, or some time after `most`, if it is not over then.
  double episode(double most) {
    for (Flag& flag : flags_) {
      flag.ready = -1;
      flag.added = 0;
    }
    for (Reader& reader : readers_) reader.free = 0;
    for (unsigned rank = 0; rank < time_.size(); ++rank) {
      step_[rank] = schedule_.programs[rank].arrivals;
      missing_[rank] = 0;
      due(time_[rank], rank);
    }
    while (!due_.empty()) {
      const Due first = due_.top();
      const auto when = std::bit_cast<double>(first & ~rank_bits);
      if (when > most) return when;
      due_.pop();
      proceed(static_cast<unsigned>(first & rank_bits), when);
    }
    return *std::max_element(time_.begin(), time_.end());
  }
  void due(double when, unsigned rank) {
    due_.push(((std::bit_cast<Due>(when) + rank_bits) & ~rank_bits) | rank);
  }

  /// Its steps, until somebody else is due before; where it has to wait it is due when it looks, if
  /// what it awaits has been stored, else store() makes it so.
  void proceed(unsigned rank, double when) {
    while (step_[rank] != schedule_.programs[rank].end) {
      const Step& step = schedule_.steps[step_[rank]];
      const double last = told(rank, step);
      if (missing_[rank] > 0) return;
      if (!due_.empty() && when > std::bit_cast<double>(due_.top() & ~rank_bits)) {
        due(when, rank);
        return;
      }
      if (step.awaits > 0 && !seen(rank, step, last, when)) return;
      unsigned cell = step.first_cell + step.awaits;
      for (unsigned n = 0; n < step.stores; ++n) store(rank, flag(cell++));
      if (step.adders > 0 && !add(rank, step, flag(cell)))
        step_[rank] = schedule_.programs[rank].departures;
      else
        ++step_[rank];
      when = time_[rank];
    }
  }

  /// When the last of the flags that it awaits can be seen; which are not stored is in missing_.
  double told(unsigned rank, const Step& step) {
    double last = 0;
    for (unsigned n = 0; n < step.awaits; ++n) {
      const double ready = flag(step.first_cell + n).ready;
      if (ready < 0)
        ++missing_[rank];
      else
        last = std::max(last, ready);
    }
    return last;
  }

  /// When who waits looks again.
  double looked_at(double ready) const {
    return ready + costs_.hit + turn_share * costs_.poll_turn;
  }

  /// False: not yet.
  bool seen(unsigned rank, const Step& step, double last, double when) {
    const double look = looked_at(last);
    if (last > time_[rank] && when < look) {
      due(look, rank);
      return false;
    }
    if (step.awaits == 1) {
      time_[rank] = read(flag(step.first_cell), rank, std::max(when, time_[rank])) + costs_.hit;
    } else {
      scan(rank, step);
    }
    return true;
  }

  /// Passes over a set of flags: each reads what has come until it began, a few misses at a time.
  void scan(unsigned rank, const Step& step) {
    const auto earlier = [](const Flag* a, const Flag* b) { return a->ready < b->ready; };
    awaited_.clear();
    for (unsigned n = 0; n < step.awaits; ++n) awaited_.push_back(&flag(step.first_cell + n));
    std::sort(awaited_.begin(), awaited_.end(), earlier);
    // More lines than the cache has ways for come from the domain's cache in each pass.
    double hit = costs_.hit;
    double gap = costs_.load_gap;
    if (step.awaits > costs_.poll_ways && costs_.set_fill > 0) {
      hit = gap = costs_.set_fill;
    } else if (step.awaits > costs_.poll_ways) {
      hit = std::max(hit, inside_ / costs_.poll_overlap);
    }
    double time = time_[rank];
    for (std::size_t n = 0; n < awaited_.size();) {
      if (awaited_[n]->ready > time) {
        time = looked_at(awaited_[n]->ready);
      }
      const double begin = time;
      double end = time;
      misses_.assign(static_cast<std::size_t>(std::max(1.0, costs_.poll_overlap)), 0);
      std::size_t missed = 0;
      for (; n < awaited_.size() && awaited_[n]->ready <= begin; ++n, ++missed) {
        double& slot = misses_[missed % misses_.size()];
        time = std::max(time, slot) + gap;
        slot = read(*awaited_[n], rank, time);
        end = std::max(end, slot);
      }
      time = end + static_cast<double>(awaited_.size() - missed) * hit;
    }
    // What came back has not been looked at: once more over all of them.
    time_[rank] = time + static_cast<double>(awaited_.size()) * hit;
  }

  /// When `rank` has the line that it asks for at `when`. The first of a domain gets it from the
  /// writer's, and the others there from that copy, one after another.
  double read(Flag& flag, unsigned rank, double when) {
    const unsigned domain = domain_of_[rank];
    const unsigned source = domain_of_[flag.writer];
    double begin = serve(domain, when);
    Reader* own = nullptr;     // of its domain: remembers when the copy there is free
    Reader* theirs = nullptr;  // of the writer's
    for (Reader& reader : readers_of(flag)) {
      if (own == nullptr && domain_of_[reader.rank] == domain) own = &reader;
      if (theirs == nullptr && domain_of_[reader.rank] == source) theirs = &reader;
    }
    if (domain == source || own->free > 0) {
      begin = std::max(begin, own->free);
      own->free = begin + costs_.read_occupancy;
      return begin + (domain == source ? seats_.between(flag.writer, rank) : inside_);
    }
    const double way = seats_.between(flag.writer, rank);
    begin = serve(source, begin + way / 2);
    if (theirs != nullptr) {
      begin = std::max(begin, theirs->free);
      theirs->free = begin + costs_.read_occupancy;
    }
    own->free = begin + way / 2 - inside_;
    return begin + way / 2;
  }

  /// It can be seen when all copies are gone.
  void store(unsigned rank, Flag& flag) {
    time_[rank] += costs_.store_gap;
    const unsigned domain = domain_of_[rank];
    const double begin = serve(domain, time_[rank]);
    double way = 0;
    unsigned last = domain;
    for (const Reader& reader : readers_of(flag)) {
      way = std::max(way, seats_.between(rank, reader.rank));
      const unsigned holder = domain_of_[reader.rank];
      if (holder != last && holder != domain) serve(holder, begin + way / 2);
      last = holder;
    }
    flag.ready = begin + way;
    flag.writer = rank;
    for (const Reader& reader : readers_of(flag)) {
      if (step_[reader.rank] == reader.step && missing_[reader.rank] > 0 &&
          --missing_[reader.rank] == 0) {
        const double began = time_[reader.rank];
        due(flag.ready > began ? looked_at(flag.ready) : began, reader.rank);
      }
    }
  }

  /// True for the last.
  bool add(unsigned rank, const Step& step, Flag& counter) {
    const double begin = serve(domain_of_[rank], time_[rank]);
    const unsigned owner = counter.writer;
    const double way = owner == rank ? costs_.rmw_local : seats_.between(owner, rank);
    if (domain_of_[owner] != domain_of_[rank]) serve(domain_of_[owner], begin + way / 2);
    double done = 0;
    if (!costs_.ll_sc) {
      done = std::max(begin + way / 2, counter.ready) + way / 2;
    } else if (counter.ready > begin) {  // all that are still to come read it again
      done = counter.ready + 2 * way + costs_.read_occupancy * (step.adders - counter.added - 1);
    } else {
      done = begin + 2 * way;
    }
    counter.ready = time_[rank] = done;
    counter.writer = rank;
    return ++counter.added == step.adders;
  }

  const Schedule& schedule_;
  const Seats& seats_;
  const Costs& costs_;
  const std::vector<unsigned>& domain_of_;
  const double inside_;
  std::vector<double> time_;          ///< by rank
  std::vector<unsigned> step_;        ///< by rank
  std::vector<unsigned> missing_;     ///< by rank: flags of its step that are not there
  std::vector<Agent> agents_;         ///< by domain
  std::vector<unsigned> first_flag_;  ///< by rank
  std::vector<Flag> flags_;
  std::vector<Reader> readers_;
  std::vector<Flag*> awaited_;
  std::vector<double> misses_;
  /// When, as the bits of a number that is not negative: they are in its order. Below that, who.
  using Due = std::uint64_t;
  static constexpr Due rank_bits = 0xffff;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

}  // namespace

double estimate_ns(const Schedule& schedule, const Seats& seats, const Costs& costs,
                   double least_ns) {
  return Estimate(schedule, seats, costs).run(least_ns);
}

}  // namespace muster

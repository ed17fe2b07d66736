// SPDX-License-Identifier: BSD-3-Clause
#include "barrier/schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace muster {
namespace {

constexpr unsigned none = UINT32_MAX;

/// Steps that run one after another, whoever runs them: a rank's arrivals up to the first counter;
/// what follows a counter up to the next one, which its last adder does; a rank's departures.
struct Strand {
  unsigned begin = 0;
  unsigned end = 0;
  unsigned rank = 0;  ///< the lowest that may run it
};

struct CellUse {
  bool stored = false;     ///< some strand's step stores it
  unsigned adders = 0;     ///< as its steps say; 0: a flag
  unsigned added = 0;      ///< by how many strands so far
  unsigned strand = none;  ///< of a counter: what its last adder goes on with
};

/// Follows a schedule in an order in which it can happen, and what each strand knows then.
///
/// A rank's departures are taken to start when the last counter's strand among its arrivals has
/// ended, as they do for whoever ran that one; but they know only what the rank knew before its
/// first counter, as they do for whoever did not. Both hold for a worse case than there is.
class Check {
 public:
  explicit Check(const Schedule& schedule) : s_(schedule) {}

  std::string run() {
    if (check_indices() && divide() && put_in_order() && !all_hear_of_all()) {
      for (unsigned first = 0; first < ranks() && fault_.empty(); first += 64) follow(first);
    }
    return fault_;
  }

 private:
  unsigned ranks() const { return s_.participants(); }
  static unsigned counter_at(const Step& step) {
    return step.first_cell + step.awaits + step.stores;
  }
  /// Of the cell that stands at `at` in the schedule's list.
  std::size_t number(unsigned at) const {
    return std::size_t{s_.cells[at].rank} * s_.cells_per_rank + s_.cells[at].index;
  }
  CellUse& use(unsigned at) { return uses_[number(at)]; }
  bool fail(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }
  bool fail_at(unsigned at, const std::string& fault) {
    const CellAt& cell = s_.cells[at];
    return fail("cell " + std::to_string(cell.index) + " of rank " + std::to_string(cell.rank) +
                " " + fault);
  }

  bool check_indices() {
    unsigned next = 0;
    for (const Schedule::Program& program : s_.programs) {
      if (program.arrivals != next || program.departures < next ||
          program.end < program.departures || program.end > s_.steps.size()) {
        return fail("its programs do not follow each other");
      }
      next = program.end;
    }
    if (ranks() == 0 || next != s_.steps.size()) return fail("some steps are nobody's");
    for (const CellAt& cell : s_.cells) {
      if (cell.rank >= ranks() || cell.index >= s_.cells_per_rank) {
        return fail("it names a cell that is not there");
      }
    }
    for (const Step& step : s_.steps) {
      const std::uint64_t end = std::uint64_t{step.first_cell} + step.awaits + step.stores;
      if (end + (step.adders > 0 ? 1 : 0) > s_.cells.size()) {
        return fail("a step names cells that are not there");
      }
    }
    return true;
  }

  /// Strands, and who stores and counts where. Each store of a strand is looked at once, though
  /// what follows a counter stands in the program of each of its adders.
  bool divide() {
    uses_.assign(std::size_t{ranks()} * s_.cells_per_rank, {});
    strands_.resize(std::size_t{2} * ranks());
    last_.assign(ranks(), none);
    for (unsigned rank = 0; rank < ranks(); ++rank) {
      const Schedule::Program& program = s_.programs[rank];
      unsigned begin = program.arrivals;
      unsigned strand = rank;
      bool known = false;  // this strand stands in an earlier rank's program
      for (unsigned i = begin; i <= program.departures; ++i) {
        const bool counts = i < program.departures && s_.steps[i].adders > 0;
        if (!counts && i < program.departures) continue;
        const unsigned end = counts ? i + 1 : i;
        // Who is told before the count is complete could leave, and add once more.
        for (unsigned n = begin; counts && n < end; ++n) {
          if (s_.steps[n].stores > 0) {
            return fail_at(counter_at(s_.steps[i]), "is counted in after a store");
          }
        }
        if (known ? !alike(strands_[strand], begin, end) : !note_stores(begin, end)) return false;
        if (!known) strands_[strand] = {begin, end, rank};
        if (!counts) break;
        if (!note_counter(s_.steps[i])) return false;
        CellUse& counter = use(counter_at(s_.steps[i]));
        known = counter.strand != none;
        if (!known) {
          counter.strand = static_cast<unsigned>(strands_.size());
          strands_.emplace_back();
        }
        strand = last_[rank] = counter.strand;
        begin = end;
      }
      strands_[ranks() + rank] = {program.departures, program.end, rank};
      for (unsigned i = program.departures; i < program.end; ++i) {
        if (s_.steps[i].adders > 0) return fail_at(counter_at(s_.steps[i]), "counts departures");
      }
      if (!note_stores(program.departures, program.end)) return false;
    }
    return true;
  }

  bool note_stores(unsigned begin, unsigned end) {
    for (unsigned i = begin; i < end; ++i) {
      const unsigned first = s_.steps[i].first_cell + s_.steps[i].awaits;
      for (unsigned at = first; at < first + s_.steps[i].stores; ++at) {
        if (use(at).stored) return fail_at(at, "is stored twice");
        if (use(at).adders > 0) return fail_at(at, "is a flag and a counter");
        use(at).stored = true;
      }
    }
    return true;
  }

  bool note_counter(const Step& step) {
    CellUse& counter = use(counter_at(step));
    if (counter.stored) return fail_at(counter_at(step), "is a flag and a counter");
    if (counter.adders != 0 && counter.adders != step.adders) {
      return fail_at(counter_at(step), "expects different numbers of adders");
    }
    counter.adders = step.adders;
    return true;
  }

  /// Whether the steps are those of the strand, which another rank's program has too.
  bool alike(const Strand& strand, unsigned begin, unsigned end) {
    bool same = end - begin == strand.end - strand.begin;
    for (unsigned n = 0; same && n < end - begin; ++n) {
      const Step& one = s_.steps[strand.begin + n];
      const Step& other = s_.steps[begin + n];
      const unsigned cells = one.awaits + one.stores + (one.adders > 0 ? 1 : 0);
      same =
          one.awaits == other.awaits && one.stores == other.stores && one.adders == other.adders &&
          std::equal(s_.cells.begin() + one.first_cell, s_.cells.begin() + one.first_cell + cells,
                     s_.cells.begin() + other.first_cell);
    }
    return same || fail_at(counter_at(s_.steps[begin - 1]), "is followed by different steps");
  }

  /// An order in which all strands end. A strand that waits goes on where it was when its flag is
  /// there.
  bool put_in_order() {
    std::vector<std::vector<unsigned>> waiting(uses_.size());  // strands, by flag
    std::vector<std::vector<unsigned>> departing(strands_.size());
    std::vector<bool> there(uses_.size());
    std::vector<unsigned> ready;
    std::vector<unsigned> awaited(strands_.size(), none);
    std::vector<unsigned> next;
    for (const Strand& strand : strands_) next.push_back(strand.begin);
    for (unsigned rank = 0; rank < ranks(); ++rank) {
      ready.push_back(rank);
      departing[last_[rank] == none ? rank : last_[rank]].push_back(ranks() + rank);
    }
    std::size_t ended = 0;
    while (!ready.empty()) {
      const unsigned id = ready.back();
      ready.pop_back();
      for (unsigned& i = next[id]; i < strands_[id].end; ++i) {
        const Step& step = s_.steps[i];
        unsigned at = awaited[id] != none ? awaited[id] : step.first_cell;
        for (const unsigned end = step.first_cell + step.awaits; at < end && there[number(at)];)
          ++at;
        if (at < step.first_cell + step.awaits) {
          waiting[number(at)].push_back(id);
          awaited[id] = at;
          break;
        }
        awaited[id] = none;
        order_.push_back({id, i});
        for (unsigned n = 0; n < step.stores; ++n, ++at) {
          there[number(at)] = true;
          auto& woken = waiting[number(at)];
          ready.insert(ready.end(), woken.begin(), woken.end());
          woken.clear();
        }
        if (step.adders == 0) continue;
        CellUse& counter = use(at);
        if (++counter.added > counter.adders) return fail_at(at, "has more adders than it says");
        if (counter.added == counter.adders) ready.push_back(counter.strand);
      }
      if (awaited[id] != none) continue;
      ++ended;
      ready.insert(ready.end(), departing[id].begin(), departing[id].end());
    }
    if (ended == strands_.size()) return true;
    for (const unsigned at : awaited) {
      if (at != none)
        return fail_at(
            at, use(at).stored ? "is waited for in a circle" : "is awaited, and nobody stores it");
    }
    for (unsigned at = 0; at < s_.cells.size(); ++at) {
      if (use(at).added < use(at).adders) return fail_at(at, "has fewer adders than it says");
    }
    return fail("it does not end");
  }

  /// In one pass, for what people compose: true if nobody leaves before everybody has arrived.
  /// False: that is not known; follow() finds out, which takes a pass for each 64 ranks.
  ///
  /// What a strand awaits before it tells anybody, it tells with all that it tells. So whoever
  /// hears of it hears of those who told it so: they need not be followed. Where one gathers for
  /// all it is that one alone. Where many tell each other they are many, and those that one has
  /// heard of are mostly neighbours, so the longest row of them is all that is kept.
  bool all_hear_of_all() {
    const std::vector<unsigned> followed = heard_of_by_nobody_who_gathers();
    ring_ = static_cast<unsigned>(followed.size());
    std::vector<Row> known(strands_.size());
    std::vector<Row> told(uses_.size());
    for (unsigned n = 0; n < ring_; ++n) known[followed[n]] = {n, 1};
    for (const auto& [id, i] : order_) {
      const Step& step = s_.steps[i];
      rows_.assign(1, known[id]);
      if (departs(id)) rows_.push_back(known[id - ranks()]);
      unsigned at = step.first_cell;
      for (unsigned n = 0; n < step.awaits; ++n, ++at) rows_.push_back(told[number(at)]);
      known[id] = joined();
      for (unsigned n = 0; n < step.stores; ++n, ++at) told[number(at)] = known[id];
      if (step.adders == 0) continue;
      rows_ = {known[use(at).strand], known[id]};
      known[use(at).strand] = joined();
    }
    for (unsigned rank = 0; rank < ranks(); ++rank) {
      rows_ = {known[rank], known[ranks() + rank]};
      if (joined().length < ring_) return false;
    }
    return true;
  }

  /// Strands of arrivals, by rank, so that neighbours are.
  std::vector<unsigned> heard_of_by_nobody_who_gathers() {
    std::vector<bool> gathered(uses_.size());
    const auto each = [&](auto&& visit) {
      for (unsigned id = 0; id < strands_.size(); ++id) {
        if (!departs(id)) visit(id);
      }
    };
    each([&](unsigned id) {
      for (unsigned i = strands_[id].begin; i < strands_[id].end; ++i) {
        const Step& step = s_.steps[i];
        for (unsigned n = 0; n < step.awaits; ++n) gathered[number(step.first_cell + n)] = true;
        if (step.stores > 0 || step.adders > 0) break;
      }
    });
    std::vector<unsigned> result;
    each([&](unsigned id) {
      for (unsigned i = strands_[id].begin; i < strands_[id].end; ++i) {
        const Step& step = s_.steps[i];
        const unsigned first = step.first_cell + step.awaits;
        if (step.adders > 0) return;
        for (unsigned at = first; at < first + step.stores; ++at) {
          if (gathered[number(at)]) return;
        }
      }
      result.push_back(id);
    });
    std::sort(result.begin(), result.end(),
              [&](unsigned a, unsigned b) { return strands_[a].rank < strands_[b].rank; });
    return result;
  }

  bool departs(unsigned id) const { return id >= ranks() && id < 2 * ranks(); }

  /// So many of a ring of `ring_`, one after another.
  struct Row {
    unsigned first = 0;
    unsigned length = 0;
    bool operator==(const Row&) const = default;
  };

  /// The longest row that those in `rows_` make up.
  Row joined() {
    std::erase(rows_, Row{});
    rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
    if (rows_.size() < 2) return rows_.empty() ? Row{} : rows_.front();
    std::sort(rows_.begin(), rows_.end(),
              [](const Row& a, const Row& b) { return a.first < b.first; });
    // Twice around: a row may begin before the ring's end, and go on at its beginning.
    Row longest;
    Row row = rows_.front();
    for (std::size_t n = 1; n < 2 * rows_.size(); ++n) {
      Row next = rows_[n % rows_.size()];
      if (n >= rows_.size()) next.first += ring_;
      if (next.first > row.first + row.length) {
        if (row.length > longest.length) longest = row;
        row = next;
      }
      row.length = std::max(row.length, next.first + next.length - row.first);
    }
    if (row.length > longest.length) longest = row;
    return {longest.first % ring_, std::min(longest.length, ring_)};
  }

  /// Which of the 64 ranks from `first` on have arrived, as far as each strand knows.
  void follow(unsigned first) {
    const unsigned count = std::min(64U, ranks() - first);
    const std::uint64_t all = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    std::vector<std::uint64_t> known(strands_.size());
    std::vector<std::uint64_t> told(uses_.size());
    for (unsigned n = 0; n < count; ++n) known[first + n] = std::uint64_t{1} << n;
    for (const auto& [id, i] : order_) {
      const Step& step = s_.steps[i];
      if (departs(id)) known[id] |= known[id - ranks()];
      unsigned at = step.first_cell;
      for (unsigned n = 0; n < step.awaits; ++n, ++at) known[id] |= told[number(at)];
      for (unsigned n = 0; n < step.stores; ++n, ++at) told[number(at)] = known[id];
      if (step.adders > 0) known[use(at).strand] |= known[id];
    }
    for (unsigned rank = 0; rank < ranks(); ++rank) {
      const std::uint64_t missing = all & ~(known[rank] | known[ranks() + rank]);
      if (missing == 0) continue;
      fail("rank " + std::to_string(rank) + " may leave before rank " +
           std::to_string(first + static_cast<unsigned>(__builtin_ctzll(missing))) +
           " has arrived");
      return;
    }
  }

  const Schedule& s_;
  std::string fault_;
  std::vector<CellUse> uses_;
  std::vector<Strand> strands_;  ///< by rank, its departures' by rank, then by counter
  std::vector<unsigned> last_;   ///< by rank: the strand of its last counter, or none
  struct Taken {
    unsigned strand;
    unsigned step;
  };
  std::vector<Taken> order_;
  unsigned ring_ = 0;
  std::vector<Row> rows_;
};

}  // namespace

std::string check_schedule(const Schedule& schedule) { return Check(schedule).run(); }

}  // namespace muster

// SPDX-License-Identifier: BSD-3-Clause
// The checked machine: the concept of machine/machine.hpp over the explorer. What runs on hardware
// runs here from the same header. Cells and plain data are numbers of words in the program's
// memory; every access carries its place in the source, by which its memory order can be weakened.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "check/program.hpp"
#include "machine/lock_machine.hpp"

namespace muster::check {

/// An access in the source.
struct OrderedAccess {
  Site site;
  const char* what;  ///< "store", "await", ...
  Ordering order;
};

/// `order` weakened by one step: nothing for relaxed, one for acquire, release and seq_cst, two for
/// acq_rel.
std::vector<Ordering> weakenings(Ordering order);
const char* ordering_name(Ordering order);

/// "src/barrier/mcs.hpp": a file of ours, by whichever name a compiler was given it.
std::string_view path_in_tree(std::string_view file);

/// Same line of the same file.
bool same_site(const Site& a, const Site& b);

/// How the accesses of a program are carried out, and which there were. Shared by all participants.
class Tuning {
 public:
  bool may_give_up = false;  ///< every wait may also give up, as at a deadline

  /// From now on accesses at this site have this order; one site at a time.
  void weaken(const Site& site, Ordering order) {
    weakened_ = {site, "", order};
    orders_.clear();
  }
  /// Each access asks, in every execution.
  Ordering order_at(const Site& site, const char* what, Ordering order) {
    const auto [known, is_new] = orders_.try_emplace({site.file, what, site.line, order}, order);
    if (is_new) known->second = find_order({site, what, order});
    return known->second;
  }
  /// Accesses seen so far.
  const std::vector<OrderedAccess>& accesses() const { return accesses_; }

 private:
  /// One by the compiler's words: a place in a header may have several.
  struct Written {
    const char* file;
    const char* what;
    int line;
    Ordering order;
    friend bool operator==(const Written&, const Written&) = default;
  };
  struct Hash {
    std::size_t operator()(const Written& w) const {
      return std::hash<const char*>()(w.file) + static_cast<std::size_t>(w.line) * 61 +
             static_cast<unsigned>(w.order);
    }
  };
  Ordering find_order(const OrderedAccess& access);

  std::unordered_map<Written, Ordering, Hash> orders_;
  OrderedAccess weakened_{{nullptr, 0}, "", Ordering::relaxed};
  std::vector<OrderedAccess> accesses_;
};

class Checked : public NobodySleeps<Checked> {
 public:
  struct Cell {
    Location location;
  };

  template <class T>
  struct Plain {
    static_assert(std::is_integral_v<T> && sizeof(T) <= sizeof(Word));
    Location location;
  };

  /// Cells of one object, all 0 at first.
  class Cells {
   public:
    Cells() = default;
    Cells(Memory& memory, unsigned globals, unsigned ranks, unsigned per_rank,
          const std::string& prefix = "", unsigned words = 0);
    Cell& global(unsigned index) const { return shared_->cells.at(index); }
    Cell& of(unsigned rank, unsigned index) const {
      return shared_->cells.at(shared_->globals + rank * shared_->per_rank + index);
    }
    Plain<Word>& word(unsigned index) const { return shared_->words.at(index); }
    const std::vector<Cell>& all() const { return shared_->cells; }

   private:
    struct Shared {
      unsigned globals;
      unsigned per_rank;
      std::vector<Cell> cells;
      std::vector<Plain<Word>> words;
    };
    std::shared_ptr<Shared> shared_;
  };

  /// A barrier that may break, and a participant whose patience ends in one of its waits.
  struct Patience {
    const Cell* broken;
    Word waits;  ///< before the one in which it ends
    std::function<void()> end;
  };

  /// A participant's port.
  Checked(Thread& thread, Tuning& tuning) : thread_(&thread), tuning_(tuning) {}
  /// For set-up: stores become initial values.
  Checked(Memory& memory, Tuning& tuning) : memory_(&memory), tuning_(tuning) {}

  Thread& thread() { return *thread_; }

  /// From now on waits end also when the barrier is broken, or patience with them.
  void set_patience(Patience patience) { patience_ = std::move(patience); }

  /// What all_arrived() does; nothing by default.
  void set_completion(std::function<bool()> completion) { completion_ = std::move(completion); }

  /// What compose() does; nothing by default.
  using Composer = std::function<std::span<const Word>(std::span<const Word> pus)>;
  void set_composer(Composer composer) { composer_ = std::move(composer); }

  template <Order O>
  Word load(const Cell& cell, OrderTag<O>, Site site = Site::here()) {
    return thread_->load(cell.location, at(site, "load", O), site);
  }

  template <Order O>
  void store(Cell& cell, Word word, OrderTag<O>, Site site = Site::here()) {
    if (memory_ != nullptr) return memory_->set_initial(cell.location, word);
    thread_->store(cell.location, word, at(site, "store", O), site);
  }

  template <Order O>
  Word exchange(Cell& cell, Word word, OrderTag<O>, Site site = Site::here()) {
    return thread_->exchange(cell.location, word, at(site, "exchange", O), site);
  }

  template <Order O>
  Word fetch_add(Cell& cell, Word delta, OrderTag<O>, Site site = Site::here()) {
    return thread_->fetch_add(cell.location, delta, at(site, "fetch_add", O), site);
  }

  template <Order O>
  bool compare_exchange(Cell& cell, Word& expected, Word desired, OrderTag<O>,
                        Site site = Site::here()) {
    const Ordering order = at(site, "compare_exchange", O);
    const Word seen = thread_->compare_exchange(cell.location, expected, desired, order, site);
    const bool done = seen == expected;
    expected = seen;
    return done;
  }

  template <class Pred, Order O>
  bool await(Cell& cell, Pred pred, OrderTag<O>, Awaited = Awaited::anyone,
             Site site = Site::here()) {
    const Ordering order = at(site, "await", O);
    if (gives_up(site)) return false;
    if (patience_.broken != nullptr) return await_patiently({&cell}, pred, order, site) != no_cell;
    return thread_->await_or_over(cell.location, Predicate(pred), order, site).has_value();
  }

  /// One after another: each has to be satisfied, so the order in which they are does not matter.
  template <class Pred, Order O>
  bool await_all(CellSet<Checked> cells, Pred pred, OrderTag<O>, Site site = Site::here()) {
    const Ordering order = at(site, "await_all", O);
    if (gives_up(site)) return false;
    for (const Cell* cell : cells) {
      const bool ready =
          patience_.broken == nullptr
              ? thread_->await_or_over(cell->location, Predicate(pred), order, site).has_value()
              : await_patiently({cell}, pred, order, site) != no_cell;
      if (!ready) return false;
    }
    return true;
  }

  template <class Pred, Order O>
  std::size_t await_any(CellSet<Checked> cells, Pred pred, OrderTag<O>, std::size_t from = 0,
                        Site site = Site::here()) {
    const Ordering order = at(site, "await_any", O);
    if (gives_up(site)) return no_cell;
    if (patience_.broken != nullptr) {
      return await_patiently({cells.begin(), cells.end()}, pred, order, site, from);
    }
    std::vector<Awaitable> any;
    for (const Cell* cell : cells) any.push_back({cell->location, Predicate(pred), order, site});
    return thread_->await_first_or_over(any, from).value_or(no_cell);
  }

  template <class T>
  T read(const Plain<T>& plain, Site site = Site::here()) {
    return static_cast<T>(thread_->read(plain.location, site));
  }
  template <class T>
  void write(Plain<T>& plain, T value, Site site = Site::here()) {
    thread_->write(plain.location, static_cast<Word>(value), site);
  }

  /// Nothing depends on it: all waits are the same here.
  static Awaited count_in_on_pu(const Cells&, unsigned, Word) { return Awaited::anyone; }
  /// Each on its own.
  Word pu() const { return thread_->id() + 1; }
  std::span<const Word> compose(std::span<const Word> pus) {
    if (!composer_) return {};
    return composer_(pus);
  }
  static void expect_store(const Cell&) {}

  /// Nothing by default: there is no time to pass.
  void linger(unsigned) {
    if (linger_) linger_();
  }
  std::int64_t time_ns() { return time_ns_ += 1'000'000'000; }
  void set_linger(std::function<void()> linger) { linger_ = std::move(linger); }

  bool all_arrived() { return !completion_ || completion_(); }

 private:
  /// Of an access that is carried out.
  Ordering at(const Site& site, const char* what, Order order) {
    thread_->go_on();
    return tuning_.order_at(site, what, ordering(order));
  }
  bool gives_up(const Site& site) { return tuning_.may_give_up && thread_->choose(2, site) != 0; }

  /// As hardware waits: looks at the cells, then at `broken`, then at the clock.
  template <class Pred>
  std::size_t await_patiently(const std::vector<const Cell*>& cells, Pred pred, Ordering order,
                              Site site, std::size_t from = 0) {
    struct Broken {
      bool operator()(Word seen) const { return seen != 0; }
    };
    if (patience_.waits-- == 0) {
      for (std::size_t n = 0; n < cells.size(); ++n) {
        const std::size_t i = (from + n) % cells.size();
        if (pred(thread_->load(cells[i]->location, order, site))) return i;
      }
      patience_.end();
      return no_cell;
    }
    std::vector<Awaitable> any;
    for (std::size_t n = 0; n < cells.size(); ++n) {
      any.push_back({cells[(from + n) % cells.size()]->location, Predicate(pred), order, site});
    }
    any.push_back({patience_.broken->location, Predicate(Broken{}), Ordering::relaxed, site});
    const std::size_t found = thread_->await_first_or_over(any, 0).value_or(no_cell);
    return found < cells.size() ? (from + found) % cells.size() : no_cell;
  }

  Thread* thread_ = nullptr;
  Memory* memory_ = nullptr;
  Tuning& tuning_;
  std::function<bool()> completion_;
  std::function<void()> linger_;
  std::int64_t time_ns_ = 0;
  Composer composer_;
  Patience patience_{nullptr, 0, {}};
};

static_assert(LockMachine<Checked> && MortalMachine<Checked>);

}  // namespace muster::check

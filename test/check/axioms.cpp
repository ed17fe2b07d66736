// SPDX-License-Identifier: BSD-3-Clause
#include "axioms.hpp"

#include <algorithm>
#include <vector>

namespace muster::check::test {
namespace {

/// Numbered: initial writes by location, then every thread's events.
class Judge {
 public:
  explicit Judge(const Graph& graph) : graph_(graph) {
    const auto locations = static_cast<Location>(graph.locations());
    for (Location l = 0; l < locations; ++l) ids_.push_back(EventId::initial(l));
    for (unsigned t = 0; t < graph.threads(); ++t) {
      first_.push_back(static_cast<int>(ids_.size()));
      for (std::int16_t i = 0; i < graph.size(t); ++i) {
        ids_.push_back({static_cast<std::int16_t>(t), i});
      }
    }
    place_.assign(ids_.size(), -1);
  }

  std::string rule() {
    for (const auto check : {&Judge::well_formed, &Judge::atomic_updates, &Judge::nothing_from_air,
                             &Judge::coherent, &Judge::fences_in_one_order, &Judge::no_races}) {
      if (const std::string wrong = (this->*check)(); !wrong.empty()) return wrong;
      if (check == &Judge::atomic_updates) happens_before();
    }
    return "";
  }

 private:
  using Set = std::vector<bool>;

  int all() const { return static_cast<int>(ids_.size()); }
  int number(EventId id) const {
    return id.is_initial() ? id.index : first_[static_cast<std::size_t>(id.thread)] + id.index;
  }
  bool initial(int e) const { return ids_[static_cast<std::size_t>(e)].is_initial(); }
  const Event& at(int e) const { return graph_.at(ids_[static_cast<std::size_t>(e)]); }
  Kind kind(int e) const { return at(e).op.kind; }

  Location location(int e) const {
    return initial(e) ? static_cast<Location>(e) : at(e).op.location;
  }
  bool fence(int e) const { return !initial(e) && kind(e) == Kind::fence; }
  bool plain(int e) const {
    return !initial(e) && (kind(e) == Kind::plain_read || kind(e) == Kind::plain_write);
  }
  bool writes(int e) const {
    return initial(e) || kind(e) == Kind::store || kind(e) == Kind::update_write ||
           kind(e) == Kind::plain_write;
  }
  bool reads(int e) const {
    return !initial(e) && (kind(e) == Kind::load || kind(e) == Kind::await ||
                           kind(e) == Kind::update_read || kind(e) == Kind::plain_read);
  }
  bool replaces(int e) const { return !initial(e) && kind(e) == Kind::update_write; }
  bool acquires(int e) const {
    if (initial(e)) return false;
    const Ordering o = at(e).op.order;
    return o == Ordering::acquire || o == Ordering::acq_rel || o == Ordering::seq_cst;
  }
  bool releases(int e) const {
    if (initial(e)) return false;
    const Ordering o = at(e).op.order;
    return o == Ordering::release || o == Ordering::acq_rel || o == Ordering::seq_cst;
  }
  int source(int e) const { return number(at(e).from); }
  bool sequenced(int a, int b) const {
    if (initial(a) || initial(b)) return initial(a) && !initial(b);
    const EventId x = ids_[static_cast<std::size_t>(a)];
    const EventId y = ids_[static_cast<std::size_t>(b)];
    return x.thread == y.thread && x.index < y.index;
  }
  std::string named(const char* rule, int a, int b) const {
    const auto name = [&](int e) {
      const EventId id = ids_[static_cast<std::size_t>(e)];
      return id.is_initial() ? "initial " + std::to_string(id.index)
                             : std::to_string(id.thread) + "." + std::to_string(id.index);
    };
    return std::string(rule) + ": " + name(a) + ", " + name(b);
  }

  /// Each location's modification order has all its writes once, reads read what was written.
  std::string well_formed() {
    for (std::size_t l = 0; l < graph_.locations(); ++l) {
      int position = 0;
      for (const EventId id : graph_.co(static_cast<Location>(l))) {
        const int w = number(id);
        if (place_[static_cast<std::size_t>(w)] >= 0 || !writes(w) || location(w) != l) {
          return named("modification order", w, w);
        }
        place_[static_cast<std::size_t>(w)] = position++;
      }
    }
    for (int e = 0; e < all(); ++e) {
      if (writes(e) && place(e) < 0) return named("a write in no modification order", e, e);
      if (!reads(e)) continue;
      const int w = source(e);
      if (!writes(w) || location(w) != location(e)) return named("read from", e, w);
      if (graph_.value(ids_[static_cast<std::size_t>(w)]) != at(e).read) {
        return named("value", e, w);
      }
    }
    return "";
  }
  int place(int w) const { return place_[static_cast<std::size_t>(w)]; }

  /// "Atomic read-modify-write operations shall always read the last value (in the modification
  /// order) written before the write associated with" them: [atomics.order].
  std::string atomic_updates() {
    for (int e = 0; e < all(); ++e) {
      if (replaces(e) && place(e) != place(source(e - 1)) + 1) return named("atomicity", e, e - 1);
    }
    return "";
  }

  /// A release sequence: a head and the updates that follow it at once in modification order.
  bool in_sequence_of(int head, int w) const {
    const auto order = graph_.co(location(head));
    if (location(w) != location(head) || place(w) < place(head)) return false;
    for (int p = place(head) + 1; p <= place(w); ++p) {
      if (!replaces(number(order[static_cast<std::size_t>(p)]))) return false;
    }
    return true;
  }

  /// [atomics.order] for an operation, [atomics.fences] for fences, on both sides.
  bool synchronizes(int a, int b) const {
    if (!releases(a) || !acquires(b)) return false;
    if (!fence(a) && (!writes(a) || plain(a))) return false;
    if (!fence(b) && (!reads(b) || plain(b))) return false;
    for (int x = 0; x < all(); ++x) {  // the head
      if (initial(x) || !writes(x) || plain(x)) continue;
      if (fence(a) ? !sequenced(a, x) : a != x) continue;
      for (int y = 0; y < all(); ++y) {  // the reader
        if (!reads(y) || plain(y)) continue;
        if (fence(b) ? !sequenced(y, b) : b != y) continue;
        if (in_sequence_of(x, source(y))) return true;
      }
    }
    return false;
  }

  void happens_before() {
    hb_.assign(ids_.size(), Set(ids_.size(), false));
    std::vector<std::vector<int>> next(ids_.size());
    for (int a = 0; a < all(); ++a) {
      for (int b = 0; b < all(); ++b) {
        if (a != b && (sequenced(a, b) || synchronizes(a, b))) {
          next[static_cast<std::size_t>(a)].push_back(b);
        }
      }
    }
    for (int a = 0; a < all(); ++a) {
      std::vector<int> todo = next[static_cast<std::size_t>(a)];
      while (!todo.empty()) {
        const int b = todo.back();
        todo.pop_back();
        if (hb(a, b)) continue;
        hb_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = true;
        const auto& more = next[static_cast<std::size_t>(b)];
        todo.insert(todo.end(), more.begin(), more.end());
      }
    }
  }
  bool hb(int a, int b) const {
    return hb_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  }

  /// Sequenced-before and reads-from have no cycle: the load buffering that is left out.
  std::string nothing_from_air() {
    Set done(ids_.size(), false);
    int left = all();
    for (bool progress = true; progress && left > 0;) {
      progress = false;
      for (int e = 0; e < all(); ++e) {
        if (done[static_cast<std::size_t>(e)]) continue;
        const bool after_read = reads(e) && !done[static_cast<std::size_t>(source(e))];
        const bool after_previous = !initial(e) && ids_[static_cast<std::size_t>(e)].index > 0 &&
                                    !done[static_cast<std::size_t>(e - 1)];
        if (after_read || after_previous) continue;
        done[static_cast<std::size_t>(e)] = true;
        --left;
        progress = true;
      }
    }
    return left == 0 ? "" : "out of thin air";
  }

  /// The four of [intro.races]: each says where the later one's write stands.
  std::string coherent() {
    for (int a = 0; a < all(); ++a) {
      if (hb(a, a)) return named("happens before itself", a, a);
      for (int b = 0; b < all(); ++b) {
        if (!hb(a, b) || fence(a) || fence(b) || choice(a) || choice(b)) continue;
        if (location(a) != location(b)) continue;
        const int of_a = writes(a) ? place(a) : place(source(a));
        const int of_b = writes(b) ? place(b) : place(source(b));
        if (writes(b) ? of_a >= of_b : of_a > of_b) {
          return named(writes(a) ? (writes(b) ? "write-write coherence" : "write-read coherence")
                                 : (writes(b) ? "read-write coherence" : "read-read coherence"),
                       a, b);
        }
      }
    }
    return "";
  }
  bool choice(int e) const { return !initial(e) && kind(e) == Kind::choice; }

  /// A single total order of the seq_cst fences in which X precedes Y if X happens before some A, A
  /// is coherence-ordered before some B, and B happens before Y: [atomics.order].
  std::string fences_in_one_order() {
    std::vector<int> fences;
    for (int e = 0; e < all(); ++e) {
      if (fence(e) && at(e).op.order == Ordering::seq_cst) fences.push_back(e);
    }
    const auto precedes = [&](int x, int y) {
      if (sequenced(x, y)) return true;
      for (int a = 0; a < all(); ++a) {
        if (!hb(x, a) || !accesses(a)) continue;
        for (int b = 0; b < all(); ++b) {
          if (hb(b, y) && accesses(b) && location(a) == location(b) && coherence_ordered(a, b)) {
            return true;
          }
        }
      }
      return false;
    };
    // Repeatedly takes a fence that none of the others has to precede.
    while (!fences.empty()) {
      const auto first = std::find_if(fences.begin(), fences.end(), [&](int y) {
        return std::none_of(fences.begin(), fences.end(),
                            [&](int x) { return x != y && precedes(x, y); });
      });
      if (first == fences.end()) return named("no order of seq_cst fences", fences[0], fences[1]);
      fences.erase(first);
    }
    return "";
  }
  bool accesses(int e) const { return reads(e) || writes(e); }
  /// A read comes after the write it reads from and before the next one.
  bool coherence_ordered(int a, int b) const {
    if (a == b) return false;
    const int of_a = writes(a) ? place(a) : place(source(a));
    const int of_b = writes(b) ? place(b) : place(source(b));
    if (of_a != of_b) return of_a < of_b;
    return writes(a) && !writes(b);
  }

  std::string no_races() {
    for (int a = 0; a < all(); ++a) {
      for (int b = a + 1; b < all(); ++b) {
        if (initial(a) || initial(b) || !(plain(a) || plain(b))) continue;
        if (!accesses(a) || !accesses(b) || location(a) != location(b)) continue;
        if (!writes(a) && !writes(b)) continue;
        if (!hb(a, b) && !hb(b, a)) return named("data race", a, b);
      }
    }
    return "";
  }

  const Graph& graph_;
  std::vector<EventId> ids_;
  std::vector<int> first_;
  std::vector<int> place_;
  std::vector<Set> hb_;
};

}  // namespace

std::string broken_rule(const Graph& graph) { return Judge(graph).rule(); }

}  // namespace muster::check::test

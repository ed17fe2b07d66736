// SPDX-License-Identifier: BSD-3-Clause
#include "oracle.hpp"

#include <array>
#include <optional>
#include <unordered_set>

namespace muster::check::test {
namespace {

constexpr unsigned events_max = 32;

/// A relation on events: bit b of row a is set if a is related to b.
class Relation {
 public:
  explicit Relation(std::size_t n) : n_(n) {}
  bool operator()(std::size_t a, std::size_t b) const { return (rows_[a] >> b & 1U) != 0; }
  void add(std::size_t a, std::size_t b) { rows_[a] |= 1U << b; }

  Relation then(const Relation& next) const {  // composition
    Relation out(n_);
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < n_; ++b) {
        if ((*this)(a, b)) out.rows_[a] |= next.rows_[b];
      }
    }
    return out;
  }
  Relation or_(const Relation& other) const {
    Relation out = *this;
    for (std::size_t a = 0; a < n_; ++a) out.rows_[a] |= other.rows_[a];
    return out;
  }
  Relation plus() const {  // transitive closure
    Relation out = *this;
    for (std::size_t via = 0; via < n_; ++via) {
      for (std::size_t a = 0; a < n_; ++a) {
        if (out(a, via)) out.rows_[a] |= out.rows_[via];
      }
    }
    return out;
  }
  Relation maybe() const {  // reflexive
    Relation out = *this;
    for (std::size_t a = 0; a < n_; ++a) out.add(a, a);
    return out;
  }
  Relation inverse() const {
    Relation out(n_);
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < n_; ++b) {
        if ((*this)(a, b)) out.add(b, a);
      }
    }
    return out;
  }
  bool irreflexive() const {
    for (std::size_t a = 0; a < n_; ++a) {
      if ((*this)(a, a)) return false;
    }
    return true;
  }
  template <class Keep>
  Relation only(Keep keep) const {
    Relation out(n_);
    for (std::size_t a = 0; a < n_; ++a) {
      for (std::size_t b = 0; b < n_; ++b) {
        if ((*this)(a, b) && keep(a, b)) out.add(a, b);
      }
    }
    return out;
  }

 private:
  std::size_t n_;
  std::array<std::uint32_t, events_max> rows_{};
};

struct Node {  // an event of the candidate graph, the initial writes first
  int thread = -1;
  int index = 0;
  int location = -1;
  bool reads = false, writes = false, plain = false, fence = false;
  MemoryOrder order = MemoryOrder::relaxed;
  int from = -1;  // the node that it reads from
  std::uint32_t read = 0, written = 0;

  bool acquires() const {
    return order == MemoryOrder::acquire || order == MemoryOrder::acq_rel ||
           order == MemoryOrder::seq_cst;
  }
  bool releases() const {
    return order == MemoryOrder::release || order == MemoryOrder::acq_rel ||
           order == MemoryOrder::seq_cst;
  }
};

struct Candidate {
  std::vector<Node> nodes;
  std::vector<std::vector<int>> modification;  // per location, node numbers
};

enum class Judgement { consistent, inconsistent, racy };

Judgement judge(const Candidate& g) {
  const std::size_t n = g.nodes.size();
  const auto node = [&](std::size_t i) -> const Node& { return g.nodes[i]; };
  Relation sb(n), rf(n), mo(n), id(n);
  for (std::size_t a = 0; a < n; ++a) {
    id.add(a, a);
    if (node(a).from >= 0) rf.add(static_cast<std::size_t>(node(a).from), a);
    for (std::size_t b = 0; b < n; ++b) {
      const bool initial = node(a).thread < 0 && node(b).thread >= 0;
      const bool same =
          node(a).thread >= 0 && node(a).thread == node(b).thread && node(a).index < node(b).index;
      if (initial || same) sb.add(a, b);
    }
  }
  for (const auto& writes : g.modification) {
    for (std::size_t i = 0; i < writes.size(); ++i) {
      for (std::size_t j = i + 1; j < writes.size(); ++j) {
        mo.add(static_cast<std::size_t>(writes[i]), static_cast<std::size_t>(writes[j]));
      }
    }
  }
  const Relation rb = rf.inverse().then(mo).only([](auto a, auto b) { return a != b; });
  const Relation eco = rf.or_(mo).or_(rb).plus();

  const auto is_fence = [&](std::size_t i) { return node(i).fence; };
  const auto atomic = [&](std::size_t i) { return !node(i).plain && !node(i).fence; };
  const Relation into_rmw = rf.only([&](auto, auto b) { return node(b).writes && atomic(b); });
  const Relation sequence =
      into_rmw.plus().maybe().only([&](auto a, auto) { return node(a).writes && atomic(a); });
  const Relation from_release =
      id.or_(sb.only([&](auto a, auto) { return is_fence(a); })).only([&](auto a, auto) {
        return node(a).releases() && (atomic(a) || is_fence(a));
      });
  const Relation to_acquire =
      id.or_(sb.only([&](auto, auto b) { return is_fence(b); })).only([&](auto a, auto b) {
        return node(a).reads && atomic(a) && node(b).acquires();
      });
  const Relation sw = from_release.then(sequence).then(rf).then(to_acquire);
  const Relation hb = sb.or_(sw).plus();

  if (!hb.then(eco.maybe()).irreflexive()) return Judgement::inconsistent;
  // An update is one node here, two events in order in the paper: its read precedes its write.
  if (!eco.irreflexive()) return Judgement::inconsistent;
  if (!rb.then(mo).irreflexive()) return Judgement::inconsistent;
  if (!sb.or_(rf).plus().irreflexive()) return Judgement::inconsistent;
  const Relation psc = hb.or_(hb.then(eco).then(hb)).only([&](auto a, auto b) {
    return is_fence(a) && is_fence(b) && node(a).order == MemoryOrder::seq_cst &&
           node(b).order == MemoryOrder::seq_cst;
  });
  if (!psc.plus().irreflexive()) return Judgement::inconsistent;

  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      const bool conflict = node(a).plain && node(b).plain &&
                            node(a).location == node(b).location &&
                            (node(a).writes || node(b).writes);
      if (conflict && !hb(a, b) && !hb(b, a)) return Judgement::racy;
    }
  }
  return Judgement::consistent;
}

bool is_await(Code code) { return code == Code::await_equal || code == Code::await_at_least; }
bool satisfies(const Instruction& i, std::uint32_t value) {
  return i.code == Code::await_at_least ? static_cast<std::int32_t>(value - i.value) >= 0
                                        : value == i.value;
}

/// What a thread does next, given what its events so far have read.
struct Next {
  std::optional<Instruction> instruction;
  std::uint32_t last_read = 0;
  int index = 0;
  bool failed_pass = false;  ///< it read all locations and none did; it goes no further
  int pass_begin = 0;
};

Next next_of(const RandomProgram& program, const Candidate& g, int thread) {
  Next next;
  const auto event = [&]() -> const Node* {
    for (const Node& candidate : g.nodes) {
      if (candidate.thread == thread && candidate.index == next.index) return &candidate;
    }
    return nullptr;
  };
  bool skip = false;
  for (const Instruction& i : program.threads[static_cast<std::size_t>(thread)]) {
    if (skip) {
      skip = false;
      continue;
    }
    if (i.code == Code::skip_if) {
      skip = next.last_read == i.value;
      continue;
    }
    if (i.code == Code::await_any) {
      next.pass_begin = next.index;
      bool found = false;
      for (unsigned l = 0; l < program.atomics && !found; ++l) {
        const Node* load = event();
        if (load == nullptr) {
          next.instruction = Instruction{Code::load, i.order, l};
          return next;
        }
        ++next.index;
        found = satisfies(i, load->read);
        next.last_read = l;
      }
      if (found) continue;
      next.failed_pass = true;
      return next;
    }
    const Node* done = event();
    if (done == nullptr) {
      next.instruction = i;
      return next;
    }
    if (done->reads || i.code == Code::choose) next.last_read = done->read;
    ++next.index;
  }
  return next;
}

class Search {
 public:
  Search(const RandomProgram& program, bool prune, std::size_t states_max)
      : program_(program), prune_(prune), states_max_(states_max) {}

  Truth run() {
    Candidate g;
    for (unsigned l = 0; l < program_.atomics + program_.plains; ++l) {
      Node initial;
      initial.index = static_cast<int>(l);
      initial.location = static_cast<int>(l);
      initial.writes = true;
      initial.plain = l >= program_.atomics;
      g.nodes.push_back(initial);
      g.modification.push_back({static_cast<int>(l)});
    }
    extend(g);
    return std::move(truth_);
  }

 private:
  /// `without_passes`: without the loads of passes that failed.
  std::string text(const Candidate& g, bool without_passes = false) const {
    ExecutionText out;
    for (int t = 0; t < static_cast<int>(program_.threads.size()); ++t) {
      const Next next = next_of(program_, g, t);
      const bool shorten = without_passes && next.failed_pass;
      for (int index = 0; !shorten || index < next.pass_begin; ++index) {
        const Node* found = nullptr;
        for (const Node& node : g.nodes) {
          if (node.thread == t && node.index == index) found = &node;
        }
        if (found == nullptr) break;
        if (found->reads) {
          const Node& from = g.nodes[static_cast<std::size_t>(found->from)];
          out.read(t, found->location, from.thread, from.index, found->read);
        } else {
          out.other(t, found->fence || found->writes ? 0 : found->read);
        }
      }
    }
    for (std::size_t l = 0; l < g.modification.size(); ++l) {
      for (const int w : g.modification[l]) {
        const Node& node = g.nodes[static_cast<std::size_t>(w)];
        out.modification(static_cast<int>(l), node.thread, node.index);
      }
    }
    return out.text();
  }

  void consider(const Candidate& g) {
    if (prune_) {
      const Judgement judgement = judge(g);
      if (judgement == Judgement::racy) truth_.races = true;
      if (judgement != Judgement::consistent) return;
    }
    extend(g);
  }

  void extend(const Candidate& g) {
    if (truth_.too_large || truth_.races) return;
    if (!seen_.insert(text(g)).second) return;
    if (seen_.size() > states_max_ || g.nodes.size() + 1 >= events_max) {
      truth_.too_large = true;
      return;
    }
    bool all_done = true;
    bool all_wait = true;
    for (int t = 0; t < static_cast<int>(program_.threads.size()); ++t) {
      const Next next = next_of(program_, g, t);
      if (next.failed_pass) {
        all_done = false;
        if (!pass_read_newest(g, t, next)) all_wait = false;
      }
      if (!next.instruction) continue;
      all_done = false;
      if (!is_await(next.instruction->code) || newest_satisfies(g, *next.instruction)) {
        all_wait = false;
      }
      step(g, t, next.index, *next.instruction, next.last_read);
    }
    if (!all_wait) return;
    const Judgement judgement = prune_ ? Judgement::consistent : judge(g);
    if (judgement == Judgement::racy) truth_.races = true;
    if (judgement == Judgement::consistent) {
      (all_done ? truth_.executions : truth_.hangs).insert(text(g, true));
    }
  }

  static bool newest_satisfies(const Candidate& g, const Instruction& i) {
    return satisfies(i,
                     g.nodes[static_cast<std::size_t>(g.modification[i.location].back())].written);
  }

  static bool pass_read_newest(const Candidate& g, int thread, const Next& pass) {
    for (const Node& node : g.nodes) {
      if (node.thread == thread && node.index >= pass.pass_begin &&
          node.from != g.modification[static_cast<std::size_t>(node.location)].back()) {
        return false;
      }
    }
    return true;
  }

  void step(const Candidate& g, int thread, int index, const Instruction& i,
            std::uint32_t last_read) {
    Node node;
    node.thread = thread;
    node.index = index;
    node.order = i.order;
    if (i.code == Code::fence || i.code == Code::choose) {
      node.fence = i.code == Code::fence;
      for (std::uint32_t choice = 0; choice < (node.fence ? 1U : 2U); ++choice) {
        Candidate h = g;
        node.read = choice;
        if (!node.fence) node.order = MemoryOrder::relaxed;
        h.nodes.push_back(node);
        consider(h);
      }
      return;
    }
    node.plain = i.code == Code::plain_read || i.code == Code::plain_write;
    node.reads = i.code != Code::store && i.code != Code::store_read && i.code != Code::plain_write;
    node.location = static_cast<int>(i.location);
    if (!node.reads) {
      node.writes = true;
      node.written = i.code == Code::store_read ? last_read + i.value : i.value;
      place(g, node);
      return;
    }
    for (const int from : g.modification[i.location]) {
      Node read = node;
      read.from = from;
      read.read = g.nodes[static_cast<std::size_t>(from)].written;
      if (is_await(i.code) && !satisfies(i, read.read)) continue;
      if (i.code == Code::add || i.code == Code::exchange ||
          (i.code == Code::compare_exchange && read.read == i.expected)) {
        read.writes = true;
        read.written = i.code == Code::add ? read.read + i.value : i.value;
        place(g, read);
        continue;
      }
      if (i.code == Code::compare_exchange) {
        read.order = node.acquires() ? MemoryOrder::acquire : MemoryOrder::relaxed;
      }
      Candidate h = g;
      h.nodes.push_back(read);
      consider(h);
    }
  }

  void place(const Candidate& g, const Node& node) {
    const auto l = static_cast<std::size_t>(node.location);
    for (std::size_t p = 1; p <= g.modification[l].size(); ++p) {
      Candidate h = g;
      h.nodes.push_back(node);
      h.modification[l].insert(h.modification[l].begin() + static_cast<std::ptrdiff_t>(p),
                               static_cast<int>(g.nodes.size()));
      consider(h);
    }
  }

  const RandomProgram& program_;
  bool prune_;
  std::size_t states_max_;
  Truth truth_;
  std::unordered_set<std::string> seen_;
};

void append(std::string& text, char tag, std::initializer_list<long long> numbers) {
  text += tag;
  for (const long long n : numbers) text.append(std::to_string(n)).append(",");
}

}  // namespace

void ExecutionText::read(int thread, int location, int from_thread, int from_index,
                         std::uint32_t value) {
  append(text_, 'r', {thread, location, from_thread, from_index, value});
}
void ExecutionText::other(int thread, std::uint32_t value) { append(text_, 'o', {thread, value}); }
void ExecutionText::modification(int location, int thread, int index) {
  append(text_, 'm', {location, thread, index});
}

Truth brute_force(const RandomProgram& program, bool prune, std::size_t states_max) {
  return Search(program, prune, states_max).run();
}

}  // namespace muster::check::test

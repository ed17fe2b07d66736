// SPDX-License-Identifier: BSD-3-Clause
// When `auto` locks get a server of their own accord, and when it leaves: a rule over what is seen
// of the clients every few milliseconds. No threads and no clock of its own: a function of what it
// is shown.
//
// A server starts when clients have met at the locks for `looks_to_start` looks in a row and a CPU
// is free beside all threads of the process. It leaves at once when the clients need its CPU, when
// somebody else takes it, or when the trial shows that sections became slower; and when clients no
// longer meet. After each of these but the last it stays away, each time twice as long; but it
// comes back at once where the data may be: near the client that executes others' sections fastest.
// If no CPU is free there, clients that are elsewhere stand back (hints.hpp), till it is tried
// anew. Before a server starts, those near whoever combines do: others may be nearer to the data.
// No client may be: a server that is a gain is tried on each NUMA node with a free CPU, unless it
// executes too many sections for data that are far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lock/hints.hpp"

namespace muster::locks {

class Steward {
 public:
  /// A client that executed others' sections, or a server.
  struct Executor {
    unsigned place;  ///< where it was: whatever number
    double sections_per_s;
  };
  /// What of a client's pace was seen before.
  struct Seen {
    std::uint64_t sections = 0;
    std::uint64_t ns = 0;
  };
  /// What is seen. Sums are since the locks were made.
  struct Look {
    std::int64_t now_ns = 0;
    std::uint64_t sections = 0;
    /// Of these: others executed them, or their client had to wait since others may not.
    std::uint64_t meets = 0;
    unsigned clients = 0;      ///< threads with sections since the last look
    unsigned usable_cpus = 1;  ///< of the process
    double threads_cpus =
        0;                   ///< time of the process since the last look, in CPUs; not the server's
    double server_cpus = 1;  ///< the server's; 1 if it slept in between
    std::optional<Executor> combiner{};  ///< the fastest since the last look
    bool server_is_near = true;          ///< it is on the NUMA node of fastest(), if known
    std::optional<unsigned> server{};    ///< where it is, if known
    std::optional<unsigned> untried{};   ///< on a NUMA node with a free CPU, of none of tried()

    void add(const Pace& pace, Seen& seen, unsigned place);  ///< of one client
  };
  /// In the model 2 to 31 clients of four machines want a strict trial. With a third of both
  /// numbers of looks before and in it, a quarter or four times of all else that it sees they do
  /// the same.
  struct Rules {
    unsigned looks_to_start = 3;
    unsigned looks_to_leave = 25;  ///< in a row, without anybody meeting
    double meets_per_s = 2000;     ///< fewer are no contention
    double server_cpus = 0.75;     ///< less, twice in a row: others take its CPU. Between all of
                                   ///< it, and the half that a busy loop leaves
    unsigned trial_looks = 6;      ///< the first is not counted
    double trial_ratio = 0.9;  ///< of the throughput before, that is wanted with the server. With
                               ///< 0.8 two clients of a Xeon do 0.82; with 1.0 the same
    /// Servers on other NUMA nodes are tried where one executes fewer: with more, a section takes
    /// less time than an access to another node's memory.
    double far_sections_per_s = 10e6;
    std::int64_t away_ns = 100'000'000;         ///< after having left; then twice that, ...
    std::int64_t away_max_ns = 10'000'000'000;  ///< ... up to that; and before NUMA nodes are
                                                ///< tried again
  };
  enum class Advice : std::uint8_t { stay, start, leave };

  Steward() : Steward(Rules{}) {}
  explicit Steward(const Rules& rules) : rules_(rules), away_ns_(rules.away_ns) {}

  Advice look(const Look& now);
  /// The server that was advised could not start, or was stopped by somebody else. `error`: what
  /// it was that failed, if anything.
  void no_server(std::int64_t now_ns, const char* why, const char* error = "") noexcept;

  /// Of the clients, since a server was last no gain.
  const std::optional<Executor>& fastest() const { return fastest_; }
  /// The place whose NUMA node a server has to start on, if any.
  std::optional<unsigned> near() const {
    if (next_) return next_;
    return is_near_ && !is_full_ ? std::optional(fastest_->place) : std::nullopt;
  }
  /// Servers that are compared.
  const std::vector<Executor>& tried() const { return tried_; }
  /// Whether the next look wants to know what is `untried`.
  bool may_move() const { return !knows_best_ && trial_left_ == 1; }
  StandBack stand_back() const {
    if (is_near_) return {fastest_->place, StandBack::who_is_elsewhere};
    if (streak_ == 0 || serving_ || !fastest_) return {};
    return {combined_at_, StandBack::who_is_near};
  }

  /// Why there is a server, or none.
  std::string why() const;
  /// The deciding fact alone, a constant.
  const char* cause() const { return why_; }
  unsigned starts() const { return starts_; }
  unsigned leaves() const { return leaves_; }

 private:
  Advice without_server(const Look& now, bool meet, double sections_per_s);
  Advice with_server(const Look& now, bool meet);
  Advice end_trial(const Look& now);
  Advice move(const Look& now, unsigned to, const char* why);
  Advice leave(const Look& now, const char* why, bool stays_away);
  /// No server can be where the next one was to be: it is not compared.
  void pass_over() noexcept;
  void stay_away(std::int64_t now_ns);
  void set_why(const char* why) noexcept {
    why_ = why;
    error_.clear();
  }

  Rules rules_;
  Look last_;
  bool serving_ = false;
  const char* why_ = "clients have not met at the lock";
  std::string error_;          ///< of a start; empty: none
  unsigned streak_ = 0;        ///< looks in a row that speak for a change
  unsigned taken_ = 0;         ///< and in which others had the server's CPU
  double sections_per_s_ = 0;  ///< during the streak that led to the server
  unsigned trial_left_ = 0;
  Look trial_began_;
  double ratio_ = 0;  ///< throughput with the server to that before; 0: no trial yet
  std::optional<Executor> fastest_;
  bool is_near_ = false;      ///< fastest_ to the data, nearer than a server was
  bool is_full_ = false;      ///< and no CPU is free there
  unsigned combined_at_ = 0;  ///< where the fastest was when the streak began
  std::vector<Executor> tried_;
  bool knows_best_ = false;
  std::int64_t best_since_ns_ = 0;
  std::optional<unsigned> next_;  ///< where one starts
  std::int64_t away_ns_;
  std::int64_t away_until_ns_ = 0;
  std::int64_t served_since_ns_ = 0;
  unsigned starts_ = 0;
  unsigned leaves_ = 0;
};

}  // namespace muster::locks

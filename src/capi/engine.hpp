// SPDX-License-Identifier: BSD-3-Clause
// A barrier at work in this process: its block, and a seat (port and ticket) for each rank that
// waits here. The one place where the algorithms are instantiated for hardware.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "capi/block.hpp"
#include "capi/explain.hpp"
#include "capi/plan.hpp"
#include "machine/hardware.hpp"
#include "wait/standstill.hpp"

namespace muster {

/// What the caller wants to be called for; see muster_options.
struct UserHooks {
  int (*progress)(void*) = nullptr;
  int (*completion)(void*) = nullptr;
  void* context = nullptr;
};

class Engine;
class Follower;

/// Instead of a pid: of a process in another PID namespace than the barrier's creator. Nobody can
/// tell whether it lives.
inline constexpr Word unseen_pid = ~Word{1};

/// Whether a mark's process is gone or a zombie.
bool has_died(Word pid) noexcept;

/// What a participant looks after when a wait takes long: whether another one died, whether the
/// wait has no end, and whether somebody should be told who is missing. All of it in the slow path;
/// the fast path pays nothing.
class Watch {
 public:
  /// `engine` and `hooks` must outlive it. MUSTER_WATCHDOG=seconds is read once a process; what
  /// is no number is told on stderr.
  Watch(const Engine& engine, unsigned rank, const UserHooks& hooks);

  /// For the rank's port.
  Hooks hooks() noexcept;
  /// From now on this one composes; it must outlive the port.
  void set_follower(Follower* follower) { follower_ = follower; }

 private:
  Word inspect(std::int64_t began_ns, std::int64_t now) noexcept;
  Word find_dead(bool first) const noexcept;
  Word find_nonsense(std::int64_t began_ns) noexcept;
  bool is_strange(unsigned rank, Word pid, bool near) noexcept;
  /// Whom it looks up at each look: the ranks after its own, up to the second that waits as well,
  /// which looks up those behind it. So all who wait look up everybody together, twice at most.
  /// `waiting`: how many between do.
  static bool is_near(unsigned waiting) noexcept { return waiting < 2; }
  void report_missing(std::int64_t waited_ns) const noexcept;

  const Engine& engine_;
  const UserHooks& hooks_;
  unsigned rank_;
  unsigned looks_ = 0;
  Follower* follower_ = nullptr;
  std::int64_t limit_ns_;         // what takes longer is reported
  std::int64_t swept_ns_ = 0;     // when all others were last looked at
  std::int64_t reported_ns_ = 0;  // when the last report was made
  Standstill standstill_;
  std::vector<Word> known_;  // of each rank, in other processes: its mark's pid, once looked up
};

/// Two lines: 64 bytes each on x86, up to 128 elsewhere.
#if defined(__x86_64__) || defined(__i386__)
inline constexpr std::size_t line_pair_bytes = 128;
#else
inline constexpr std::size_t line_pair_bytes = 256;
#endif

/// A rank at work in this process: its port, and the mark others see. Aligned to pairs of lines:
/// neighbours' must not share what a prefetcher fetches together.
struct alignas(line_pair_bytes) Seat {
  /// One episode, from the way in to the way out: a muster_status. A plain function that the C
  /// interface jumps to. `deadline_ns`: on now_ns(), or WaitPolicy::forever.
  using Wait = int (*)(Seat& seat, std::int64_t deadline_ns) noexcept;
  /// Half an episode of a barrier that splits; false if it gave up.
  using Half = bool (*)(Seat& seat);
  struct Calls {
    Wait wait;
    Half arrive;  ///< null where the algorithm does not split
    Half depart;
  };

  Seat(const Calls& its_calls, Engine& its_engine, unsigned its_rank);
  virtual ~Seat() = default;

  Word phase() const noexcept { return own_phase.load(std::memory_order_relaxed); }

  /// From `phase`, in which the rank is outside, to the next. False if the barrier is broken.
  bool enter(Word phase) noexcept {
    if (!port.enter(mark.phase, phase)) [[unlikely]]
      return false;
    own_phase.store(phase + 1, std::memory_order_relaxed);
    return true;
  }

  /// From the phase after `phase`. Nothing of the barrier is touched afterwards.
  void leave(Word phase) noexcept {
    PlainAtoms atoms;
    muster::leave(atoms, mark.phase, phase);
    muster::leave(atoms, own_phase, phase);
  }

  Calls calls;
  Mark& mark;
  /// What the mark's was set to, where nobody else can write.
  std::atomic<Word> own_phase{0};
  Hardware port;
  Engine& engine;
  unsigned rank;
};

class Engine {
 public:
  static std::unique_ptr<Engine> make(const Plan& plan, const Block& block, const UserHooks& hooks);
  virtual ~Engine() = default;

  /// By the creator, once, before anybody else can attach.
  virtual void prepare() = 0;

  /// In a fork's child, before its first wait: the ranks its parent took remain the parent's.
  void drop_seats();

  /// The rank's seat; null before its first wait in this process.
  Seat* seat(unsigned rank) const noexcept { return seats_[rank].get(); }
  /// All of them, by rank.
  const std::unique_ptr<Seat>* seats() const noexcept { return seats_.get(); }

  /// Each returns a muster_status, and keeps the text of a failure for muster_last_error(). A
  /// rank's first call allocates (throws std::bad_alloc). Once a call has returned, it touches
  /// nothing of the barrier any more: it may be destroyed.
  int timed_wait(unsigned rank, std::int64_t timeout_ns);
  int arrive(unsigned rank);
  int depart(unsigned rank);
  /// Leaves a wait that gave up.
  [[gnu::cold]] static int give_up(Seat& seat, Word phase) noexcept;
  /// Of the ranks that wait here.
  Learnt learnt() const;
  /// Of all ranks.
  virtual Whereabouts whereabouts() const { return {}; }
  /// Why a seat that is taken cannot be entered.
  [[gnu::cold]] static int refuse(const Seat& seat) noexcept;

  /// Returns once no living participant, or none of this process, is inside a wait. Who has not
  /// left after `leaving_ns_max` is told that the barrier is broken. False if that does not help
  /// either, or a mark cannot be true: then the memory may still be in use.
  [[nodiscard]] bool wait_until_left(bool only_own) const;
  /// Whether somebody here waits for one that has not come: for ever, if the barrier ends.
  bool is_waited_in_vain() const;
  /// The ranks that waited through this engine will not come again: whoever waits for one of them,
  /// in another process, is told.
  void depart_for_good() const;

  unsigned participants() const { return plan_.participants; }
  const Plan& plan() const { return plan_; }
  const Block& block() const { return block_; }
  /// Calls missing(rank, its mark) for each that has not yet been in the episode that a rank at
  /// `mine` is inside of.
  void each_missing(Word mine, auto missing) const {
    for (unsigned rank = 0; rank < plan_.participants; ++rank) {
      const Mark& mark = block_.mark(rank);
      const Word theirs = mark.phase.load(std::memory_order_relaxed);
      if (static_cast<std::int32_t>(theirs - mine) < 0) missing(rank, mark);
    }
  }
  bool is_anyone_missing(Word mine) const;
  const UserHooks& hooks() const { return hooks_; }
  /// For seats made after.
  void set_hooks(const UserHooks& hooks) { hooks_ = hooks; }
  /// By which others watch this process: own_process(), or unseen_pid.
  Word own_pid() const noexcept;
  bool is_seen() const noexcept { return is_seen_; }
  /// Its cause is `foreign` where the word is none that we write.
  Breakage breakage() const;

 protected:
  Engine(const Plan& plan, const Block& block, const UserHooks& hooks);

 private:
  virtual std::unique_ptr<Seat> make_seat(unsigned rank) = 0;

  bool lacks_completion() const noexcept { return plan_.completes && hooks_.completion == nullptr; }
  [[gnu::cold]] int refuse_seat() const noexcept;
  Seat* take_seat(unsigned rank);
  void touch(unsigned rank);

  std::unique_ptr<std::unique_ptr<Seat>[]> seats_;
  Plan plan_;
  Block block_;
  UserHooks hooks_;
  bool is_seen_;  // in the creator's PID namespace: others can tell whether this process lives
};

}  // namespace muster

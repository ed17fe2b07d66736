// SPDX-License-Identifier: BSD-3-Clause
// The locks that need no server's runtime: the templates of src/lock over hardware, each in memory
// of its own.
#include "delegation/make_lock.hpp"

#include <pthread.h>

#include <utility>

#include "delegation/delegated.hpp"
#include "delegation/places.hpp"
#include "delegation/robust_lock.hpp"
#include "delegation/station.hpp"
#include "delegation/work.hpp"
#include "lock/registry.hpp"

namespace muster::delegation {
namespace {

/// Hardware with the cells of one lock: a line for each slot, its cells packed and its request
/// behind them.
class PlainPort : public Port {
 public:
  using Port::Port;
  using Cells = FixedCells<line_bytes, sizeof(Cell)>;
};

/// Requests of slots of a line each, behind their cells.
using PlainBoard = Board<BoardShape{
    .stride = line_bytes, .spacing = 0, .group_bits = 0, .errors_at = sizeof(Section)}>;

template <class L>
constexpr bool has_parts = std::is_base_of_v<locks::Combining<L>, L>;
template <class L>
constexpr bool has_clusters = requires(const L& lock) {
  lock.ticket(0U, 0U);
};

/// A lock of src/lock on hardware. Its clients take it, each for its own section, or leave that to
/// who has it; outside of all sections a client knows its seat and goes the short way.
template <class L>
class Plain final : public AnyLock {
  static constexpr bool combines = L::traits.style == locks::Style::combining;

 public:
  explicit Plain(const locks::Shape& shape) : Plain(shape, L::layout(shape)) {
    PlainPort port(memory_.domain(), 0);
    if constexpr (requires { lock_.prepare(port); }) lock_.prepare(port);
    if constexpr (requires(Seat & seat) { lock_.acquire_shared(seat.port, seat.ticket); }) {
      readers_ = std::make_unique<Readers>(*this);
    }
  }

  void execute(Section section, unsigned) override {
    Thread& t = this_thread;
    if (!t.is_outside()) return execute_nested(section);
    if (t.last_lock != number_ever()) [[unlikely]] {
      admit_process();
      t.remember(number_ever(), &own_seat(), nullptr);
    }
    t.quick = number_ever();
    execute_quickly(t, section);
  }
  void give_up() override {
    if constexpr (combines) {
      AnyLock::give_up();
    } else {
      release(own_seat());
    }
  }
  bool take_again() override { return take(own_seat()); }

 protected:
  bool has_client(unsigned seat) const noexcept override { return seats_.find(seat) != nullptr; }
  bool try_take(bool again) override {
    if constexpr (requires(Seat & seat) { lock_.try_acquire(seat.port, seat.ticket); }) {
      Seat& seat = own_seat();
      return lock_.try_acquire(seat.port, seat.ticket);
    } else {
      return AnyLock::try_take(again);
    }
  }

 private:
  Plain(const locks::Shape& shape, const locks::Layout& layout)
      : AnyLock(L::traits, execute_at_once),
        memory_(layout.global_cells, std::size_t{layout.slots} * line_bytes),
        board_{memory_.cells().slots() + layout.cells_per_slot * sizeof(Hardware::Cell)},
        lock_(shape, memory_.cells()) {}

  struct Seat {
    PlainPort port;
    typename L::Ticket ticket;
    int thread_id = 0;  ///< of which the cluster is known
  };

  /// The calling thread's. One is enough: it is in one section of the lock at a time, and waits for
  /// none in others. A client's cluster is the NUMA node on which its thread first needs the lock.
  Seat& own_seat() {
    const unsigned number = first_seat();
    Seat& seat = seats_.of(number, [&] {
      return Seat{PlainPort(memory_.domain(), number), lock_.ticket(number)};
    });
    if constexpr (has_clusters<L>) {
      if (std::exchange(seat.thread_id, this_thread.id) != this_thread.id) {
        const Places& places = Places::instance();
        seat.ticket.cluster = places.tree().numa_of(places.core_of_this_thread(number));
      }
    }
    return seat;
  }
  /// What the thread has here, if it used this lock last.
  static Seat& last_seat(const Thread& t) { return *static_cast<Seat*>(t.last_seat); }

  /// AnyLock::short_way().
  [[gnu::flatten]] static int execute_at_once(AnyLock& lock, Section section, Execute otherwise) {
    // In a section `quick` is of that one's lock or of one around it.
    if (this_thread.inside != nullptr) [[unlikely]]
      return otherwise(lock, section);
    static_cast<Plain&>(lock).execute_quickly(this_thread, section);
    return 0;
  }
  [[gnu::always_inline]] void execute_quickly(Thread& t, Section section) {
    if (!take(last_seat(t))) return delegate<Outermost>(last_seat(t), section);
    run_at_once(
        t, section, [&t]() __attribute__((always_inline)) {
          // All is read again, the lock too: what lives across the section has to be saved before
          // it.
          auto& lock = static_cast<Plain&>(*t.inside);
          if (t.todo != 0 || lock.has_deferred() || !lock.give(last_seat(t))) [[unlikely]]
            return leave_anyway(t);
          t.leave();
        });
  }
  /// The section has left posts, or give() has found others' requests.
  [[gnu::noinline]] static void leave_anyway(Thread& t) {
    auto& lock = static_cast<Plain&>(*t.inside);
    {
      const Calling call(&lock);
      const bool has_left = t.todo != 0 || lock.has_deferred();
      lock.run_deferred();
      if (!has_left || !lock.give(last_seat(t))) lock.template serve<Outermost>(last_seat(t));
      t.leave();
    }
    send_kept_posts();
  }
  void execute_nested(Section section) {
    admit();
    if constexpr (combines) {
      if (execute_nested_in(section)) return;
    }
    Seat& seat = own_seat();
    if (!take(seat)) return delegate<Inside>(seat, section);
    run_taken(section, [&] {
      if (!give(seat)) serve<Inside>(seat);
    });
  }

  /// True if the client has the lock; else it has to delegate().
  [[gnu::always_inline]] bool take(Seat& seat) {
    if constexpr (has_parts<L>) {
      return lock_.take(seat.port, seat.ticket);
    } else if constexpr (combines) {
      return false;
    } else {
      const KeepErrno of_caller(*this_thread.error);  // waiting may change it
      lock_.acquire(seat.port, seat.ticket);
      return true;
    }
  }
  /// False: there are others' requests, to serve(); or this is a fork's child, where they are not.
  [[gnu::always_inline]] bool give(Seat& seat) {
    if constexpr (has_parts<L>) {
      return lock_.give(seat.port, seat.ticket);
    } else if constexpr (combines) {
      return true;
    } else {
      const bool is_there = in_own_process();
      if (is_there) [[likely]]
        release(seat);
      return is_there;
    }
  }
  [[gnu::always_inline]] void release(Seat& seat) {
    const KeepErrno of_section(*this_thread.error);
    lock_.release(seat.port, seat.ticket);
  }
  template <class Where>
  [[gnu::noinline]] void delegate(Seat& seat, Section section) {
    if constexpr (combines) {
      const NoCancellation whole;
      {
        const Calling call(this);
        ClientsWork<Where> work(section, board_, this);
        if constexpr (has_parts<L>) {
          lock_.delegate(seat.port, seat.ticket, work);
        } else {
          lock_.execute(seat.port, seat.ticket, work);
        }
        work.finish();
      }
      send_kept_posts();
    }
  }
  /// In a fork's child requests are its parent's.
  template <class Where>
  void serve(Seat& seat) {
    if constexpr (has_parts<L>) {
      if (!in_own_process()) return;
      const NoCancellation whole;
      ClientsWork<Where> work({}, board_, this);
      lock_.serve(seat.port, seat.ticket, work);
      work.finish();
    }
  }

  /// In a fork's child, back from its own section, the others are not there: what they want is
  /// their own process's, and whoever is to come next never does.
  template <class Where>
  class ClientsWork : public WorkFrom<Where, PlainBoard> {
   public:
    using WorkFrom<Where, PlainBoard>::WorkFrom;
    void run_own(Port& port) noexcept {
      WorkFrom<Where, PlainBoard>::run_own(port);
      if (!this->lock_->in_own_process()) [[unlikely]]
        port.break_domain({Status::peer, 0});
    }
    void run(Port& port, unsigned slot) noexcept {
      if (this->lock_->in_own_process()) [[likely]]
        WorkFrom<Where, PlainBoard>::run(port, slot);
    }
  };

  /// What a thread is inside of in a section that others may be in, too.
  class Readers final : public AnyLock {
   public:
    explicit Readers(Plain& lock) : AnyLock(L::traits), of_(lock) {}
    [[gnu::flatten]] void execute(Section section, unsigned) override {
      auto& seat = of_.own_seat();
      execute_taken(
          section, [&] { of_.lock_.acquire_shared(seat.port, seat.ticket); },
          [&] { of_.lock_.release_shared(seat.port, seat.ticket); });
    }

   private:
    Plain& of_;
  };

  SlotMemory<PlainPort::Cells> memory_;
  PlainBoard board_;
  L lock_;
  PerSeat<Seat> seats_;
};

/// The C library's mutex.
class Pthread final : public AnyLock {
 public:
  Pthread() : AnyLock(locks::PthreadMutex::traits) {}
  /// Sanitizers would take the next mutex at this address for it.
  ~Pthread() override { pthread_mutex_destroy(&mutex_); }

  void execute(Section section, unsigned) override {
    execute_taken(
        section, [&] { pthread_mutex_lock(&mutex_); }, [&] { pthread_mutex_unlock(&mutex_); });
  }
  void give_up() override { pthread_mutex_unlock(&mutex_); }
  bool take_again() override { return pthread_mutex_lock(&mutex_) == 0; }
  /// Its clients need no seat: who has given the mutex back looks at it no more.
  bool await_callers(std::int64_t end_ns) override {
    if (!try_take(false) && !AnyLock::wait_to_take(end_ns)) return false;
    give_up();
    return true;
  }

 protected:
  bool try_take(bool) override { return pthread_mutex_trylock(&mutex_) == 0; }

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace

std::size_t shared_lock_bytes() { return sizeof(RobustMemory); }

std::unique_ptr<AnyLock> make_lock(const LockOptions& options) {
  const locks::Traits& traits = locks::traits_of(options.kind);
  const bool has_turns =
      traits.style == locks::Style::server || traits.style == locks::Style::adaptive;
  if (options.turn_ns != 0 && !has_turns) {
    throw Error(Status::unsupported, options.kind + ": only auto and rcl have turns of a set time");
  }
  const bool has_limit =
      traits.style == locks::Style::combining && traits.name != locks::Oyama<Port>::traits.name;
  if (options.turn_sections != 0 && !has_limit) {
    throw Error(Status::unsupported,
                options.kind +
                    ": only cc-synch, dsm-synch, flat-combining and h-synch have turns "
                    "of a set number of sections");
  }
  if (options.shared_memory != nullptr && traits.name != shared_kind) {
    throw Error(Status::unsupported,
                options.kind + ": it is one process's; between processes use " + shared_kind);
  }
  if (traits.name == locks::PthreadMutex::traits.name) return std::make_unique<Pthread>();
  register_heavy_fence(false);
  if (has_turns) {
    return std::make_unique<Delegated>(
        traits, options.station, options.turn_ns != 0 ? options.turn_ns : locks::Visit::usual_ns);
  }
  return locks::with_lock<PlainPort>(options.kind, [&]<class L>() -> std::unique_ptr<AnyLock> {
    if constexpr (std::is_same_v<L, locks::Robust<PlainPort>>) {
      return std::make_unique<RobustLock>(options.shared_memory, options.creates);
    } else {
      locks::Shape shape{.clients = seats_max};
      if (options.turn_sections != 0) shape.limit = options.turn_sections;
      if constexpr (has_clusters<L>) {
        shape.clusters = static_cast<unsigned>(Places::instance().tree().numa_nodes().size());
      }
      if constexpr (L::traits.style == locks::Style::direct ||
                    L::traits.style == locks::Style::combining) {
        return std::make_unique<Plain<L>>(shape);
      } else {
        return nullptr;
      }
    }
  });
}

}  // namespace muster::delegation

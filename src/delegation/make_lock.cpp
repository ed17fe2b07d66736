// SPDX-License-Identifier: BSD-3-Clause
// The locks that need no server's runtime: the templates of src/lock over hardware, each in memory
// of its own.
#include "delegation/make_lock.hpp"

#include <atomic>
#include <new>
#include <optional>
#include <utility>

#include "delegation/delegated.hpp"
#include "delegation/kept.hpp"
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
    .stride = line_bytes, .spacing = 0, .group_bits = 0, .errors_at = sizeof(Request)}>;

template <class L>
class Memory {
 public:
  explicit Memory(const locks::Shape& shape)
      : layout_(L::layout(shape)),
        bytes_((1 + layout_.global_cells + std::size_t{layout_.slots}) * line_bytes) {}

  Hardware::Domain& domain() const { return *reinterpret_cast<Hardware::Domain*>(bytes_.data()); }
  PlainPort::Cells cells() const { return {bytes_.data() + line_bytes, slots()}; }
  PlainBoard board() const {
    return {.first = slots() + layout_.cells_per_slot * sizeof(Hardware::Cell)};
  }

 private:
  std::byte* slots() const { return bytes_.data() + (1 + layout_.global_cells) * line_bytes; }

  locks::Layout layout_;
  Reserved bytes_;
};

template <class L>
constexpr bool has_try = requires(const L& lock, PlainPort& port, typename L::Ticket& ticket) {
  lock.try_acquire(port, ticket);
};
template <class L>
constexpr bool has_parts = std::is_base_of_v<locks::Combining<L>, L>;
template <class L>
constexpr bool has_clusters = requires(const L& lock) {
  lock.ticket(0U, 0U);
};
template <class L>
constexpr bool has_readers = requires(const L& lock, PlainPort& port, typename L::Ticket& ticket) {
  lock.acquire_shared(port, ticket);
};

/// A lock of src/lock on hardware. Where a thread is outside of all sections and has used it last,
/// `Kind` executes its section quickly.
template <class L, class Kind>
class Plain : public AnyLock {
 public:
  void execute(Section section) final {
    Thread& t = this_thread;
    if (t.last_lock != number_ever() || !t.is_outside()) [[unlikely]]
      return static_cast<Kind&>(*this).execute_anywhere(section);
    t.quick = number_ever();
    static_cast<Kind&>(*this).execute_quickly(t, section);
  }

 protected:
  struct Seat {
    PlainPort port;
    typename L::Ticket ticket;
    int thread_id = 0;  ///< of which the cluster is known
  };

  explicit Plain(const locks::Shape& shape)
      : AnyLock(L::traits, execute_at_once), memory_(shape), lock_(shape, memory_.cells()) {
    static_assert(sizeof(Hardware::Domain) <= line_bytes);
  }

  /// The calling thread's. One is enough: it is in one section of the lock at a time, and waits for
  /// none in others. A client's cluster is the NUMA node on which its thread first needs the lock.
  Seat& own_seat() {
    const unsigned number = first_seat();
    Seat& seat = seats_.of(number, [&] {
      return Seat{PlainPort(memory_.domain(), number), lock_.ticket(number)};
    });
    if constexpr (has_clusters<L>) {
      if (std::exchange(seat.thread_id, this_thread.id) != this_thread.id) {
        seat.ticket.cluster = Places::instance().numa_of_this_thread(number);
      }
    }
    return seat;
  }

  /// What the thread has here, if it used this lock last.
  static Seat& last_seat(const Thread& t) { return *static_cast<Seat*>(t.last_seat); }

  Memory<L> memory_;
  L lock_;
  PerSeat<Seat> seats_;

 private:
  /// AnyLock::short_way().
  [[gnu::flatten]] static int execute_at_once(AnyLock& lock, Section section, Execute otherwise) {
    // In a section `quick` is of that one's lock or of one around it.
    if (this_thread.inside != nullptr) [[unlikely]]
      return otherwise(lock, section);
    static_cast<Kind&>(lock).execute_quickly(this_thread, section);
    return 0;
  }
};

/// Whose clients execute their own sections.
template <class L>
class Direct final : public Plain<L, Direct<L>> {
  using Base = Plain<L, Direct<L>>;
  friend Base;
  using Base::last_seat;
  using Base::lock_;
  using Base::own_seat;

 public:
  explicit Direct(const locks::Shape& shape) : Base(shape) {
    if constexpr (has_readers<L>) this->readers_ = std::make_unique<Readers>(*this);
  }

  void give_up() override {
    auto& seat = own_seat();
    lock_.release(seat.port, seat.ticket);
  }
  bool take_again() override {
    auto& seat = own_seat();
    lock_.acquire(seat.port, seat.ticket);
    return true;
  }
  void allow_conditions() override {}

 protected:
  bool try_take(bool again) override {
    if constexpr (has_try<L>) {
      auto& seat = own_seat();
      return lock_.try_acquire(seat.port, seat.ticket);
    } else {
      return AnyLock::try_take(again);
    }
  }

 private:
  [[gnu::always_inline]] void execute_quickly(Thread& t, Section section) {
    int& error = *t.error;
    const int before = error;
    lock_.acquire(last_seat(t).port, last_seat(t).ticket);
    if (error != before) error = before;  // waiting may have changed it
    this->run_at_once(
        t, section, [ this, &t ]() __attribute__((always_inline)) {
          if (this->in_own_process()) [[likely]]  // in a fork's child who waits is not there
            this->give_after_section(
                *t.error, [&]() __attribute__((always_inline)) {
                  lock_.release(last_seat(t).port, last_seat(t).ticket);
                });
          t.inside = nullptr;
          send_kept_posts();
        });
  }
  void execute_anywhere(Section section) {
    this->admit();
    auto& seat = own_seat();
    this_thread.remember(this->number_ever(), &seat, nullptr);
    this->execute_taken(
        section, [&] { lock_.acquire(seat.port, seat.ticket); },
        [&] { lock_.release(seat.port, seat.ticket); });
  }

  /// What a thread is inside of in a section that others may be in, too.
  class Readers final : public AnyLock {
   public:
    explicit Readers(Direct& lock) : AnyLock(L::traits), of_(lock) {}
    [[gnu::flatten]] void execute(Section section) override {
      auto& seat = of_.own_seat();
      execute_taken(
          section, [&] { of_.lock_.acquire_shared(seat.port, seat.ticket); },
          [&] { of_.lock_.release_shared(seat.port, seat.ticket); });
    }

   private:
    Direct& of_;
  };
};

/// Whose clients leave their sections to others, too.
template <class L>
class Combined final : public Plain<L, Combined<L>> {
  using Base = Plain<L, Combined<L>>;
  friend Base;
  using Base::last_seat;
  using Base::lock_;
  using Base::memory_;
  using Base::own_seat;
  using typename Base::Seat;

 public:
  explicit Combined(const locks::Shape& shape) : Base(shape), board_(memory_.board()) {
    PlainPort port(memory_.domain(), 0);
    if constexpr (requires { lock_.prepare(port); }) lock_.prepare(port);
  }

 private:
  [[gnu::always_inline]] void execute_quickly(Thread& t, Section section) {
    if constexpr (has_parts<L>) {
      if (lock_.take(last_seat(t).port, last_seat(t).ticket)) {
        return this->run_at_once(
            t, section, [&t]() __attribute__((always_inline)) {
              // All is read again, the lock too: what lives across the section has to be saved
              // before it.
              auto& lock = static_cast<Combined&>(*t.inside);
              if (lock.has_left_posts(t) ||
                  !lock.lock_.give(last_seat(t).port, last_seat(t).ticket)) [[unlikely]]
                return see_to_others(t);
              t.inside = nullptr;
            });
      }
    }
    delegate(section);
  }

  [[gnu::noinline]] void delegate(Section section) {
    const NoCancellation whole;
    Seat& seat = last_seat(this_thread);
    ClientsWork<Outermost> work(section, board_, this);
    if constexpr (has_parts<L>) {
      lock_.delegate(seat.port, seat.ticket, work);
    } else {
      lock_.execute(seat.port, seat.ticket, work);
    }
    work.finish();
    send_kept_posts();
  }
  bool has_left_posts(const Thread& t) const { return this->has_deferred() || t.todo != 0; }
  /// After a section that was executed at once: it has left posts, or there are others' requests.
  [[gnu::noinline]] static void see_to_others(Thread& t) {
    const NoCancellation whole;
    auto& lock = static_cast<Combined&>(*t.inside);
    Seat& seat = last_seat(t);
    const bool has_left = lock.has_left_posts(t);
    if (has_left) lock.run_deferred();
    // In a fork's child the others are not there: their requests are their own process's.
    if (!(has_left && lock.lock_.give(seat.port, seat.ticket)) && lock.in_own_process()) {
      ClientsWork<Outermost> work({}, lock.board_, &lock);
      lock.lock_.serve(seat.port, seat.ticket, work);
      work.finish();
    }
    t.inside = nullptr;
    send_kept_posts();
  }

  /// From inside of other sections, too, and for the first time.
  [[gnu::noinline]] void execute_anywhere(Section section) {
    this->admit();
    if (this->execute_nested_in(section)) return;
    const NoCancellation whole;
    Seat& seat = own_seat();
    this_thread.remember(this->number_ever(), &seat, nullptr);
    ClientsWork<Inside> work(section, board_, this);
    lock_.execute(seat.port, seat.ticket, work);
    work.finish();
    send_kept_posts();
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

  PlainBoard board_;
};

/// The C library's mutex.
class Pthread final : public AnyLock {
 public:
  Pthread() : AnyLock(locks::PthreadMutex::traits) {}

  void execute(Section section) override {
    execute_taken(
        section, [&] { mutex_.acquire(); }, [&] { mutex_.release(); });
  }
  void give_up() override { mutex_.release(); }
  bool take_again() override {
    mutex_.acquire();
    return true;
  }
  void allow_conditions() override {}

 protected:
  bool try_take(bool) override { return mutex_.try_acquire(); }

 private:
  locks::PthreadMutex mutex_;
};

}  // namespace

std::size_t shared_lock_bytes() { return sizeof(RobustMemory); }

std::unique_ptr<AnyLock> make_lock(const LockOptions& options) {
  const locks::Traits& traits = locks::traits_of(options.kind);
  const bool has_turns =
      traits.style == locks::Style::server || traits.style == locks::Style::adaptive;
  if (options.turn_ns != 0 && !has_turns) {
    throw Error(Status::unsupported,
                options.kind + ": only auto and rcl have turns that can be set");
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
      // Who is head next may notice only some microseconds later: seldom.
      locks::Shape shape{.clients = seats_max, .limit = 256};
      if constexpr (has_clusters<L>) {
        shape.clusters = static_cast<unsigned>(Places::instance().tree().numa_nodes().size());
      }
      if constexpr (L::traits.style == locks::Style::direct) {
        return std::make_unique<Direct<L>>(shape);
      } else if constexpr (L::traits.style == locks::Style::combining) {
        return std::make_unique<Combined<L>>(shape);
      } else {
        return nullptr;
      }
    }
  });
}

}  // namespace muster::delegation

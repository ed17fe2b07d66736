// SPDX-License-Identifier: BSD-3-Clause
// What threads need that exclude each other and wait until they are called; and besides, a server's
// crew (lock/crew.hpp). On hardware it is machine/mutual.hpp, and delegation/station.hpp's House.
#pragma once

#include "machine/machine.hpp"

namespace muster {

// clang-format off
/// Of threads that exclude each other.
template <class M>
concept MutualMachine = requires(M& m, typename M::Mutex& mutex) {
  { m.within(mutex, [] { return true; }) } -> std::same_as<bool>;  // body(), with the mutex
};

/// A crew's, with signals, which are called with the mutex. Its atoms change with the mutex, too,
/// but for who sleeps, and what is known of a lock (lock/ahead.hpp).
template <class M>
concept CrewMachine = MutualMachine<M> && requires(M& m, typename M::Atom& atom, Word word,
                                                   typename M::Mutex& mutex,
                                                   typename M::Signal& signal) {
  { m.load(atom, relaxed) } -> std::same_as<Word>;
  m.store(atom, word, relaxed);
  m.wait(signal, mutex);       // until it is called; the mutex is given back meanwhile
  m.nap(signal, mutex, true);  // likewise; one that is not for long ends by itself
  m.call_one(signal);
  m.call_all(signal);
  // With the mutex: all members; whether one seems to block; one more, which is counted, or false:
  // it cannot; that another one is at work from now on.
  { m.is_stuck(**m.members().begin()) } -> std::same_as<bool>;
  { m.hire() } -> std::same_as<bool>;
  m.has_handed_over();
  m.ring();  // wakes whoever is at work and sleeps (lock/bell.hpp)
  // Of the calling thread: how often it has waited; that a spare is at work, or will be.
  { m.waits() } -> std::same_as<long>;
  m.has_stepped_ahead();
};

/// Of who waits for a condition (lock/condition.hpp), with plain data.
template <class M>
concept ConditionMachine = MutualMachine<M> && requires(M& m,
                                                        typename M::template Plain<bool>& plain,
                                                        typename M::Mutex& mutex,
                                                        typename M::Signal& signal) {
  { m.read(plain) } -> std::same_as<bool>;
  m.write(plain, true);
  { m.wait_until(signal, mutex, 0) } -> std::same_as<bool>;  // as wait(); false: it is that time
  m.call_one(signal);
};
// clang-format on

}  // namespace muster

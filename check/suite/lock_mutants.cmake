# SPDX-License-Identifier: BSD-3-Clause
# Locks with one fault each, which no weaker memory order would cause: the checks have to catch
# them. The last one is right: its numbers wrap soon.
#   cmake -DROOT=<source tree> -DOUTPUT=<file> -P lock_mutants.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../patch.cmake)
set(files
  src/lock/cc_synch.hpp src/lock/clh.hpp src/lock/condition.hpp
  src/lock/departure.hpp src/lock/dsm_synch.hpp
  src/lock/h_synch.hpp src/lock/kept_posts.hpp src/lock/mcs.hpp src/lock/phase_fair.hpp
  src/lock/flat_combining.hpp src/lock/rings.hpp
  src/lock/bell.hpp src/lock/seats.hpp src/lock/doze.hpp src/lock/ask.hpp src/lock/desk.hpp
  src/lock/habit.hpp
  src/lock/auto.hpp
  src/lock/nested.hpp src/lock/round.hpp
  src/lock/attended.hpp src/lock/rcl.hpp src/lock/robust.hpp
  check/suite/lock_rehearsal.hpp check/suite/rings_rehearsal.hpp check/suite/bell.hpp
  check/suite/seats.hpp check/suite/dozing.hpp check/suite/departure.hpp check/suite/kept_posts.hpp
  check/suite/robust.hpp check/suite/conditions.hpp check/suite/nesting.hpp)
set(rows "")
begin_patches()

# ${name}, a fault in ${file}. In its namespaces `locks` are its own, and beside them all others.
macro(patch_locks)
  list(TRANSFORM file PREPEND src/lock/)
  patch("${name}" ${file})
  set(alias "namespace locks = muster::locks::${id};")
  get_property(text GLOBAL PROPERTY text)
  string(PREPEND text
    "namespace muster::locks::${id} {\nusing namespace muster::locks;\n${alias}\n}\n"
    "namespace muster::check::${id} {\n${alias}\n}\n")
  set_property(GLOBAL PROPERTY text "${text}")
endmacro()

function(mutant name file class)
  set(also check/suite/lock_rehearsal.hpp)
  patch_locks()
  string(APPEND rows
    "      mutant_of_lock(\"${name}\", locks::${class}<Checked>::traits.name, \"\",\n"
    "                     ${id}::rehearse_lock<${id}::locks::${class}<Checked>>),\n")
  set(rows "${rows}" PARENT_SCOPE)
endfunction()

# Of the scenarios of the rings, those of that variant.
function(mutant_of_rings name file variant rehearse)
  patch_locks()
  string(APPEND rows "      mutant_of_lock(\"${name}\", \"rings\", \"${variant}\",\n"
    "                     ${id}::${rehearse}),\n")
  set(rows "${rows}" PARENT_SCOPE)
endfunction()

mutant("phase-fair: a try announced where somebody reads" phase_fair.hpp PhaseFair)
replace([[Word readers = left;]]
  [[const Word readers = m.fetch_add(came(c), bits(ended(m, c)), muster::release);]])
replace([[m.compare_exchange(came(c), readers, left + bits(ended(m, c)), muster::release)]]
  [[readers == left]])
replace([[end(m, t, c);]] [[end(m, t, c + 1);]])

mutant("mcs: linked before it says that it waits" mcs.hpp Mcs)
replace([[m.store(waiting(t.client), 1, relaxed);]] "")
replace([[m.store(next(predecessor - 1), t.client + 1, muster::release);]]
  [[m.store(next(predecessor - 1), t.client + 1, muster::release);
    m.store(waiting(t.client), 1, relaxed);]])

mutant("clh: its own word kept" clh.hpp Clh)
replace([[t.mine = t.predecessor;]] "")

mutant("clh: a word busy after it is the tail" clh.hpp Clh)
replace([[m.store(busy(t.mine), 1, relaxed);]] "")
replace([[m.exchange(tail(), t.mine, acq_rel);]]
  [[m.exchange(tail(), t.mine, acq_rel); m.store(busy(t.mine), 1, relaxed);]])

mutant("flat-combining: the lock not awaited" flat_combining.hpp FlatCombining)
replace([[m.await_either(pending(t.client), held(), acquire, Awaited::combiner);]]
  [[m.await(pending(t.client), equals(0), acquire) ? 0 : -1;]])

mutant("flat-combining: a request not read again under the lock" flat_combining.hpp FlatCombining)
replace([[if (m.load(pending(t.client), relaxed) != 0) {]] "{")

mutant("cc-synch: a link read after its slot is done" cc_synch.hpp CcSynch)
replace([[const Word next = m.load(link(slot), acquire);]]
  [[Word next = m.load(link(slot), acquire);]])
replace([[m.store(state(slot), done, release);]]
  [[m.store(state(slot), done, release);
      next = m.load(link(slot), acquire);
      if (next == 0) break;]])

mutant("cc-synch: a spare made ready after it is the tail" cc_synch.hpp CcSynch)
replace([[m.store_unawaited(state(next), waiting);]] "")
replace([[m.exchange_unawaited(cells_.global(tail), next, acq_rel);]]
  [[m.exchange_unawaited(cells_.global(tail), next, acq_rel);
    m.store_unawaited(state(next), waiting);]])

mutant("dsm-synch: one slot a client" dsm_synch.hpp DsmSynch)
replace([[t.turn ^= 1;]] "")

mutant("h-synch: the next head called too early" h_synch.hpp HSynch)
replace([[queues_.make_head(m, next);]] "")
replace([[m.store(busy(mine), 0, release);]]
  [[queues_.make_head(m, next); m.store(busy(mine), 0, release);]])

mutant_of_rings("rings: counted before the entry is 0" rings.hpp rings rehearse_rings)
replace([[m.store(cells_.of(client, next.place), 0, release);]] "")
replace([[m.store(served(client), Served{next.executed + 1, next.place, false}.word(), release);]]
  [[m.store(served(client), Served{next.executed + 1, next.place, false}.word(), release);
    m.store(cells_.of(client, next.place), 0, release);]])

mutant_of_rings("rings: requests without a number" rings.hpp rings rehearse_rings)
replace([[request(Word number, Word lock)]] [[request(Word, Word lock)]])
replace([[(number << lock_bits | (lock + 1)) & 0x7fff'ffffU;]] [[lock + 1;]])

# Of the scenarios of `robust`, those of that variant.
function(mutant_of_robust name variant)
  set(file robust.hpp)
  patch_locks()
  string(APPEND rows "      mutant_of_lock(\"${name}\", \"robust\", \"${variant}\",\n"
    "                     ${id}::rehearse_robust),\n")
  set(rows "${rows}" PARENT_SCOPE)
endfunction()

mutant_of_robust("robust: a wake-up forgotten" parks)
replace([[return m.unpark(held);]] [[return;]])

mutant_of_robust("robust: taken after a sleep as if alone" parks)
replace([[mine = m.identity() | sleeps;
]] "")

mutant_of_robust("robust: taken over without a word" dies)
replace([[m.store(damaged(), 1, relaxed);
    return true;]] [[return true;]])

mutant_of_robust("robust: given before it is said to be damaged" dies)
replace([[if (!m.compare_exchange(word(), seen, mine, muster::acquire)) return false;
    m.store(damaged(), 1, relaxed);]]
  [[if (!m.compare_exchange(word(), seen, 0, acq_rel)) return false;
    m.store(damaged(), 1, relaxed);
    if (!take(m)) return false;]])

mutant_of_robust("robust: whoever is told enters" dies)
replace([=[if (!is_damaged(m)) [[likely]]]=] "")

mutant_of_robust("robust: a foreign word overwritten" overwritten)
replace([[if (m.compare_exchange(held, seen, 0, muster::release)) return;]]
  [[seen = m.exchange(word(), 0, muster::release);
    if (seen == m.identity()) return;]])
replace([[seen == (m.identity() | sleeps) &&
        m.compare_exchange(held, seen, 0, muster::release)]] [[true]])

mutant_of_robust("robust: no word of what was overwritten" overwritten)
replace([[return m.unpark(held);
    }
    m.store(damaged(), 1, relaxed);]] [[return m.unpark(held);
    }]])

foreach(lock Rcl Auto)  # it has seen no answer, and takes the lock: another one may have had it
  string(TOLOWER ${lock} name)
  mutant("${name}: a request not read again under the lock" auto.hpp ${lock})
  replace([[const bool executed = desk_.rings.serve(m, ring.client, desk_.lock, work);]]
    [[const bool executed = true;
      desk_.rings.execute(m, ring.client, {1, ring.posted - 1, ring.place}, work);]])
endforeach()

mutant("auto: the lock given before it combines" auto.hpp Auto)
replace([[executed = desk_.combine(]]
  [[desk_.give(m);
      executed = desk_.combine(]])
replace([[set_dozing(wanted_.dozing);
      desk_.give(m);]] [[set_dozing(wanted_.dozing);]])

mutant("auto: a server trusted to stay" auto.hpp Auto)
replace([[m.await_either(entry, *server_, acquire, Awaited::anyone)]]
  [[(m.await(entry, equals(0), acquire) ? 0 : -1)]])

mutant("auto: a request that has begun taken for done" auto.hpp Auto)
replace([[if (!executed) continue;]] [[if (!executed) return true;]])

mutant("auto: who waits in turn has what was free" habit.hpp Auto)
replace([[for (unsigned lost = 0; !take(m); ++lost) {]]
  [[if (const unsigned lost = 0; !take(m)) {]])

# With what it calls: names are looked up where arguments come from, too.
mutant("rounds: a request not read again under the lock" "rings.hpp;round.hpp" Auto)
replace([[has = lock;
      pending = rings.next(m, client);
      if (!pending.is_of(has)) continue;]] [[has = lock;]])

mutant("rounds: the lock kept for a request of another one" "rings.hpp;round.hpp" Auto)
replace([[if (!pending.is_of(has)) {]] [[if (has == none) {]])

mutant("rounds: a lock that is given back and kept" "rings.hpp;round.hpp" Auto)
replace([[server.lock(std::exchange(has, none))]] [[server.lock(has)]])

mutant("rounds: a lock kept after the round" "rings.hpp;round.hpp" Auto)
replace([[if (has != none) give();]] "")

mutant_of_rings("rounds: a row that goes on with the request of another lock"
  "rings.hpp;round.hpp" sleeps rehearse_bell)
replace([[!next.is_of(lock) || !goes_on()]] [[next.request == 0 || !goes_on()]])

mutant_of_rings("departure: what is pending noted before the server leaves"
  departure.hpp leaving rehearse_departure)
replace([[lot.swap_in(server, 0);]] "")
replace([[const auto is_pending =]] [[lot.swap_in(server, 0);
  const auto is_pending =]])

mutant_of_rings("kept posts: counted as sent before it is" kept_posts.hpp ends rehearse_kept)
replace([[post();
]] "")
replace([[m.fetch_add(kept, Word(-1), release);]]
  [[m.fetch_add(kept, Word(-1), release); post();]])

mutant_of_rings("kept posts: not counted until it is sent" kept_posts.hpp ends rehearse_kept)
replace([[m.fetch_add(kept, 1, relaxed);]] "")
replace([[post();
]] [[m.fetch_add(kept, 1, relaxed);
    post();
]])

mutant_of_rings("bell: a server sleeps without its second look" bell.hpp sleeps rehearse_bell)
replace([[sleep_on_bell(lot, all, is_wanted);]] [[sleep_on_bell(lot, all, [] { return false; });]])

mutant_of_rings("bell: the second look before the server is announced"
  bell.hpp sleeps rehearse_bell)
replace([[sleep_on_bell(lot, all, is_wanted);]]
  [[if (!is_wanted()) sleep_on_bell(lot, all, [] { return false; });]])

mutant_of_rings("bell: a ring not counted" bell.hpp sleeps rehearse_bell)
replace([[lot.add(all.bell, 1);]] "")

mutant_of_rings("bell: not rung for what a combiner has kept from sight"
  auto.hpp combined rehearse_bell)
replace([[if (executed != 0) work.posted(m);]] "")

mutant_of_rings("bell: no fence between a post and the look for the server"
  bell.hpp sleeps rehearse_bell)
replace([[lot.light_fence();]] "")

set(lets_go [[if (!is_pending(seat)) m.set_used(word, m.used(word) & ~bit(seat));]])

mutant_of_rings("seats: let go while a request is pending" seats.hpp seats rehearse_seats)
replace("${lets_go}" [[static_cast<void>(is_pending);
          m.set_used(word, m.used(word) & ~bit(seat));]])

mutant_of_rings("seats: let go by another thread" seats.hpp seats rehearse_seats)
replace([[Bits left = m.used(word) & ~m.taken(word);]] [[Bits left = m.used(word);]])
replace("${lets_go}" [[if (seat != own(0)) m.set_used(word, m.used(word) & ~bit(seat));
          static_cast<void>(is_pending);]])

mutant_of_rings("seats: taken and not used" seats.hpp seats rehearse_seats)
replace([[m.set_used(word, m.used(word) | bit(seat));]] "")

mutant_of_rings("seats: taken without the mutex" seats.hpp seats rehearse_seats)
replace([[return m.within(mutex, [&] {]] [[const auto at_once = [](auto body) { return body(); };
    return at_once([&] {]])

mutant_of_rings("seats: given back without the mutex" seats.hpp seats rehearse_seats)
replace([[    m.within(mutex, [&] {
      for]] [[    const auto at_once = [](auto body) { body(); };
    at_once([&] {
      for]])

mutant_of_rings("seats: one that is not given back" seats.hpp seats rehearse_seats)
replace([[m.set_taken(word, m.taken(word) & ~bit(own(i)));]] [[static_cast<void>(word);]])

# Of `auto`, those of clients that sleep.
function(mutant_of_dozing name file variant)
  set(also src/lock/ask.hpp check/suite/lock_rehearsal.hpp check/suite/dozing.hpp)
  patch_locks()
  string(APPEND rows "      mutant_of_lock(\"${name}\", \"auto\", \"${variant}\",\n"
    "                     ${id}::rehearse_dozing),\n")
  set(rows "${rows}" PARENT_SCOPE)
endfunction()

mutant_of_dozing("doze: no look after the lock is given" auto.hpp dozes)
replace([=[if (!m.is_dozing(wanted_.dozing) || !take(m)) [[likely]] {]=] [[{]])

mutant_of_dozing("doze: no look after the lock is given in line" auto.hpp inlined)
replace([[return m.is_dozing(all.dozing());]] [[return false;]])

mutant_of_dozing("doze: no look after a visit" auto.hpp dozes)
replace([[while (++visits < 2 && executed != 0 && m.is_dozing(wanted_.dozing) && take(m));
    this->look_back(m);]] [[while (visits == ~0U);]])

mutant_of_dozing("doze: no look where only own sections are executed" habit.hpp nested)
replace([[while (m.is_dozing(wanted_.dozing) && desk_.is_free(m)) {]] [[while (false) {]])

mutant_of_dozing("doze: no look after a server has given the lock" habit.hpp served)
replace([[  give(m);
    if (was_wanted]] [[  desk_.give(m);
    if (was_wanted]])

mutant_of_dozing("doze: no heavy fence" doze.hpp dozes)
replace([[pass_fence(lot, all, before);]] [[static_cast<void>(before);]])

mutant_of_dozing("doze: no fence between the store and the look" doze.hpp dozes)
replace([[lot.light_fence();  // pairs with heavy_fence in pass_fence()]] "")

mutant_of_dozing("doze: to sleep without another look at the lock" doze.hpp dozes)
replace([[if (!is_over()) lot.park]] [[lot.park]])

mutant_of_dozing("doze: to sleep for an answer at a free lock" ask.hpp dozes)
replace([[return request == 0 || is_free();]] [[return request == 0;]])

mutant_of_dozing("doze: to sleep for an answer that has come" ask.hpp dozes)
replace([[return request == 0 || is_free();]] [[return is_free();]])

mutant_of_dozing("doze: to sleep without a word" doze.hpp dozes)
replace([[lot.make_odd(dozing, acq_rel);]] [[lot.peek(dozing);]])

mutant_of_dozing("doze: cleared after the visit" auto.hpp dozes)
replace([[const bool dozed = m.take_note(wanted_.dozing);]] [[bool dozed = false;]])
replace([[    if (dozed && !combines())]] [[    dozed = m.take_note(wanted_.dozing);
    if (dozed && !combines())]])

mutant_of_dozing("doze: cleared without a visit" auto.hpp dozes)
replace([[executed = desk_.combine(]] [[executed = dozed ? 0 : desk_.combine(]])

mutant_of_dozing("doze: a server that leaves without a fence" departure.hpp departs)
replace([[lot.heavy_fence();]] "")

mutant_of_dozing("doze: nobody roused" habit.hpp nested)
replace([[desk_.rouse(m);]] "")

mutant_of_dozing("doze: roused without a mark" doze.hpp nested)
replace([[lot.replace(own, request, request | roused);]] "")

mutant_of_dozing("doze: nobody woken for the lock" auto.hpp turns)
replace([[this->let_one_in(m);]] "")

mutant_of_dozing("doze: cleared by load and store" doze.hpp dozes)
replace([[lot.take(dozing, seen, seen + 1);]] [[lot.look(dozing); lot.set(dozing, seen + 1);]])

mutant_of_dozing("doze: a wake-up hidden by who sets it again" doze.hpp served)
replace([[lot.take(dozing, seen, seen + 1);]]
  [[lot.thread.exchange(dozing.location, 0, check::Ordering::acq_rel);]])

mutant_of_dozing("doze: cleared by who executes no requests" auto.hpp unaided)
replace([[if (dozed && !combines()) m.set_dozing(wanted_.dozing);]] [[static_cast<void>(dozed);]])

# Two sleep.
mutant_of_dozing("doze: who is woken forgets that others sleep" habit.hpp turns)
replace([[if (m.is_slept_on(wanted_.dozing)) m.set_dozing(wanted_.dozing);]] "")

mutant_of_dozing("doze: who is let in with a request forgets that others sleep" auto.hpp awaits)
replace([[if (!combines()) this->pass_on(m);]] "")

mutant_of_dozing("doze: who stands back has the lock" auto.hpp stands)
replace([[standing_back.did(m) || !take(m)]] [[!take(m) || standing_back.did(m)]])

mutant_of_dozing("doze: who is answered wakes nobody" auto.hpp aided)
replace([[if (!combines()) m.wake_one(wanted_.dozing);]] "")

mutant_of_dozing("doze: stored where others sleep" doze.hpp together)
replace([[lot.make_odd(dozing, acq_rel);]]
  [[1; lot.thread.store(dozing.location, 1, check::Ordering::release);]])

# Of `cas-spin`, those whose sections wait for a condition.
function(mutant_of_condition name variant)
  set(file condition.hpp)
  patch_locks()
  string(APPEND rows "      mutant_of_lock(\"${name}\", \"cas-spin\", \"${variant}\",\n"
    "                     ${id}::rehearse_condition<locks::CasSpin<Checked>>),\n")
  set(rows "${rows}" PARENT_SCOPE)
endfunction()
set(listed [[m.within(mutex, [&] { append(m, self); });]])
set(waits [[while (m.read(self.waits) && m.wait_until(self.woken, mutex, end)) {
        }]])

mutant_of_condition("condition: listed after the lock is given up" signals)
replace("${listed}" "")
replace([[unlocked([&] {]] "unlocked([&] { ${listed}")

mutant_of_condition("condition: to wait without a look" signals)
replace("${waits}" [[m.wait_until(self.woken, mutex, end);]])

mutant_of_condition("condition: who is signalled stays listed" signals)
replace([[leave(m, *waiter);]] [[m.write(waiter->waits, false);]])

mutant_of_condition("condition: one signal for all" signals)
replace([[if (!all) break;]] "")

mutant_of_condition("condition: the last one first" signals)
replace([[waiter = m.read(first)]] [[waiter = m.read(last)]])

mutant_of_condition("condition: called without the mutex" signals)
replace([[      while (Waiter* const waiter = m.read(first)) {
        leave(m, *waiter);
        m.call_one(waiter->woken);
        if (!all) break;
      }
    });]] [[      called = m.read(first);
      if (called != nullptr) leave(m, *called);
    });
    if (called != nullptr) m.call_one(called->woken);]])
replace([[void signal(M& m, bool all) {]] [[void signal(M& m, bool all) {
    Waiter* called = nullptr;]])

mutant_of_condition("condition: one called for all" broadcasts)
replace([[if (!all) break;]] [[break;]])

mutant_of_condition("condition: a time-out that swallows a signal" expires)
replace("${waits}" [[while (m.read(self.waits)) {
          if (m.wait_until(self.woken, mutex, end)) continue;
          leave(m, self);
          return false;
        }]])

mutant_of_condition("condition: who is late stays listed" expires)
replace([[return !leave(m, self);]] [[return !m.read(self.waits);]])

# Of `auto`, those of sections in a server's sections.
function(mutant_of_nesting name variant)
  set(file auto.hpp nested.hpp)
  patch_locks()
  string(APPEND rows "      mutant_of_lock(\"${name}\", \"auto\", \"${variant}\",\n"
    "                     ${id}::rehearse_nesting),\n")
  set(rows "${rows}" PARENT_SCOPE)
endfunction()
set(takes
  [[if (!is_soon(*lock.desk().held) || !lock.take(m)) aside([&] { lock.take_in_turn(m); });]])
set(finishes [[aside([&] { lock.finish(m, ring, h, *entry, work, [] { return false; }); });]])

mutant_of_nesting("nested: no spare while it waits for the lock" within)
replace("${takes}" [[if (!lock.take(m)) lock.take_in_turn(m);]])

mutant_of_nesting("nested: no spare where the lock was seen free" within)
replace("${takes}" [[if (!is_soon(*lock.desk().held)) aside([&] { lock.take_in_turn(m); });
    else if (!lock.take(m)) lock.take_in_turn(m);]])

mutant_of_nesting("nested: the lock not awaited" within)
replace("${takes}" [[if (!is_soon(*lock.desk().held) || !lock.take(m)) aside([] {});]])

mutant_of_nesting("nested: a lock seen free not taken" within)
replace("${takes}" [[if (!is_soon(*lock.desk().held)) aside([&] { lock.take_in_turn(m); });]])

mutant_of_nesting("nested: the lock not given back" within)
replace([[lock.give(m);
    ++h.inlined;]] "")

mutant_of_nesting("nested: no spare while it waits for the answer" across)
replace("${finishes}" [[lock.finish(m, ring, h, *entry, work, [] { return false; });]])

mutant_of_nesting("nested: the answer not awaited" across)
replace("${finishes}" [[aside([] {});]])

mutant_of_nesting("nested: a request of a client that nobody knows" across)
replace([[desk_.enter(m, ring);]] "")

set(name "few numbers")
set(file rings.hpp)
patch_locks()
replace([[(number << lock_bits | (lock + 1)) & 0x7fff'ffffU;]]
  [[(number & 1) << lock_bits | (lock + 1);]])

end_patches(hand_written_locks "${rows}" check/suite/locks.hpp "\
Program rehearse_few_numbers(const LockScenario& scenario, Tuning& tuning) {
  return few_numbers::rehearse_rings(scenario, tuning);
}
")

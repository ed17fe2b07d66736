# SPDX-License-Identifier: BSD-3-Clause
# Barriers with one fault each, which no weaker memory order would cause: the checks have to catch
# them. The last one is right, though nobody ships it.
#   cmake -DROOT=<source tree> -DOUTPUT=<file> -P barrier_mutants.cmake
include(${CMAKE_CURRENT_LIST_DIR}/../patch.cmake)
set(files
  src/barrier/base_linear.hpp
  src/barrier/dissemination.hpp
  src/barrier/flat_tree.hpp
  src/barrier/following.hpp
  src/barrier/mcs.hpp
  src/barrier/scheduled.hpp
  src/barrier/sense_reversing.hpp
  src/barrier/topo_counter.hpp
  src/barrier/tournament.hpp)
set(rows "")
begin_patches()

# A schedule's recipe may follow.
function(mutant name file class variant participants)
  patch("${name}" src/barrier/${file})
  string(APPEND rows
    "      mutant_of_barrier(\"${name}\", Variant::${variant}, {${participants}},\n"
    "                        rehearse<muster::${id}::${class}<Checked>>, \"${ARGN}\"),\n")
  set(rows "${rows}" PARENT_SCOPE)
endfunction()

mutant("counter reset after the release" sense_reversing.hpp SenseReversing plain "2, 3")
replace([[m.store(count(), 0, relaxed);]] "")
replace([[m.store(sense(), t.sense, release);]]
  [[m.store(sense(), t.sense, release); m.store(count(), 0, relaxed);]])

mutant("topo-counter: reset after the release" topo_counter.hpp TopoCounter plain "2, 3")
replace([[m.store(*step.count, 0, relaxed);]] "")
replace([[m.store(sense(), t.sense, release);]]
  [[m.store(sense(), t.sense, release);
    for (const Step& step : t.path) m.store(*step.count, 0, relaxed);]])

mutant("sense not reversed" sense_reversing.hpp SenseReversing plain "2, 3")
replace([[t.sense ^= 1;]] [[t.sense = 1;]])

mutant("one arrival too few awaited" sense_reversing.hpp SenseReversing plain "2, 3")
replace([[before + 1]] [[before + 2]])

mutant("load and store, no update" sense_reversing.hpp SenseReversing plain "2, 3")
replace([[m.fetch_add(count(), 1, acq_rel);]]
  [[m.load(count(), acquire); m.store(count(), before + 1, release);]])

mutant("dissemination: parity lost" dissemination.hpp Dissemination plain "2, 3")
replace([[t.sense ^= parity;]] [[t.sense ^= 1;]])
replace([[t.parity ^= 1;]] "")

mutant("dissemination: sense lost" dissemination.hpp Dissemination plain "2, 3")
replace([[t.sense ^= parity;]] "")

mutant("dissemination: no third round" dissemination.hpp Dissemination plain "2, 3, 4, 5")
replace([[round < rounds_;]] [[round < rounds_ && round < 2;]])

mutant("last member not gathered" flat_tree.hpp SenseReversingCounter plain "2, 3")
replace([[rank == 0 && r < participants_;]] [[rank == 0 && r + 1 < participants_;]])

mutant("one member gathered for all" flat_tree.hpp SenseReversingCounter plain "2, 3")
replace([[!m.await_all(t.counters, at_least(t.episode), acquire)]]
  [[!t.counters.empty() && m.await_any(t.counters, at_least(t.episode), acquire) == no_cell]])

mutant("last member not released" flat_tree.hpp SenseReversingGr plain "2, 3")
replace([[r < this->participants_;]] [[r + 1 < this->participants_;]])

mutant("counters that do not wrap" flat_tree.hpp SenseReversingCounter wraps "2, 3")
replace([[at_least(t.episode)]] [[[e = t.episode](Word seen) { return seen >= e; }]])

mutant("mcs: inner vertices do not gather" mcs.hpp Mcs plain "2, 3, 4, 5, 6")
replace([[if (!m.await_all(]] [[if (t.rank == 0 && !m.await_all(]])

mutant("tournament: first loser not woken" tournament.hpp Tournament plain "2, 3")
replace([[while (round-- > 0)]] [[while (round-- > (t.rank == 0 ? 1U : 0U))]])

mutant("base-linear: the last one not awaited" base_linear.hpp BaseLinear plain "2, 3")
replace([[if (!this->receive_from_others(m, t)) return false;]]
  [[for (unsigned r = 1; r + 1 < this->participants_; ++r) {
      if (!this->receive(m, t, r)) return false;
    }]])

mutant("following: at once" following.hpp Following changes "2, 3")
replace([[if (m.load(announced(), relaxed) == episode && t.began != episode)]]
  [[if (m.load(announced(), relaxed) != t.began)]])

mutant("following: announced too late" following.hpp Following changes "2, 3")
replace([[m.store(announced(), t.episode + 1, relaxed);]]
  [[m.store(announced(), t.episode, relaxed);]])

mutant("following: cells not cleared" following.hpp Following changes "2, 3")
replace([[m.store(cells_.of(t.rank, index), 0, relaxed);]] "")

mutant("following: not met before" following.hpp Following changes "2, 3")
replace([[if (!meet(m, t)) return false;]] "")

mutant("following: not met after" following.hpp Following changes "2, 3")
replace([[take(m, t) && meet(m, t)]] [[take(m, t)]])

mutant("scheduled: a flag not awaited" scheduled.hpp Scheduled plain "2" flat+line)
replace([[if (!m.await(**cell, at_least(episode), acquire)) return false;]] "")

mutant("scheduled: the last of some flags not awaited" scheduled.hpp Scheduled plain "3" flat+line)
replace([[m.await_all({cell, step.awaits}]] [[m.await_all({cell, step.awaits - 1}]])

mutant("scheduled: the last flag not stored" scheduled.hpp Scheduled plain "2, 3" flat+line)
replace([[n < step.stores;]] [[n + 1 < step.stores;]])

mutant("scheduled: stored before the wait" scheduled.hpp Scheduled plain "3" tree1+line)
replace([[if (step.awaits == 1) {]]
  [[for (unsigned n = step.awaits; n < step.awaits + step.stores; ++n) {
        m.store(*cell[n], episode, release);
      }
      if (step.awaits == 1) {]])
replace([[m.store(**cell, episode, release);]] "")

mutant("scheduled: nobody counted" scheduled.hpp Scheduled plain "2" count+line)
replace([[m.fetch_add(**cell, 1, acq_rel)]] [[m.load(**cell, acquire)]])

mutant("scheduled: counted by load and store" scheduled.hpp Scheduled plain "2" count+line)
replace([[m.fetch_add(**cell, 1, acq_rel);]]
  [[m.load(**cell, acquire); m.store(**cell, before + 1, release);]])

mutant("scheduled: the last but one goes on" scheduled.hpp Scheduled plain "2, 3" count+line)
replace([[before + 1 !=]] [[before + 2 !=]])

mutant("scheduled: all go on" scheduled.hpp Scheduled plain "2, 3" count+line)
replace([[s = t.departures - 1;]] [[s += 0;]])

mutant("scheduled: a departure left out" scheduled.hpp Scheduled plain "2, 3" count+line)
replace([[s = t.departures - 1;]] [[s = t.departures;]])

mutant("scheduled: a counter begins like a flag" scheduled.hpp Scheduled wraps "2" count+line)
replace([[first_episode_ * step.adders]] [[first_episode_]])

patch("episodes counted" src/barrier/dissemination.hpp)
replace([[t.sense ^= parity;]] [[t.sense += 1;]])
replace([[t.parity ^= 1;]] "")
replace([[equals(sense)]] [[at_least(sense)]])

end_patches(hand_written_mutants "${rows}"
  "check/suite/mutation.hpp;check/suite/rehearsal.hpp" "")

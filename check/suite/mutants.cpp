// SPDX-License-Identifier: BSD-3-Clause
#include "check/suite/mutants.hpp"

#include <initializer_list>

#include "check/suite/rehearsal.hpp"

namespace muster::check {
namespace {

template <class B>
HandWritten mutant(const char* name, Variant variant = Variant::plain,
                   std::initializer_list<unsigned> participants = {2, 3}) {
  HandWritten made{name, {}};
  for (const unsigned n : participants) {
    const unsigned e = variant == Variant::changes ? episodes_of_changes(n) : 3;
    made.programs.push_back(
        {"P=" + std::to_string(n) + " E=" + std::to_string(e), [n, e, variant](Tuning& tuning) {
           return rehearse<B>({{}, n, e, variant}, tuning);
         }});
  }
  return made;
}

}  // namespace

std::vector<HandWritten> hand_written_mutants() {
  using namespace mutants;
  return {mutant<LateReset<Checked>>("counter reset after the release"),
          mutant<SenseNotReversed<Checked>>("sense not reversed"),
          mutant<MissingParticipant<Checked>>("one arrival too few awaited"),
          mutant<NoUpdate<Checked>>("load and store, no update"),
          mutant<Disseminating<Checked, Flags::no_parity>>("dissemination: parity lost"),
          mutant<Disseminating<Checked, Flags::no_sense>>("dissemination: sense lost"),
          mutant<Gathered<Checked, Gathering::forgets_last>>("last member not gathered"),
          mutant<Gathered<Checked, Gathering::forgets_to_release>>("last member not released"),
          mutant<Gathered<Checked, Gathering::not_modular>>("counters that do not wrap",
                                                            Variant::wraps),
          mutant<Changed<Checked, Changing::at_once>>("following: at once", Variant::changes),
          mutant<Changed<Checked, Changing::too_late>>("following: announced too late",
                                                       Variant::changes),
          mutant<Changed<Checked, Changing::cells_as_they_are>>("following: cells not cleared",
                                                                Variant::changes),
          mutant<Changed<Checked, Changing::not_met_before>>("following: not met before",
                                                             Variant::changes),
          mutant<Changed<Checked, Changing::not_met_after>>("following: not met after",
                                                            Variant::changes),
          mutant<InnerNotGathered<Checked>>("mcs: inner vertices do not gather", Variant::plain,
                                            {2, 3, 4, 5, 6}),
          mutant<TwoRoundsAtMost<Checked>>("dissemination: no third round", Variant::plain,
                                           {2, 3, 4, 5})};
}

}  // namespace muster::check

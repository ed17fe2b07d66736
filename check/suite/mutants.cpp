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
    made.programs.push_back({"P=" + std::to_string(n) + " E=3", [n, variant](Tuning& tuning) {
                               return rehearse<B>({{}, n, 3, variant}, tuning);
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
          mutant<InnerNotGathered<Checked>>("mcs: inner vertices do not gather", Variant::plain,
                                            {2, 3, 4, 5, 6}),
          mutant<TwoRoundsAtMost<Checked>>("dissemination: no third round", Variant::plain,
                                           {2, 3, 4, 5})};
}

}  // namespace muster::check

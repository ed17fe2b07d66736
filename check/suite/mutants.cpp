// SPDX-License-Identifier: BSD-3-Clause
#include "check/suite/mutants.hpp"

#include "check/suite/rehearsal.hpp"

namespace muster::check {
namespace {

template <class B>
HandWritten mutant(const char* name, Variant variant = Variant::plain) {
  HandWritten made{name, {}};
  for (const unsigned n : {2U, 3U}) {
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
                                                            Variant::wraps)};
}

}  // namespace muster::check

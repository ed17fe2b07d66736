// SPDX-License-Identifier: BSD-3-Clause
// `muster doctor`: what on this machine makes synchronization cost more than it need, each found by
// a measurement, with what helps against it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::bench {

enum class Verdict {
  fine,
  costs,
  unknown,  ///< this machine does not let itself be asked
};

struct Finding {
  std::string check;  ///< "quota"
  Verdict verdict = Verdict::fine;
  std::string found;                                     ///< a sentence, with what was measured
  std::string remedy;                                    ///< what helps; empty where nothing has to
  std::vector<std::pair<std::string, double>> measured;  ///< names end in their units
};

struct Check {
  std::string_view name;
  std::string_view about;
  double seconds;  ///< that it takes, about
  Finding (*run)();
};

/// In the order in which they are made: those that need quiet come first.
const std::vector<Check>& all_checks();

}  // namespace muster::bench

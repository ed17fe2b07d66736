// SPDX-License-Identifier: BSD-3-Clause
#include "cli/check.hpp"

#include <iterator>
#include <memory>

#include "barrier/registry.hpp"
#include "check/event.hpp"
#include "check/suite/scenario.hpp"
#include "cli/command.hpp"
#include "cli/program.hpp"
#include "cli/subcommands.hpp"
#include "lock/registry.hpp"

namespace muster {
namespace {

#include "check_names.inc"  // mutant_names, weakened_sources

/// What shells complete; the few that stand for parts of locks are not among them.
std::vector<std::string> usual_names() {
  std::vector<std::string> names{"all", sleep_name};
  names.insert(names.end(), barrier_names().begin(), barrier_names().end());
  for (const std::string_view name : locks::lock_names()) {
    if (name != locks::PthreadMutex::traits.name) names.push_back(lock_prefix + std::string(name));
  }
  for (const char* const name : mutex_names) {
    if (name != mutex_names[0]) names.push_back(mutex_prefix + std::string(name));
  }
  return names;
}

}  // namespace

void add_check(Command& app, const std::function<void(const CheckOptions&)>& run) {
  const auto options = std::make_shared<CheckOptions>();
  Command* const command = app.add_subcommand(
      "check", "Explore every execution that C++'s memory model allows, for a few participants");
  command
      ->add_option("--algorithms", options->algorithms,
                   "Barriers by name (with each radix or recipe that is checked of it, or the one "
                   "that the name has), locks as lock:NAME (lock:rings and lock:station are "
                   "servers'), mutexes of `muster run` as mutex:NAME, "
                   "sleep for the sleep protocol, or all; "
                   "with --mutate also lifetime, for how waits begin and end")
      ->words(usual_names())
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--participants", options->participants,
                   "How many participants (default: 2, 3 and 4, and up to 8 where a barrier has "
                   "paths that only so many take)")
      ->delimiter(',')
      ->check(Range(1U, check::max_threads));
  command->add_option("--episodes", options->episodes, "How many episodes")
      ->delimiter(',')
      ->check(Range(1U, 100U))
      ->capture_default_str();
  Option* const groups =
      command->add_option("--groups", options->groups,
                          "topo: these groups instead of the usual ones, bottom up: 0,1|2,3/0,2");
  Option* const variant =
      command
          ->add_option(
              "--variant", options->variant,
              "Only these of barriers: plain, wraps, split, gives-up, timed, destroy, changes "
              "or reuse; "
              "of others a name that the table has")
          ->words({std::begin(check::variant_names), std::end(check::variant_names)});
  std::vector<std::string> sources;
  for (const char* const source : weakened_sources) sources.push_back(std::string(source) + ":");
  Option* const weaken = command
                             ->add_option("--weaken", options->weaken,
                                          "Replay a mutant, FILE:LINE=ORDER, from the table of "
                                          "--mutate")
                             ->words(sources);
  Option* const mutant =
      command
          ->add_option("--mutant", options->mutant,
                       "A barrier, mutex or lock with a fault, by the name that --mutate gives it")
          ->words({std::begin(mutant_names), std::end(mutant_names)});
  mutant->excludes(weaken)->excludes(groups);
  command
      ->add_flag("--mutate", options->mutate,
                 "Weaken every memory order in turn, and say what notices")
      ->excludes(weaken)
      ->excludes(groups)
      ->excludes(variant)
      ->excludes(mutant);
  command->add_flag("--json", options->json,
                    "Print one JSON object, with a row each in \"results\"");
  command->footer(
      "Bounded: says nothing about more participants or episodes. No load buffering is explored "
      "(doc/memory-model.md).");
  command->callback([options, run] { run(*options); });
}

void add_check(Command& app) {
  add_check(app, [](const CheckOptions&) { become_program("muster-check"); });
}

}  // namespace muster

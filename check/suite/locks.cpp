// SPDX-License-Identifier: BSD-3-Clause
#include "check/suite/locks.hpp"

#include <initializer_list>

#include "check/suite/bell.hpp"
#include "check/suite/conditions.hpp"
#include "check/suite/departure.hpp"
#include "check/suite/dozing.hpp"
#include "check/suite/kept_posts.hpp"
#include "check/suite/lock_rehearsal.hpp"
#include "check/suite/nesting.hpp"
#include "check/suite/rings_rehearsal.hpp"
#include "check/suite/robust.hpp"
#include "check/suite/seats.hpp"
#include "check/suite/station.hpp"
#include "lock/attended.hpp"
#include "lock/registry.hpp"

namespace muster::check {
namespace {

constexpr const char* rings_name = "rings";

}  // namespace

/// A copy of the rings whose numbers have one bit (lock_mutants.cmake).
Program rehearse_few_numbers(const LockScenario& scenario, Tuning& tuning);

const char* variant_name(LockVariant variant) {
  constexpr const char* names[] = {
      "plain",   "server",      "shutdown", "attended", "closing",     "newcomer", "two",
      "visited", "yields",      "rings",    "wraps",    "leaving",     "sleeps",   "combined",
      "seats",   "ends",        "dozes",    "turns",    "alone",       "nested",   "aided",
      "unaided", "awaits",      "served",   "departs",  "visits",      "stands",   "together",
      "inlined", "acquires",    "reads",    "shares",   "successor",   "stranger", "parks",
      "dies",    "overwritten", "aside",    "again",    "interrupted", "watched",  "ahead",
      "roused",  "overlooked",  "unmade",   "crowd",    "ended",       "reused",   "owners",
      "signals", "broadcasts",  "expires",  "within",   "across"};
  return names[static_cast<int>(variant)];
}

std::string LockScenario::name() const {
  std::string text = lock + ", " + std::to_string(clients) + " clients, " +
                     std::to_string(sections) + (sections == 1 ? " section" : " sections");
  if (variant != LockVariant::plain) text += std::string(", ") + variant_name(variant);
  return text;
}

bool LockScenario::has_server() const {
  return variant >= LockVariant::server && variant <= LockVariant::yields;
}

bool LockScenario::acquires(unsigned client) const {
  if (variant == LockVariant::shares) return client == 0;
  if (variant == LockVariant::turns) return true;
  const bool last = variant == LockVariant::acquires || variant == LockVariant::served;
  return last && client + 1 == clients;
}

bool LockScenario::reads(unsigned client) const {
  if (variant == LockVariant::reads) return client + 1 == clients;
  return variant == LockVariant::shares && client > 0;
}

bool LockScenario::has_successor() const {
  return variant == LockVariant::successor || variant == LockVariant::stranger;
}

bool LockScenario::shuts_down() const {
  return variant == LockVariant::shutdown || variant == LockVariant::closing;
}

unsigned LockScenario::known() const {
  if (variant == LockVariant::newcomer) return clients - 1;
  const bool all = variant == LockVariant::attended || variant == LockVariant::closing ||
                   variant == LockVariant::two || variant == LockVariant::yields;
  return all ? clients : 0;
}

Program make_lock_program(const LockScenario& scenario, Tuning& tuning) {
  if (scenario.lock == station_name) return rehearse_station(scenario, tuning);
  if (scenario.variant >= LockVariant::parks && scenario.variant <= LockVariant::overwritten) {
    return rehearse_robust(scenario, tuning);
  }
  if (scenario.variant == LockVariant::leaving) return rehearse_departure(scenario, tuning);
  if (scenario.variant == LockVariant::seats) return rehearse_seats(scenario, tuning);
  if (scenario.variant == LockVariant::ends) return rehearse_kept(scenario, tuning);
  if (scenario.variant == LockVariant::sleeps || scenario.variant == LockVariant::combined) {
    return rehearse_bell(scenario, tuning);
  }
  if (scenario.variant == LockVariant::wraps) return rehearse_few_numbers(scenario, tuning);
  if (scenario.variant == LockVariant::visited) {
    return rehearse_lock<locks::Attended<Checked>>(scenario, tuning);
  }
  if (scenario.variant >= LockVariant::dozes && scenario.variant <= LockVariant::inlined) {
    return rehearse_dozing(scenario, tuning);
  }
  if (scenario.lock == rings_name) return rehearse_rings(scenario, tuning);
  if (scenario.variant >= LockVariant::within) return rehearse_nesting(scenario, tuning);
  if (scenario.variant >= LockVariant::signals) {
    return rehearse_condition<locks::CasSpin<Checked>>(scenario, tuning);
  }
  return locks::with_lock<Checked>(scenario.lock,
                                   [&]<class L>() { return rehearse_lock<L>(scenario, tuning); });
}

std::vector<std::string> checked_locks() {
  std::vector<std::string> names;
  for (const std::string_view name : locks::lock_names()) {
    if (name != locks::PthreadMutex::traits.name) names.emplace_back(name);
  }
  names.emplace_back(rings_name);
  names.emplace_back(station_name);
  return names;
}

std::vector<LockScenario> lock_scenarios(const std::string& lock, bool all) {
  using V = LockVariant;
  std::vector<LockScenario> scenarios;
  const auto add = [&](unsigned clients, unsigned sections, std::initializer_list<V> variants) {
    for (const V variant : variants) scenarios.push_back({lock, clients, sections, variant});
  };
  if (lock == station_name) return station_scenarios();
  if (lock == rings_name) {
    for (const unsigned sections : {2U, 3U, 4U, 5U}) add(1, sections, {V::rings, V::wraps});
    for (const unsigned sections : {1U, 2U}) add(1, sections, {V::yields});
    for (const unsigned sections : {2U, 3U}) add(2, sections, {V::rings});
    for (const unsigned sections : {1U, 2U}) add(1, sections, {V::leaving, V::sleeps, V::ends});
    add(1, 2, {V::seats});
    add(2, 1, {V::leaving, V::sleeps, V::seats, V::ends});
    add(1, 2, {V::combined});
    add(1, 3, {V::sleeps});
    add(3, 1, {V::leaving, V::sleeps, V::seats, V::ends});
    return scenarios;
  }
  const locks::Style style = locks::traits_of(lock).style;
  add(2, 1, {V::plain});
  add(2, 2, {V::plain});
  if (locks::with_lock<Checked>(lock, []<class L>() { return has_heritable_ticket<L>; })) {
    add(2, 1, {V::successor});
  }
  if (locks::with_lock<Checked>(lock, []<class L>() { return can_be_acquired<L, Checked>; })) {
    add(2, 1, {V::acquires});
    add(2, 2, {V::acquires});
  }
  if (locks::with_lock<Checked>(lock, []<class L>() { return has_readers<L, Checked>; })) {
    add(2, 1, {V::reads, V::shares});
    add(2, 2, {V::reads, V::shares});
    add(3, 1, {V::reads, V::shares});
    add(4, 1, {V::shares});  // two readers of one cluster
  }
  if (lock == locks::Robust<Checked>::traits.name) {
    add(2, 1, {V::parks, V::dies, V::overwritten});
    add(2, 2, {V::parks, V::dies});
    add(3, 1, {V::parks, V::dies});
  }
  if (lock == locks::CasSpin<Checked>::traits.name) {
    add(2, 1, {V::signals, V::broadcasts});
    add(3, 1, {V::signals, V::broadcasts, V::expires});
  }
  // Three clients that are all new to a server have too many executions for every day.
  if (style == locks::Style::adaptive) {
    add(1, 2, {V::attended, V::two});
    add(1, 3, {V::two});
    add(2, 1, {V::attended, V::two, V::server});
    add(1, 1, {V::yields});
    add(2, 2, {V::attended, V::two});
    add(1, 1, {V::visited});
    add(1, 2, {V::visited});
    add(2, 1, {V::visited});
    add(3, 1, {V::within, V::across});
    add(3, 1, {V::plain});
    add(2, 1,
        {V::dozes, V::turns, V::nested, V::unaided, V::served, V::departs, V::visits, V::stands,
         V::inlined});
    add(3, 1,
        {V::dozes, V::turns, V::alone, V::nested, V::aided, V::awaits, V::served, V::departs,
         V::stands});
    if (all) add(2, 1, {V::alone});
    if (all) add(3, 1, {V::attended, V::together});
  } else if (lock == locks::Rcl<Checked>::traits.name) {
    add(1, 2, {V::server, V::shutdown});
    add(2, 1, {V::server, V::closing});
    add(2, 2, {V::attended});
    add(3, 1, {V::attended, V::newcomer});
    if (all) add(2, 1, {V::shutdown});
  } else {
    if (lock == locks::DsmSynch<Checked>::traits.name) add(2, 3, {V::plain});  // two slots a client
    add(3, 1, {V::plain});
  }
  return scenarios;
}

std::vector<Rehearsed> mutation_programs_of_lock(const std::string& lock) {
  std::vector<LockScenario> scenarios;
  std::vector<LockScenario> dear;  // come last
  const bool is_rings = lock == rings_name;
  // What rings promise to several locks, the locks that stand on them alone do not need.
  if (is_rings || lock == "rcl" || lock == "auto") {
    for (const LockScenario& scenario : lock_scenarios(rings_name)) {
      const bool shows_no_more =
          scenario.variant == LockVariant::combined || scenario.variant == LockVariant::seats;
      if (scenario.clients > 2 || shows_no_more) continue;
      (scenario.clients * scenario.sections > 3 ? dear : scenarios).push_back(scenario);
    }
  }
  const std::vector<LockScenario> own =
      is_rings ? std::vector<LockScenario>{} : lock_scenarios(lock);
  for (const LockScenario& scenario : own) {
    // Tens of thousands of executions and more, which show no more than the cheaper ones.
    const bool adaptive = lock == locks::Auto<Checked>::traits.name;
    const bool large =
        scenario.clients * scenario.sections > 2 ||
        (adaptive && scenario.variant == LockVariant::server && scenario.clients > 1);
    if (!scenario.has_server() || !large) scenarios.push_back(scenario);
  }
  scenarios.insert(scenarios.end(), dear.begin(), dear.end());
  std::vector<Rehearsed> all;
  for (const LockScenario& scenario : scenarios) {
    all.push_back({scenario.name(),
                   [scenario](Tuning& tuning) { return make_lock_program(scenario, tuning); }});
  }
  return all;
}

HandWritten mutant_of_lock(const char* name, std::string_view lock, std::string_view variant,
                           Program (*rehearse)(const LockScenario&, Tuning&)) {
  HandWritten made{name, {}};
  const bool all = !variant.empty();  // stops at the first fault
  for (const LockScenario& scenario : lock_scenarios(std::string(lock), all)) {
    if (!variant.empty() && variant != variant_name(scenario.variant)) continue;
    made.programs.push_back({scenario.name(), [scenario, rehearse](Tuning& tuning) {
                               return rehearse(scenario, tuning);
                             }});
  }
  return made;
}

}  // namespace muster::check

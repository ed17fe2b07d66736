// SPDX-License-Identifier: BSD-3-Clause
#include "sim/barrier_run.hpp"

#include "barrier/base_barriers.hpp"
#include "barrier/openmp_peers.hpp"

namespace muster::sim {
namespace {

/// Those that nothing but their names asks for.
template <class Fn>
bool with_openmp_peer(std::string_view name, Fn&& fn) {
  bool found = false;
  for_each_openmp_peer<Modelled>([&]<class B>() {
    if (B::traits.name != name) return;
    fn.template operator()<B>();
    found = true;
  });
  return found;
}

}  // namespace

const std::vector<std::string>& modelled_barriers() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const std::string_view name : barrier_names()) all.emplace_back(name);
    for_each_base_barrier<Modelled>([&]<class B>() { all.emplace_back(B::traits.name); });
    return all;
  }();
  return names;
}

Algorithm parse_modelled(std::string_view text) {
  if (with_openmp_peer(text, []<class B>() {})) return {.name = std::string(text), .levels = {}};
  if (text.starts_with("base-")) {
    const auto& names = modelled_barriers();
    if (std::find(names.begin(), names.end(), text) != names.end()) {
      return {.name = std::string(text), .levels = {}};
    }
  }
  try {
    return parse_algorithm(text);
  } catch (const Error& error) {
    std::string known;
    for (const std::string& name : modelled_barriers()) {
      if (name.starts_with("base-")) known += ", " + name;
    }
    for_each_openmp_peer<Modelled>([&]<class B>() { known.append(", ").append(B::traits.name); });
    throw Error(error.code(), error.what() + ("; in the model, besides" + known.substr(1)));
  }
}

BarrierOutcome run_barrier(std::string_view name, const BarrierSetup& setup, StackPool& pool) {
  BarrierOutcome outcome;
  if (with_openmp_peer(name, [&]<class B>() { outcome = run_barrier_as<B>(setup, pool); })) {
    return outcome;
  }
  if (!name.starts_with("base-")) {
    return with_barrier<Modelled>(name, [&]<class B>() { return run_barrier_as<B>(setup, pool); });
  }
  for_each_base_barrier<Modelled>([&]<class B>() {
    if (B::traits.name == name) outcome = run_barrier_as<B>(setup, pool);
  });
  return outcome;
}

}  // namespace muster::sim

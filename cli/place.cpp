// SPDX-License-Identifier: BSD-3-Clause
// `muster place`: where RCL's servers, working threads and memory go on a machine [P17, PS18].
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/named_machine.hpp"
#include "cli/output.hpp"
#include "cli/subcommands.hpp"
#include "machine/error.hpp"
#include "machine/format.hpp"
#include "placement/placer.hpp"
#include "topology/topology.hpp"
#include "topology/tree.hpp"

namespace muster {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string machine;
  unsigned servers = 1;
  unsigned threads = 0;  // 0: one per core without a server
  std::string policy = "pack";
  std::vector<unsigned> at;
  bool json = false;
};

struct Answer {
  std::vector<Placer::Server> servers;
  std::vector<unsigned> threads;  // core of each
};

Answer place(Placer& placer, const Options& options) {
  Answer answer;
  const ServerPolicy policy = parse_policy(options.policy);
  for (const unsigned core : options.at) answer.servers.push_back(placer.add_server_at(core));
  while (answer.servers.size() < options.servers) {
    answer.servers.push_back(placer.add_server(policy));
  }
  unsigned threads = options.threads;
  if (threads == 0) {
    for (const unsigned servers : placer.now().servers) threads += servers == 0 ? 1 : 0;
  }
  answer.threads = placer.add_threads(threads);
  if (answer.threads.size() < options.threads) {
    throw Error(Status::invalid, "--threads: they are placed around servers, and there is none");
  }
  return answer;
}

std::string numa_text(const CoreTree& tree, unsigned numa) {
  const std::optional<unsigned> os_index = tree.numa_nodes()[numa].os_index;
  return os_index ? fmt::format("NUMA node {}", *os_index) : "no NUMA node";
}

std::string_view binding_name(MemoryDecision::Binding binding) {
  switch (binding) {
    case MemoryDecision::Binding::bind:
      return "bind";
    case MemoryDecision::Binding::lift:
      return "lift";
    case MemoryDecision::Binding::keep:
      break;
  }
  return "keep";
}

std::string memory_text(const CoreTree& tree, const MemoryDecision& memory) {
  switch (memory.binding) {
    case MemoryDecision::Binding::bind:
      return fmt::format("memory bound to {}{}", numa_text(tree, *memory.numa),
                         memory.migrate ? ", earlier blocks migrate there" : "");
    case MemoryDecision::Binding::lift:
      return "memory no longer bound";
    case MemoryDecision::Binding::keep:
      break;
  }
  return "memory as before";
}

std::string pus_text(const Topology& topology, unsigned core) {
  return format_numbers(topology.cores()[core].pus);
}

std::string to_text(const NamedMachine& machine, const CoreTree& tree, const Answer& answer) {
  const Topology& topology = machine.topology;
  std::string text = fmt::format("{}: {}\ntree {}\n\n", machine.title(),
                                 counted(tree.cores(), "cores"), fmt::join(tree.levels(), " > "));
  for (std::size_t i = 0; i < answer.servers.size(); ++i) {
    const Placer::Server& server = answer.servers[i];
    text += fmt::format("server {:<4} core {:<4} PU {:<6} {}\n            {}\n", i, server.core,
                        pus_text(topology, server.core), numa_text(tree, tree.numa_of(server.core)),
                        memory_text(tree, server.memory));
  }
  for (std::size_t i = 0; i < answer.threads.size(); ++i) {
    const unsigned core = answer.threads[i];
    text += fmt::format("thread {:<4} core {:<4} PU {:<6} {}\n", i, core, pus_text(topology, core),
                        numa_text(tree, tree.numa_of(core)));
  }
  return text;
}

Json place_of(const Topology& topology, const CoreTree& tree, unsigned core) {
  const std::optional<unsigned> os_index = tree.numa_nodes()[tree.numa_of(core)].os_index;
  return {{"core", core},
          {"pus", topology.cores()[core].pus},
          {"numa", os_index ? Json(*os_index) : Json(nullptr)}};
}

Json to_json(const NamedMachine& machine, const CoreTree& tree, const Options& options,
             const Answer& answer) {
  const Topology& topology = machine.topology;
  Json json;
  if (machine.model) json["machine"] = machine.title();
  json["topology"] = topology.source();
  json["cores"] = tree.cores();
  json["policy"] = options.policy;
  json["levels"] = tree.levels();
  json["servers"] = Json::array();
  for (const Placer::Server& server : answer.servers) {
    Json row = place_of(topology, tree, server.core);
    row["memory"] = binding_name(server.memory.binding);
    row["migrate"] = server.memory.migrate;
    json["servers"].push_back(std::move(row));
  }
  json["threads"] = Json::array();
  for (const unsigned core : answer.threads) {
    json["threads"].push_back(place_of(topology, tree, core));
  }
  return json;
}

void run(const Options& options) {
  if (options.at.size() > options.servers) {
    throw Error(Status::invalid, fmt::format("--at names {} cores, but --servers is {}",
                                             options.at.size(), options.servers));
  }
  const NamedMachine machine = named_machine(options.machine);
  Placer placer{CoreTree(machine.topology)};
  const Answer answer = place(placer, options);
  fmt::print("{}", options.json ? format_json(to_json(machine, placer.tree(), options, answer))
                                : to_text(machine, placer.tree(), answer));
}

}  // namespace

void add_place(Command& app) {
  const auto options = std::make_shared<Options>();
  Command* const command = app.add_subcommand(
      "place", "Show where the servers of delegated locks, working threads and memory go");
  add_machine_option(*command, options->machine, machine_option);
  command->add_option("--servers", options->servers, "Number of servers")
      ->check(Range(0U, 1U << 20))
      ->capture_default_str();
  command
      ->add_option("--threads", options->threads,
                   "Number of working threads (default: one per core without a server)")
      ->check(Range(1U, 1U << 20));
  command
      ->add_option("--policy", options->policy,
                   "Where servers go: pack (onto one NUMA node) or spread")
      ->words({std::string(policy_name(ServerPolicy::pack)),
               std::string(policy_name(ServerPolicy::spread))})
      ->capture_default_str();
  command->add_option("--at", options->at, "Cores of the first servers, separated by commas")
      ->delimiter(',');
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { run(*options); });
}

}  // namespace muster

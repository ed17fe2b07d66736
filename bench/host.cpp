// SPDX-License-Identifier: BSD-3-Clause
#include "bench/host.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "bench_commit.h"

namespace muster::bench {
namespace {

/// The value of the first line of /proc/cpuinfo with one of these keys.
std::string cpu_model() {
  for (const char* key : {"model name", "Model", "cpu"}) {  // x86; some ARM; POWER
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind(key, 0) != 0) continue;
      const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
      if (line.find(':') != std::string::npos && value != std::string::npos)
        return line.substr(value);
    }
  }
  std::ifstream board("/sys/firmware/devicetree/base/model");
  std::string model;
  std::getline(board, model, '\0');
  return model.empty() ? "unknown" : model;
}

}  // namespace

Host this_host() {
  Host host;
  host.model = cpu_model();
  utsname name{};
  if (uname(&name) == 0) {
    host.architecture = name.machine;
    host.kernel = std::string(name.sysname) + " " + name.release;
  }
#if defined(__clang__)
  host.compiler = "clang " __clang_version__;
#else
  host.compiler = "gcc " __VERSION__;
#endif
  host.commit = MUSTER_BENCH_COMMIT;
  return host;
}

CpuTimes cpu_times(const PuSet& cpus) {
  const std::int64_t tick_ns = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  CpuTimes times;
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name;
    std::int64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0,
                 steal = 0;
    fields >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
    if (!fields || name.size() < 4 || name.rfind("cpu", 0) != 0) continue;
    if (!cpus.contains(static_cast<unsigned>(std::stoul(name.substr(3))))) continue;
    times.known = true;
    times.busy_ns += (user + nice + system + irq + softirq) * tick_ns;
    times.steal_ns += steal * tick_ns;
  }
  return times;
}

}  // namespace muster::bench

// SPDX-License-Identifier: BSD-3-Clause
// A driver for fuzz_attach.cpp where there is no libFuzzer: inputs are barriers as they should be,
// damaged at random. What kills it is written to a file, which replays it as an argument.
//
//   MUSTER_FUZZ_SECONDS=60 MUSTER_SEED=1 fuzz-attach [file]
//   fuzz-attach --seeds <folder>    writes the undamaged ones: a corpus for libFuzzer to start from
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "muster/muster.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

/// The input under way, where the parent finds it after its child's death.
struct Current {
  std::size_t bytes;
  std::uint64_t inputs;
  std::uint8_t data[1 << 18];
};

muster_options options_for(const char* algorithm, unsigned participants) {
  muster_options options;
  muster_options_init(&options);
  options.participants = participants;
  options.algorithm = algorithm;
  options.flags = MUSTER_SHARED;
  options.topology = "package:2 l3:2 core:2 pu:1";
  options.map_by = "core";
  return options;
}

/// A barrier in memory, behind the byte that says so.
Bytes block_of(muster_options options) {
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  muster_barrier* barrier = nullptr;
  if (muster_barrier_memory(&options, &bytes, &alignment) != MUSTER_OK) std::abort();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  auto* const memory = static_cast<std::uint8_t*>(std::aligned_alloc(alignment, rounded));
  std::memset(memory, 0, rounded);
  options.memory = memory;
  options.memory_bytes = bytes;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) std::abort();
  Bytes input(1 + bytes);
  std::memcpy(input.data() + 1, memory, bytes);
  muster_barrier_destroy(barrier);
  std::free(memory);
  return input;
}

/// The file of one with a segment of its own.
Bytes file_of(const muster_options& options) {
  muster_barrier* barrier = nullptr;
  if (muster_barrier_create(&barrier, &options) != MUSTER_OK) std::abort();
  const int fd = muster_barrier_fd(barrier);
  struct stat file {};
  if (fstat(fd, &file) != 0) std::abort();
  Bytes input(static_cast<std::size_t>(file.st_size) + 1);
  input[0] = 1;
  if (pread(fd, input.data() + 1, input.size() - 1, 0) != file.st_size) std::abort();
  muster_barrier_destroy(barrier);
  return input;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const char* const* name = muster_barrier_names(); *name != nullptr; ++name) {
    all.push_back(block_of(options_for(*name, 6)));
  }
  all.push_back(block_of(options_for("combining-tree:3", 8)));
  all.push_back(file_of(options_for("topo", 6)));
  all.push_back(file_of(options_for("mcs", 2)));
  return all;
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed), seeds_(seeds()) {}

  Bytes next() {
    Bytes input = seeds_[below(seeds_.size())];
    if (below(4) != 0) input[0] |= 2 | 4;
    for (std::size_t changes = 1 + below(4); changes > 0 && input.size() > 2; --changes) {
      change(input);
    }
    return input;
  }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }

  /// Mostly where the headers and the description are.
  std::size_t place(const Bytes& input) {
    const std::size_t header = 1 + ((input[0] & 1) != 0 ? 4096 * below(2) : 0);
    const std::size_t at = below(8) == 0 ? 1 + below(input.size() - 1) : header + below(600);
    return std::min(at, input.size() - 1);
  }

  void change(Bytes& input) {
    const std::size_t at = place(input);
    switch (below(6)) {
      case 0:
        input[at] = static_cast<std::uint8_t>(input[at] ^ (1U << below(8)));
        break;
      case 1:
        input[at] = static_cast<std::uint8_t>(below(256));
        break;
      case 2:
        input[at] = static_cast<std::uint8_t>(below(9));
        break;
      case 3: {  // a power of two, or none, and its neighbours
        const std::uint64_t value = (std::uint64_t{below(16) != 0} << below(64)) + below(3) - 1;
        const std::size_t field = 1 + (at - 1) / 8 * 8;
        std::memcpy(input.data() + field, &value, std::min<std::size_t>(8, input.size() - field));
        break;
      }
      case 4: {  // a piece of it, or of another one
        const Bytes& other = below(2) == 0 ? input : seeds_[below(seeds_.size())];
        const std::size_t from = std::min(place(other), other.size() - 1);
        const std::size_t bytes = std::min({1 + below(64), other.size() - from, input.size() - at});
        const Bytes piece(other.begin() + static_cast<std::ptrdiff_t>(from),
                          other.begin() + static_cast<std::ptrdiff_t>(from + bytes));
        std::copy(piece.begin(), piece.end(), input.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      default:
        if (below(4) == 0) input.resize(std::max<std::size_t>(2, below(input.size())));
        break;
    }
  }

  std::mt19937_64 random_;
  std::vector<Bytes> seeds_;
};

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

void fuzz(Current& current, std::uint64_t seed, double seconds) {
  Mutator mutator(seed);
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (;;) {
    if (current.inputs % 256 == 0) {
      timespec now{};
      clock_gettime(CLOCK_MONOTONIC, &now);
      const double passed = static_cast<double>(now.tv_sec - start.tv_sec) +
                            1e-9 * static_cast<double>(now.tv_nsec - start.tv_nsec);
      if (passed > seconds) return;
      alarm(20);  // an input that takes as long kills it, too
    }
    const Bytes input = mutator.next();
    current.bytes = std::min(input.size(), sizeof current.data);
    std::memcpy(current.data, input.data(), current.bytes);
    ++current.inputs;
    LLVMFuzzerTestOneInput(current.data, current.bytes);
  }
}

/// Two files for each: as it is, and with hash and length put right after changes.
int write_seeds(const std::string& folder) {
  unsigned number = 0;
  for (Bytes seed : seeds()) {
    for (const unsigned right : {0U, 2U | 4U}) {
      seed[0] = static_cast<std::uint8_t>((seed[0] & 1U) | right);
      std::ofstream file(folder + "/" + std::to_string(number++), std::ios::binary);
      file.write(reinterpret_cast<const char*>(seed.data()),
                 static_cast<std::streamsize>(seed.size()));
      if (!file.flush()) {
        std::fprintf(stderr, "fuzz-attach: cannot write to %s\n", folder.c_str());
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--seeds") == 0) return write_seeds(argv[2]);
  if (argc > 1) {
    std::ifstream file(argv[1], std::ios::binary);
    const Bytes input{std::istreambuf_iterator<char>(file), {}};
    return LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  void* const shared =
      mmap(nullptr, sizeof(Current), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& current = *static_cast<Current*>(shared);
  const std::uint64_t soak = number_from("MUSTER_SOAK", 1);
  const auto seconds = static_cast<double>(number_from("MUSTER_FUZZ_SECONDS", 4 * soak));
  const std::uint64_t seed = number_from("MUSTER_SEED", std::random_device{}());
  const pid_t child = fork();
  if (child == 0) {
    fuzz(current, seed, seconds);
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("%llu inputs, seed %llu\n", static_cast<unsigned long long>(current.inputs),
              static_cast<unsigned long long>(seed));
  if (status != 0) {
    const char* const name = "fuzz-attach.input";
    std::ofstream(name, std::ios::binary)
        .write(reinterpret_cast<const char*>(current.data),
               static_cast<std::streamsize>(current.bytes));
    std::printf("it died of input %llu (wait status 0x%x); again: %s %s\n",
                static_cast<unsigned long long>(current.inputs), static_cast<unsigned>(status),
                argv[0], name);
    return 1;
  }
  return current.inputs > 100 ? 0 : 1;  // a fuzzer that does nothing finds nothing
}

// SPDX-License-Identifier: BSD-3-Clause
// A fuzz target: attaches to whatever an input says and, if that is accepted, uses it. The first
// byte of an input chooses the way in; what follows is memory, or a file. For libFuzzer, or for the
// driver in fuzz_main.cpp.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "muster/muster.h"

namespace {

enum Way : unsigned {
  as_file = 1,       ///< behind a descriptor, else in memory
  right_hash = 2,    ///< memory: the description's hash is put right, or little gets past it
  right_length = 4,  ///< file: so is the length that the header claims
};

void use(muster_barrier* barrier) {
  char text[64];
  for (const char* format : {"text", "json"}) {
    muster_barrier_explain(barrier, format, text, sizeof text, nullptr);
  }
  const unsigned ranks = muster_barrier_participants(barrier);
  muster_barrier_timedwait(barrier, ranks / 2, 0);
  muster_barrier_timedwait(barrier, ranks - 1, 0);
  muster_barrier_blame(barrier, nullptr);
  muster_barrier_destroy(barrier);
}

/// The fields of a block's header that this has to know: the description's length and its hash.
void put_hash_right(unsigned char* block, std::size_t bytes) {
  constexpr std::size_t description = 64;
  std::uint64_t length = 0;
  if (bytes < description) return;
  std::memcpy(&length, block + 3 * sizeof length, sizeof length);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(length, bytes - description); ++i) {
    hash = (hash ^ block[description + i]) * 0x100000001b3;
  }
  std::memcpy(block + 4 * sizeof hash, &hash, sizeof hash);
}

/// In memory that ends where the input does, for AddressSanitizer.
void attach_to_memory(const unsigned char* data, std::size_t bytes, bool hash) {
  constexpr std::size_t alignment = 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  auto* const memory = static_cast<unsigned char*>(std::aligned_alloc(alignment, rounded));
  std::memset(memory, 0, rounded);
  std::memcpy(memory, data, bytes);
  if (hash) put_hash_right(memory, bytes);
  muster_barrier* barrier = nullptr;
  const int status = muster_barrier_attach_memory(&barrier, memory, bytes);
  if (status == MUSTER_OK) {
    use(barrier);
  } else if (status != MUSTER_EFOREIGN && status != MUSTER_ENOMEM && status != MUSTER_EINVAL) {
    std::abort();
  }
  std::free(memory);
}

void attach_to_file(const unsigned char* data, std::size_t bytes, bool length) {
  const int fd = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t rounded = length ? (bytes + page - 1) / page * page : bytes;
  const bool made = fchmod(fd, 0600) == 0 &&
                    posix_fallocate(fd, 0, static_cast<off_t>(rounded)) == 0 &&
                    pwrite(fd, data, bytes, 0) == static_cast<ssize_t>(bytes) &&
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  muster_barrier* barrier = nullptr;
  muster_segment* segment = nullptr;
  if (made && muster_barrier_attach(&barrier, fd) == MUSTER_OK) use(barrier);
  if (made && muster_segment_attach(&segment, fd) == MUSTER_OK) {
    for (const std::uint64_t handle : {64U, 128U, 4096U}) {
      if (muster_barrier_attach_at(&barrier, segment, handle) == MUSTER_OK) use(barrier);
    }
    muster_segment_destroy(segment);
  }
  close(fd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 200'000) return 0;
  const unsigned way = data[0];
  if ((way & as_file) != 0) {
    attach_to_file(data + 1, size - 1, (way & right_length) != 0);
  } else {
    attach_to_memory(data + 1, size - 1, (way & right_hash) != 0);
  }
  return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "topology/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "machine/error.hpp"
#include "machine/format.hpp"

namespace muster {
namespace {

constexpr std::size_t bytes_max = 64U << 20;

struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

std::string read_text_file(const std::string& path, std::string_view what) {
  const auto fail = [&](std::string_view why) {
    throw Error(Status::invalid, format("{} '{}' {}", what, path, why));
  };
  const auto fail_by_errno = [&] { fail(format("cannot be read: {}", std::strerror(errno))); };
  const Fd file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  struct stat status {};
  if (file.fd < 0 || fstat(file.fd, &status) != 0) fail_by_errno();
  if (S_ISDIR(status.st_mode)) fail("is a directory");
  if (!S_ISREG(status.st_mode)) fail("is no regular file");
  std::string text;
  for (std::size_t length = 0;;) {
    constexpr std::size_t step = 1U << 16;
    text.resize(length + step);
    const ssize_t got = read(file.fd, text.data() + length, step);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_by_errno();
    length += static_cast<std::size_t>(got);
    if (length > bytes_max) fail(format("is longer than {} MiB", bytes_max >> 20));
    if (got == 0) {
      text.resize(length);
      constexpr std::string_view mark = "\xEF\xBB\xBF";  // of UTF-8, by editors that put it there
      if (text.starts_with(mark)) text.erase(0, mark.size());
      return text;
    }
  }
}

}  // namespace muster

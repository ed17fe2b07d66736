// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "machine/error.hpp"
#include "machine/format.hpp"
#include "machine/identity.hpp"
#include "machine/preload.hpp"
#include "memory/posix.hpp"
#include "memory/segment.hpp"

namespace muster {
namespace {

constexpr std::size_t longest_name = 64;
constexpr std::int64_t ns_per_s = 1'000'000'000;
constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::int64_t first_pause_ns = 500'000;
constexpr std::int64_t longest_pause_ns = 16'000'000;
constexpr int out_of_descriptors_pause_ms = 20;
constexpr int between_looks_ms = 1000;

/// Travels with the descriptor, so that a receiver knows whom it talks to.
struct Greeting {
  std::uint64_t magic = 0x444652455453554d;  // "MUSTERFD", little-endian
  std::uint64_t version = 1;
  friend bool operator==(const Greeting&, const Greeting&) = default;
};

void check_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (name.empty() || name.size() > longest_name ||
      !std::all_of(name.begin(), name.end(), allowed)) {
    throw Error(Status::invalid,
                format("\"{}\" is no name: take 1 to {} characters of A-Z a-z 0-9 . _ -",
                       name.substr(0, longest_name), longest_name));
  }
}

struct Address {
  sockaddr_un bytes{};
  socklen_t size = 0;

  explicit Address(const std::string& name) {
    const std::string path = format("muster-{}-{}", geteuid(), name);
    static_assert(sizeof bytes.sun_path > 1 + 7 + 10 + 1 + longest_name);
    bytes.sun_family = AF_UNIX;
    std::memcpy(bytes.sun_path + 1, path.data(), path.size());  // the 0 before it: abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

UniqueFd make_socket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) {
    throw Error(Status::system, format("a local socket: {}", errno_text(errno)));
  }
  return fd;
}

/// The effective user at the other end when it connected or began to listen.
std::optional<uid_t> peer_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

void send_fd(int socket, int fd) {
  Greeting greeting;
  iovec part{&greeting, sizeof greeting};
  union {
    cmsghdr header;  // for its alignment
    std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  } ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes.data();
  message.msg_controllen = sizeof ancillary.bytes;
  cmsghdr* const control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(control), &fd, sizeof fd);
  // A client that is gone, or whose system has no room, sees the end of the connection and retries.
  while (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void fail_foreign(const std::string& name, const std::string& what) {
  throw Error(Status::foreign, format("segment \"{}\": {}; take another name", name, what));
}

/// One message. Empty: the server ended before it answered.
UniqueFd take_fd(int socket, const std::string& name) {
  // Room for the most that one message can carry: whatever arrives is seen, and closed.
  constexpr std::size_t most_descriptors = 253;
  union {
    cmsghdr header;  // for its alignment
    std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> bytes;
  } ancillary{};
  Greeting greeting{0, 0};
  iovec part{&greeting, sizeof greeting};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes.data();
  message.msg_controllen = sizeof ancillary.bytes;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return {};
  std::vector<UniqueFd> received;
  const cmsghdr* const control = CMSG_FIRSTHDR(&message);
  if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= control->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + (at - CMSG_LEN(0)), sizeof fd);
      received.emplace_back(fd);
    }
  }
  if (received.empty() && (message.msg_flags & MSG_CTRUNC) != 0) {  // there was room for it
    throw Error(Status::system,
                format("segment \"{}\": no descriptor is left for it: close some, or raise the "
                       "limit (ulimit -n)",
                       name));
  }
  const bool whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (received.size() != 1 || !whole || got != sizeof greeting || !(greeting == Greeting{})) {
    fail_foreign(name, "what answers under it is not a Muster segment's server");
  }
  return std::move(received.front());
}

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

timespec to_timespec(std::int64_t ns) { return {ns / ns_per_s, ns % ns_per_s}; }

/// Waits until there is something to read, or the connection ended.
bool readable_by(int fd, std::int64_t deadline_ns) {
  while (true) {
    pollfd watched{fd, POLLIN, 0};
    const timespec left = to_timespec(std::max<std::int64_t>(deadline_ns - steady_ns(), 0));
    const int ready = ppoll(&watched, 1, &left, nullptr);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw Error(Status::system, "ppoll: " + errno_text(errno));
  }
}

void pause_for(std::int64_t ns) {
  const timespec time = to_timespec(ns);
  nanosleep(&time, nullptr);  // shorter after a signal: the caller looks at the clock
}

/// So many servers' threads are there, at least.
constinit std::atomic<unsigned> serving{0};

/// What a server holds open.
struct Endpoint {
  UniqueFd offered;
  UniqueFd listener;
  UniqueFd stop;
  Endpoint* next = nullptr;  ///< of all that there are

  void close_all() noexcept {
    // A copy in a child that was made without fork handlers keeps the name, but refuses clients.
    if (listener) shutdown(listener.get(), SHUT_RDWR);
    listener.reset();
    close_copies();
  }
  void close_copies() noexcept {
    offered.reset();
    listener.reset();
    stop.reset();
  }
};

/// Every endpoint of this process, so that a forked child closes its copies: a listening socket
/// that lived on in a child would keep the name taken, and leave clients waiting.
class Endpoints {
 public:
  /// Held while endpoints are opened and closed: no fork in between. Not for ever: others' fork
  /// handlers may wait for the caller, and then a child may keep a copy.
  static std::unique_lock<std::mutex> lock() {
    if (failed_ != 0) throw Error(Status::system, "pthread_atfork: " + errno_text(failed_));
    std::unique_lock held(instance().no_fork_, std::try_to_lock);
    for (int tries = 0; !held && tries < 200; ++tries) {
      pause_for(ns_per_ms);
      static_cast<void>(held.try_lock());
    }
    return held;
  }
  // One store each changes the list: a child finds it whole.
  static void add(Endpoint* endpoint) {
    const std::scoped_lock lock(instance().changing_);
    endpoint->next = instance().first_;
    instance().first_.store(endpoint, std::memory_order_release);
  }
  static void remove(const Endpoint* endpoint) {
    const std::scoped_lock lock(instance().changing_);
    if (instance().first_ == endpoint) {
      instance().first_ = endpoint->next;
      return;
    }
    for (Endpoint* at = instance().first_; at != nullptr; at = at->next) {
      if (at->next == endpoint) at->next = endpoint->next;
    }
  }

 private:
  static Endpoints& instance() {
    static auto* const only = new Endpoints;  // for ever: a server may outlive static objects
    return *only;
  }
  /// At load: a fork's child never finds it half done.
  [[gnu::constructor(101)]] static void watch_forks() {
    instance();
    failed_ = pthread_atfork([] { instance().no_fork_.lock(); },
                             [] { instance().no_fork_.unlock(); }, after_fork_in_child);
  }
  static void after_fork_in_child() {
    serving = 0;
    Endpoints& all = instance();
    for (Endpoint* at = all.first_; at != nullptr; at = at->next) at->close_copies();
    all.first_ = nullptr;
    new (&all.changing_) std::mutex;
    all.no_fork_.unlock();
  }

  static inline int failed_ = 0;
  std::mutex no_fork_;
  std::mutex changing_;
  std::atomic<Endpoint*> first_{nullptr};
};

}  // namespace

struct FdServer::Impl {
  Impl() = default;
  Impl(const std::string& name, int fd)
      : Impl() {  // delegates: the destructor cleans up if it throws
    open(name, fd);
    start();
  }
  ~Impl();

  void open(const std::string& name, int fd);
  void start();
  void serve() const;

  Endpoint endpoint;
  uid_t user = geteuid();
  pid_t process = getpid();
  pthread_t thread{};
  bool started = false;
};

void FdServer::Impl::open(const std::string& name, int fd) {
  check_name(name);
  const auto fail = [&](const char* call) {
    const int error = errno;
    const bool limit = error == EMFILE || error == ENFILE;
    throw Error(error == EBADF ? Status::invalid : Status::system,
                format("offering a segment as \"{}\": {}: {}{}", name, call, errno_text(error),
                       limit ? "; close descriptors or raise the limit (ulimit -n)" : ""));
  };
  const auto no_fork = Endpoints::lock();
  Endpoints::add(&endpoint);
  endpoint.offered = duplicate(fd);
  if (!endpoint.offered) fail("duplicating the descriptor");
  endpoint.stop.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!endpoint.stop) fail("eventfd");
  endpoint.listener = make_socket();
  const Address address(name);
  if (bind(endpoint.listener.get(), address.get(), address.size) != 0) {
    if (errno != EADDRINUSE) fail("bind");
    throw Error(Status::busy, format("the name \"{}\" is taken by another segment of user {}, "
                                     "or by another user: choose another",
                                     name, user));
  }
  if (listen(endpoint.listener.get(), SOMAXCONN) != 0) fail("listen");
}

void FdServer::Impl::start() {
  const OwnThreads no_worker;
  const SignalsBlocked inherited;  // the program's signals go to the program's threads
  const int error = pthread_create(
      &thread, nullptr,
      [](void* self) -> void* {
        pthread_setname_np(pthread_self(), "muster-segment");
        ++serving;
        static_cast<const Impl*>(self)->serve();
        --serving;
        return nullptr;
      },
      this);
  if (error != 0) {
    throw Error(Status::system, format("a thread to offer a segment: {}; raise the limit on "
                                       "processes (ulimit -u)",
                                       errno_text(error)));
  }
  started = true;
}

FdServer::Impl::~Impl() {
  if (started && process == getpid()) {
    const std::uint64_t one = 1;
    while (write(endpoint.stop.get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
    pthread_join(thread, nullptr);
  }
  const auto no_fork = Endpoints::lock();
  Endpoints::remove(&endpoint);
  if (process == getpid())
    endpoint.close_all();
  else
    endpoint.close_copies();
}

void FdServer::Impl::serve() const {
  while (true) {
    std::array<pollfd, 2> watched{
        {{endpoint.stop.get(), POLLIN, 0}, {endpoint.listener.get(), POLLIN, 0}}};
    const int ready = poll(watched.data(), watched.size(), between_looks_ms);
    // Once the program's last thread has ended, the process ends with the last server's.
    if (ready == 0 && are_left_alone(serving)) return;
    if (ready <= 0) continue;
    if (watched[0].revents != 0) return;
    const UniqueFd client(
        accept4(endpoint.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client) {
      if (peer_user(client.get()) == user) send_fd(client.get(), endpoint.offered.get());
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      // No descriptor or memory to spare: the client stays in the queue, and this must not spin.
      poll(watched.data(), 1, out_of_descriptors_pause_ms);
    }
  }
}

FdServer::FdServer(const std::string& name, int fd) : impl_(std::make_unique<Impl>(name, fd)) {}
FdServer::~FdServer() = default;

int receive_fd(const std::string& name, std::int64_t timeout_ns) {
  check_name(name);
  if (timeout_ns < 0) throw Error(Status::invalid, "a timeout cannot be negative");
  const Address address(name);
  const std::int64_t start_ns = steady_ns();
  const std::int64_t deadline_ns =
      timeout_ns > INT64_MAX - start_ns ? INT64_MAX : start_ns + timeout_ns;
  bool met = false;
  for (std::int64_t pause_ns = first_pause_ns;;
       pause_ns = std::min(2 * pause_ns, longest_pause_ns)) {
    const UniqueFd socket = make_socket();
    if (connect(socket.get(), address.get(), address.size) == 0) {
      if (peer_user(socket.get()) != geteuid()) fail_foreign(name, "another user offers it");
      met = true;
      if (readable_by(socket.get(), deadline_ns)) {
        if (UniqueFd fd = take_fd(socket.get(), name)) return fd.release();
      }
    } else if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR) {
      throw Error(Status::system,
                  format("asking for segment \"{}\": connect: {}", name, errno_text(errno)));
    }
    const std::int64_t left_ns = deadline_ns - steady_ns();
    if (left_ns <= 0) break;
    pause_for(std::min(pause_ns, left_ns));
  }
  throw Error(Status::timeout,
              format("segment \"{}\": {} (waited {} ms)", name,
                     met ? "the process that offers it did not answer: is it stopped, or out "
                           "of descriptors?"
                         : "nobody offered it: let its creator run first, as the same user "
                           "and in the same network namespace, or wait longer",
                     timeout_ns / ns_per_ms));
}

}  // namespace muster

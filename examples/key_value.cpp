// SPDX-License-Identifier: BSD-3-Clause
// A key-value cache as memcached has it, and the load on it: get, set and incr on a hash table
// whose entries stand in a list by their last use. A get changes that list, so there is one lock
// for all. `--lock std::mutex` is the program before it was ported.
#include <getopt.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <muster/lock.hpp>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using Key = std::uint32_t;
using Value = std::array<std::uint64_t, 8>;

/// Not thread-safe.
class Cache {
 public:
  explicit Cache(std::size_t capacity) : capacity_(capacity) { table_.reserve(capacity + 1); }

  std::optional<Value> get(Key key) {
    const auto found = table_.find(key);
    if (found == table_.end()) return std::nullopt;
    return use(found->second).value;
  }
  void set(Key key, const Value& value) { entry(key).value = value; }
  std::uint64_t incr(Key key) { return ++entry(key).number; }

  std::size_t size() const { return table_.size(); }
  /// Of all entries, evicted ones included.
  std::uint64_t increments() const {
    std::uint64_t sum = evicted_;
    for (const Entry& entry : by_use_) sum += entry.number;
    return sum;
  }

 private:
  struct Entry {
    Key key;
    Value value;
    std::uint64_t number;
  };
  using Place = std::list<Entry>::iterator;

  Entry& use(Place place) {
    by_use_.splice(by_use_.begin(), by_use_, place);
    return *place;
  }
  Entry& entry(Key key) {
    const auto [at, fresh] = table_.try_emplace(key);
    if (!fresh) return use(at->second);
    by_use_.push_front({key, {}, 0});
    at->second = by_use_.begin();
    if (table_.size() > capacity_) {
      evicted_ += by_use_.back().number;
      table_.erase(by_use_.back().key);
      by_use_.pop_back();
    }
    return by_use_.front();
  }

  const std::size_t capacity_;
  std::unordered_map<Key, Place> table_;
  std::list<Entry> by_use_;  ///< the last used first
  std::uint64_t evicted_ = 0;
};

/// Before. After: muster::guarded<Cache>.
class Locked {
 public:
  explicit Locked(std::size_t capacity) : cache_(capacity) {}

  template <class Section>
  auto execute(Section&& section) {
    const std::lock_guard guard(mutex_);
    return section(cache_);
  }

 private:
  std::mutex mutex_;
  Cache cache_;
};

std::string explain(Locked& /*store*/) { return "lock: std::mutex\n"; }
std::string explain(muster::guarded<Cache>& store) { return store.native_lock().explain(); }

struct Options {
  std::string lock = "auto";
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  unsigned operations = 2'000'000;  ///< of all threads
  unsigned keys = 100'000;
  unsigned capacity = 50'000;
  double skew = 0.99;  ///< of Zipf's law; 0: all keys alike
};

struct Counts {
  std::uint64_t hits = 0, misses = 0, increments = 0, wrong = 0;
};

/// All eight words from one: a value that was read half changed would be seen.
Value value_of(Key key, std::uint64_t version) {
  Value value;
  value.fill(version << 32 | key);
  return value;
}
bool is_of(const Value& value, Key key) {
  for (const std::uint64_t word : value) {
    if (word != value[0] || static_cast<Key>(word) != key) return false;
  }
  return true;
}

/// What one client asks for, again and again: drawn before, so as not to be timed.
std::vector<Key> draw_keys(const Options& options, unsigned seed) {
  std::vector<double> weights(options.keys);
  for (unsigned k = 0; k < options.keys; ++k) weights[k] = std::pow(k + 1, -options.skew);
  std::discrete_distribution<Key> zipf(weights.begin(), weights.end());
  std::mt19937 random(seed);
  std::vector<Key> keys(65'536);
  for (Key& key : keys) key = zipf(random);
  return keys;
}

/// 1 in 64 is an incr, 4 are sets, the others gets; what is missing is set, as from a data base.
template <class Store>
Counts run_client(Store& store, const std::vector<Key>& keys, unsigned operations) {
  Counts counts;
  for (unsigned i = 0; i < operations; ++i) {
    const Key key = keys[i % keys.size()];
    const unsigned kind = i % 64;
    if (kind == 0) {
      store.execute([&](Cache& cache) { return cache.incr(key); });
      ++counts.increments;
    } else if (kind <= 4) {
      const Value value = value_of(key, i);
      store.execute([&](Cache& cache) { cache.set(key, value); });
    } else if (const auto value = store.execute([&](Cache& cache) { return cache.get(key); })) {
      ++counts.hits;
      // One that only incr has made has no value.
      if (!is_of(*value, key) && *value != Value{}) ++counts.wrong;
    } else {
      ++counts.misses;
      const Value fresh = value_of(key, 0);
      store.execute([&](Cache& cache) { cache.set(key, fresh); });
    }
  }
  return counts;
}

template <class Store>
int run(const Options& options, Store& store) {
  std::vector<std::vector<Key>> keys;
  for (unsigned t = 0; t < options.threads; ++t) keys.push_back(draw_keys(options, t));

  std::vector<Counts> counts(options.threads);
  std::vector<std::thread> clients;
  const auto start = std::chrono::steady_clock::now();
  for (unsigned t = 0; t < options.threads; ++t) {
    const unsigned each = options.operations / options.threads +
                          static_cast<unsigned>(t < options.operations % options.threads);
    clients.emplace_back([&, t, each] { counts[t] = run_client(store, keys[t], each); });
  }
  for (std::thread& client : clients) client.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;

  Counts all;
  for (const Counts& one : counts) {
    all.hits += one.hits;
    all.misses += one.misses;
    all.increments += one.increments;
    all.wrong += one.wrong;
  }
  const auto size = store.execute([](Cache& cache) { return cache.size(); });
  const auto increments = store.execute([](Cache& cache) { return cache.increments(); });
  std::printf("hits %ju, misses %ju, increments %ju, entries %zu\n", std::uintmax_t{all.hits},
              std::uintmax_t{all.misses}, std::uintmax_t{increments}, size);
  std::fprintf(stderr, "%u operations, in %.3f s by %u threads: %.2f million operations/s\n%s",
               options.operations, took.count(), options.threads,
               1e-6 * options.operations / took.count(), explain(store).c_str());
  if (all.wrong == 0 && increments == all.increments) return 0;
  std::fprintf(stderr, "the lock has failed: %ju values wrong, %jd increments lost\n",
               std::uintmax_t{all.wrong}, static_cast<std::intmax_t>(all.increments - increments));
  return 1;
}

[[noreturn]] void print_usage(int status) {
  std::fputs(
      "usage: key_value [option]...\n"
      "  --lock NAME      std::mutex, or a kind of lock; default auto\n"
      "  --threads N      clients; default: one for each CPU\n"
      "  --operations N   of all clients; default 2000000\n"
      "  --keys N         default 100000\n"
      "  --capacity N     entries; default 50000\n"
      "  --skew S         of Zipf's law, 0 to 10; default 0.99; 0: all keys alike\n",
      status == 0 ? stdout : stderr);
  std::exit(status);
}

double number(const char* text, double min, double max) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= min && value <= max)) {
    std::fprintf(stderr, "key_value: \"%s\": a number from %g to %g\n", text, min, max);
    std::exit(2);
  }
  return value;
}

unsigned count(const char* text, unsigned max) {
  const double value = number(text, 1, max);
  if (value == std::floor(value)) return static_cast<unsigned>(value);
  std::fprintf(stderr, "key_value: \"%s\": a whole number\n", text);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  static const std::array<option, 8> known = {{{"help", no_argument, nullptr, 'h'},
                                               {"lock", required_argument, nullptr, 'l'},
                                               {"threads", required_argument, nullptr, 't'},
                                               {"operations", required_argument, nullptr, 'o'},
                                               {"keys", required_argument, nullptr, 'k'},
                                               {"capacity", required_argument, nullptr, 'c'},
                                               {"skew", required_argument, nullptr, 's'},
                                               {}}};
  Options options;
  for (int c = 0; (c = getopt_long(argc, argv, "", known.data(), nullptr)) != -1;) {
    switch (c) {
      case 'h':
        print_usage(0);
      case 'l':
        options.lock = optarg;
        break;
      case 't':
        options.threads = count(optarg, 4096);
        break;
      case 'o':
        options.operations = count(optarg, 4'000'000'000U);
        break;
      case 'k':
        options.keys = count(optarg, 100'000'000);
        break;
      case 'c':
        options.capacity = count(optarg, 100'000'000);
        break;
      case 's':
        options.skew = number(optarg, 0, 10);
        break;
      default:
        print_usage(2);
    }
  }
  if (optind != argc) print_usage(2);
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  if (options.lock == "std::mutex") {
    Locked store(options.capacity);
    return run(options, store);
  }
  muster::guarded<Cache> store(muster::lock_options{options.lock.c_str()}, options.capacity);
  return run(options, store);
} catch (const std::exception& error) {
  std::fprintf(stderr, "key_value: %s\n", error.what());
  const auto* ours = dynamic_cast<const muster::error*>(&error);
  return ours != nullptr && ours->status() == MUSTER_EUNKNOWN ? 2 : 1;
}

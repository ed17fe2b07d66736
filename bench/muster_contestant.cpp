// SPDX-License-Identifier: BSD-3-Clause
// Our own barriers as contestants: through the C interface, as users have them, and straight over
// the templates, to show what the interface costs. Those over messages have no other way.
#include <sys/mman.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "barrier/base_barriers.hpp"
#include "bench/contestant.hpp"
#include "capi/block.hpp"
#include "capi/plan.hpp"
#include "machine/error.hpp"
#include "machine/hardware.hpp"
#include "memory/pages.hpp"
#include "muster/muster.h"

namespace muster::bench {
namespace {

/// The options of the C interface, and what their pointers point to.
class Options {
 public:
  explicit Options(const Setting& setting) : setting_(setting) {
    muster_options_init(&options_);
    options_.participants = setting_.participants;
    options_.algorithm = setting_.algorithm.c_str();
    options_.wait = setting_.wait.c_str();
    options_.flags = setting_.mode == Mode::processes ? unsigned{MUSTER_SHARED} : 0U;
    // A barrier asked for by name is measured, or declines: no other serves under its name.
    if (setting_.algorithm != "auto") options_.flags |= MUSTER_EXACT;
    for (const std::string& binding : setting_.bindings) bindings_.push_back(binding.c_str());
    options_.bindings = bindings_.empty() ? nullptr : bindings_.data();
    options_.map_by = setting_.map_by.empty() ? nullptr : setting_.map_by.c_str();
    options_.topology = setting_.topology.empty() ? nullptr : setting_.topology.c_str();
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  const muster_options& get() const { return options_; }

 private:
  Setting setting_;
  std::vector<const char*> bindings_;
  muster_options options_{};
};

void check(int status) {
  if (status != MUSTER_OK) throw Error(static_cast<Status>(status), muster_last_error());
}

class ThroughC final : public Contestant {
 public:
  explicit ThroughC(const Setting& setting) : processes_(setting.mode == Mode::processes) {
    const Options options(setting);
    check(muster_barrier_create(&barrier_, &options.get()));
  }
  ~ThroughC() override { muster_barrier_destroy(barrier_); }

  void serve(Participant& participant, unsigned rank) override {
    muster_barrier* barrier = barrier_;
    if (processes_) check(muster_barrier_attach(&barrier, muster_barrier_fd(barrier_)));
    participant.serve([barrier, rank] {
      const int status = muster_barrier_wait(barrier, rank);
      if (status != MUSTER_OK) [[unlikely]]
        check(status);
    });
    if (processes_) muster_barrier_destroy(barrier);
  }

  std::string note() const override {
    std::size_t bytes = 0;
    check(muster_barrier_explain(barrier_, "json", nullptr, 0, &bytes));
    std::string text(bytes, '\0');
    check(muster_barrier_explain(barrier_, "json", text.data(), bytes, nullptr));
    text.pop_back();
    const auto plan = nlohmann::json::parse(text);
    return plan.at("algorithm").get<std::string>() + "\n" +
           plan.at("wait").at("policy").get<std::string>();
  }

 private:
  muster_barrier* barrier_ = nullptr;
  bool processes_;
};

class ThroughTemplate final : public Contestant {
 public:
  explicit ThroughTemplate(const Setting& setting)
      : plan_(make_plan(Options(setting).get())),
        layout_(Block::lay_out(plan_)),
        memory_(layout_.bytes),  // from mmap, so aligned to any layout's wish: a page at most
        block_(Block::create(memory_.data(), layout_, plan_)) {}

  void serve(Participant& participant, unsigned rank) override {
    with_barrier<Hardware>(plan_.algorithm.name, [&]<class B>() {
      const B barrier(plan_.shape(), block_.cells());
      Hardware port(block_.domain(), rank, plan_.wait, plan_.shared);
      auto ticket = barrier.ticket(rank);
      participant.serve([&] {
        if (!barrier.wait(port, ticket)) [[unlikely]]
          throw Error(Status::broken, "a wait gave up");
      });
    });
  }

  std::string note() const override {
    return plan_.algorithm.text() + "\n" + std::string(plan_.wait.name);
  }

 private:
  Plan plan_;
  BlockLayout layout_;
  SharedBytes memory_;
  Block block_;
};

template <class Fn>
bool with_base_barrier(std::string_view name, Fn&& fn) {
  bool found = false;
  for_each_base_barrier<Hardware>([&]<class B>() {
    if (B::traits.name != name) return;
    found = true;
    fn.template operator()<B>();
  });
  return found;
}

/// A barrier over messages, each of which is a flag here.
class OverFlags final : public Contestant {
 public:
  explicit OverFlags(const Setting& setting)
      : plan_(make_plan(Options(as_registered(setting)).get())),
        name_(setting.algorithm),
        memory_(kLine * (1 + std::size_t{setting.participants} * setting.participants)),
        domain_(*new (memory_.data()) Hardware::Domain{}) {
    shape_.participants = setting.participants;
  }

  void serve(Participant& participant, unsigned rank) override {
    with_base_barrier(name_, [&]<class B>() {
      std::byte* const first = memory_.data() + kLine;
      const B barrier(shape_, {first, first, kLine, kLine * shape_.participants});
      Hardware port(domain_, rank, plan_.wait, plan_.shared);
      auto ticket = barrier.ticket(rank);
      participant.serve([&] {
        if (!barrier.wait(port, ticket)) [[unlikely]]
          throw Error(Status::broken, "a wait gave up");
      });
    });
  }

  std::string note() const override { return name_ + "\n" + std::string(plan_.wait.name); }

 private:
  /// One that has a plan: they wait as it does.
  static Setting as_registered(Setting setting) {
    setting.algorithm = "dissemination";
    return setting;
  }

  Plan plan_;
  std::string name_;
  SharedBytes memory_;
  Hardware::Domain& domain_;
  Shape shape_;
};

}  // namespace

bool is_over_messages(std::string_view algorithm) {
  return with_base_barrier(algorithm, []<class B>() {});
}

std::unique_ptr<Contestant> make_muster(const Setting& setting) {
  if (is_over_messages(setting.algorithm)) return std::make_unique<OverFlags>(setting);
  if (setting.through_template) return std::make_unique<ThroughTemplate>(setting);
  return std::make_unique<ThroughC>(setting);
}

SharedBytes::SharedBytes(std::size_t bytes) : data_(nullptr), bytes_(bytes) {
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Status::no_memory, "no " + std::to_string(bytes) + " bytes of shared memory");
  }
  data_ = static_cast<std::byte*>(memory);
}

SharedBytes::~SharedBytes() { munmap(data_, bytes_); }

std::string_view mode_name(Mode mode) { return mode == Mode::threads ? "threads" : "processes"; }

std::vector<std::string> mode_names() {
  return {std::string(mode_name(Mode::threads)), std::string(mode_name(Mode::processes))};
}

Mode parse_mode(std::string_view name) {
  if (name == "threads") return Mode::threads;
  if (name == "processes") return Mode::processes;
  throw Error(Status::unknown_name,
              "no mode \"" + std::string(name) + "\"; there are: threads, processes");
}

}  // namespace muster::bench

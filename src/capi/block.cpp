// SPDX-License-Identifier: BSD-3-Clause
#include "capi/block.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

#include "machine/format.hpp"
#include "memory/pages.hpp"

namespace muster {
namespace {

constexpr std::uint64_t block_magic = 0x4d55535445524231;  // "MUSTERB1"

/// The first bytes of a block. Plain integers of fixed width.
struct Header {
  std::uint64_t magic;  // written last
  std::uint64_t layout;
  std::uint64_t line;
  std::uint64_t description_bytes;
  std::uint64_t description_hash;
  std::uint64_t bytes;
  std::uint64_t paged;
};

[[noreturn]] void throw_foreign(const std::string& what) {
  throw Error(Status::foreign, "no barrier that this version can attach to: " + what);
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes)
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

/// What an attaching process composes itself has to be this.
std::uint64_t hash_of(const Schedule& schedule) {
  const auto part = []<class T>(const std::vector<T>& all) {
    static_assert(std::has_unique_object_representations_v<T>);
    return hash_of(std::as_bytes(std::span(all)));
  };
  return part(std::vector<std::uint64_t>{schedule.cells_per_rank, part(schedule.programs),
                                         part(schedule.steps), part(schedule.cells)});
}

class Writer {
 public:
  void number(std::uint64_t value) { append(&value, sizeof value); }
  void text(const std::string& value) {
    number(value.size());
    append(value.data(), value.size());
  }
  void ranks(const std::vector<unsigned>& values) {
    number(values.size());
    for (const unsigned value : values) {
      const std::uint32_t word = value;
      append(&word, sizeof word);
    }
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(const void* data, std::size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(const std::vector<std::byte>& bytes) : bytes_(bytes) {}
  std::uint64_t number(std::uint64_t most) {
    std::uint64_t value = 0;
    take(&value, sizeof value);
    if (value > most) throw_foreign("its description has a number out of range");
    return value;
  }
  std::string text() {
    std::string value(number(bytes_.size()), '\0');
    take(value.data(), value.size());
    return printable(value);  // explain() shows it
  }
  std::vector<unsigned> ranks() {
    std::vector<unsigned> values(number(bytes_.size() / sizeof(std::uint32_t)));
    for (unsigned& value : values) {
      std::uint32_t word = 0;
      take(&word, sizeof word);
      value = word;
    }
    return values;
  }

 private:
  void take(void* to, std::size_t size) {
    if (bytes_.size() - at_ < size) throw_foreign("its description ends too early");
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }
  const std::vector<std::byte>& bytes_;
  std::size_t at_ = 0;
};

std::vector<std::byte> describe(const Plan& plan) {
  Writer out;
  out.number(plan.participants);
  out.number(plan.shared);
  out.number(plan.split);
  out.number(plan.completes);
  out.number(plan.first_episode);
  out.number(plan.namespaces);
  out.text(plan.asked);
  out.text(plan.algorithm.text());
  out.text(plan.why);
  out.text(plan.dropped);
  out.text(std::string(plan.wait.name));
  out.number(plan.wait.sharers);
  out.number(plan.wait.yield_ns == WaitPolicy::forever ? 1 : 0);
  out.text(plan.wait_why);
  out.number(plan.usable_cpus);
  out.number(plan.numa_nodes);
  out.number(plan.groups.levels.size());
  for (const GroupLevel& level : plan.groups.levels) {
    out.text(level.name);
    out.number(level.groups.size());
    for (const Group& group : level.groups) out.ranks(group.members);
  }
  out.number(hash_of(plan.schedule));
  return out.bytes();
}

Plan read_description(const std::vector<std::byte>& bytes) {
  Reader in(bytes);
  Plan plan;
  plan.participants = static_cast<unsigned>(in.number(participants_max));
  if (plan.participants == 0) throw_foreign("it has no participants");
  plan.shared = in.number(1) != 0;
  plan.split = in.number(1) != 0;
  plan.completes = in.number(1) != 0;
  plan.first_episode = static_cast<Word>(in.number(0xffffffff));
  plan.namespaces = in.number(~std::uint64_t{0});
  plan.asked = in.text();
  plan.algorithm = parse_algorithm(in.text());
  static_cast<void>(traits_of(plan.algorithm.name));
  plan.why = in.text();
  plan.dropped = in.text();
  const std::string wait = in.text();
  const auto sharers = static_cast<unsigned>(in.number(1U << 20));
  plan.wait = WaitPolicy::by_name(wait, sharers, 1, in.number(1) != 0);
  plan.wait_why = in.text();
  plan.usable_cpus = static_cast<unsigned>(in.number(1U << 20));
  plan.numa_nodes = static_cast<unsigned>(in.number(1U << 20));
  plan.groups.levels.resize(in.number(64));
  for (GroupLevel& level : plan.groups.levels) {
    level.name = in.text();
    level.groups.resize(in.number(plan.participants));
    for (Group& group : level.groups) group.members = in.ranks();
  }
  if (!plan.groups.levels.empty()) {
    plan.groups.participants = plan.participants;
    if (const std::string fault = check_tree(plan.groups); !fault.empty()) throw_foreign(fault);
  }
  plan.make_schedule();
  if (in.number(~std::uint64_t{0}) != hash_of(plan.schedule)) {
    throw_foreign("its creator's version composes another schedule for " + plan.algorithm.text());
  }
  return plan;
}

BlockLayout lay_out_with(const Plan& plan, std::size_t description_bytes, std::size_t line,
                         bool paged) {
  const Layout cells = with_barrier<Hardware>(plan.algorithm.name,
                                              [&]<class B>() { return B::layout(plan.shape()); });
  BlockLayout layout;
  layout.line = line;
  layout.pair = 2 * line;
  layout.paged = paged;
  layout.alignment = paged ? page_size() : layout.pair;
  layout.description = round_up(sizeof(Header), line);
  layout.description_bytes = description_bytes;
  layout.domain = round_up(layout.description + description_bytes, layout.pair);
  layout.global = layout.domain + round_up(sizeof(Hardware::Domain), layout.pair);
  layout.ranks = round_up(layout.global + cells.global_cells * layout.pair, layout.alignment);
  layout.rank_stride = round_up(layout.pair + cells.cells_per_rank * line, layout.alignment);
  layout.words = layout.ranks + plan.participants * layout.rank_stride;
  layout.bytes = layout.words + round_up(cells.words * sizeof(Word), layout.alignment);
  return layout;
}

}  // namespace

BlockLayout Block::lay_out(const Plan& plan) {
  return lay_out_with(plan, describe(plan).size(), line_size(), plan.numa_nodes > 1);
}

Block Block::create(std::byte* memory, const BlockLayout& layout, const Plan& plan) {
  const std::vector<std::byte> description = describe(plan);
  std::memcpy(memory + layout.description, description.data(), description.size());
  auto* header = new (memory) Header{};
  header->layout = layout_hash;
  header->line = layout.line;
  header->description_bytes = layout.description_bytes;
  header->description_hash = hash_of(description);
  header->bytes = layout.bytes;
  header->paged = layout.paged ? 1 : 0;
  return Block(memory, layout);
}

void Block::open() const {
  auto* header = std::launder(reinterpret_cast<Header*>(memory_));
  // Release: whoever sees the magic (acquire, in attach) sees the rest.
  std::atomic_ref<std::uint64_t>(header->magic).store(block_magic, std::memory_order_release);
}

Block Block::attach(std::byte* memory, std::size_t available, Plan& plan) {
  if (available < sizeof(Header)) throw_foreign("it is too small");
  auto* shared = std::launder(reinterpret_cast<Header*>(memory));
  if (std::atomic_ref<std::uint64_t>(shared->magic).load(std::memory_order_acquire) !=
      block_magic) {
    throw_foreign("no magic number (is its creator still at work, or is it destroyed?)");
  }
  Header header{};
  std::memcpy(&header, memory, sizeof header);
  if (header.layout != layout_hash) throw_foreign("it was made by another version of the library");
  if (header.line < 64 || header.line > 4096 || (header.line & (header.line - 1)) != 0 ||
      header.paged > 1) {
    throw_foreign("its header is damaged");
  }
  const std::size_t description = round_up(sizeof(Header), header.line);
  if (description > available || header.description_bytes > available - description) {
    throw_foreign("its description is longer than the memory");
  }
  std::vector<std::byte> bytes(header.description_bytes);
  std::copy_n(memory + description, bytes.size(), bytes.begin());
  if (hash_of(bytes) != header.description_hash) throw_foreign("its description is damaged");
  try {
    plan = read_description(bytes);
  } catch (const Error& error) {
    if (error.code() == Status::foreign) throw;
    throw_foreign(error.what());
  }
  const BlockLayout layout = lay_out_with(plan, bytes.size(), header.line, header.paged != 0);
  if (layout.bytes != header.bytes || layout.bytes > available) {
    throw_foreign(format("it has {} bytes where {} are needed and {} are there", header.bytes,
                         layout.bytes, available));
  }
  return Block(memory, layout);
}

void Block::retire() const {
  auto* header = std::launder(reinterpret_cast<Header*>(memory_));
  std::atomic_ref<std::uint64_t>(header->magic).store(0, std::memory_order_relaxed);
}

Hardware::Cells Block::cells() const {
  return {memory_ + layout_.global,
          memory_ + layout_.ranks + layout_.pair,
          layout_.line,
          layout_.rank_stride,
          layout_.pair,
          memory_ + layout_.words};
}

}  // namespace muster

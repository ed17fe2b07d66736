// SPDX-License-Identifier: BSD-3-Clause
#include "capi/failure.hpp"
#include "capi/handles.hpp"

using namespace muster;

namespace {

int make_segment(muster_segment** segment, auto make) {
  return guarded([&] {
    if (segment == nullptr) throw Error(Status::invalid, "no place for the segment's handle");
    *segment = new muster_segment(make());
  });
}

}  // namespace

int muster_segment_create(muster_segment** segment, size_t bytes) {
  return make_segment(segment, [&] { return Segment::create(bytes, layout_hash); });
}

int muster_segment_attach(muster_segment** segment, int fd) {
  return make_segment(segment, [&] { return Segment::attach(fd, layout_hash); });
}

int muster_segment_attach_name(muster_segment** segment, const char* name, int64_t timeout_ns) {
  return make_segment(segment, [&] {
    const int fd = receive_fd(name != nullptr ? name : "", timeout_ns);
    const FdCloser closer{fd};
    return Segment::attach(fd, layout_hash);
  });
}

int muster_segment_publish(muster_segment* segment, const char* name) {
  return guarded([&] {
    if (segment == nullptr) throw Error(Status::invalid, "no segment");
    const std::scoped_lock lock(segment->mutex);
    segment->server =
        std::make_unique<FdServer>(name != nullptr ? name : "", segment->segment->fd());
  });
}

int muster_segment_fd(const muster_segment* segment) {
  return segment != nullptr ? segment->segment->fd() : -1;
}

void* muster_segment_data(const muster_segment* segment, size_t* bytes) {
  if (segment == nullptr) return nullptr;
  if (bytes != nullptr) *bytes = segment->segment->size();
  return segment->segment->data();
}

void muster_segment_destroy(muster_segment* segment) {
  const NoCancellation whole;
  delete segment;
}

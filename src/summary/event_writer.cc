#include "summary/event_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "summary/event_record.h"

namespace paceline {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "host";
}

}  // namespace

EventWriter::EventWriter(const std::string& folder, std::int64_t first_step, const Disk& disk)
    : disk_(disk),
      path_(fmt::format("{}/events.out.tfevents.{:010.0f}.{}.{}", folder, seconds_since_1970(),
                        host(), getpid())) {
  disk_.make_folder(folder);
  file_ = FileDescriptor(disk_.create(path_));
  add({.version = "brain.Event:2"});
  add({.step = first_step + 1, .start = true});
}

void EventWriter::add(SummaryEvent event) {
  event.wall_time = seconds_since_1970();
  const std::string record = make_record(event.encode());
  disk_.write_at(file_.get(), path_, std::as_bytes(std::span(record)), size_);
  size_ += record.size();
}

}  // namespace paceline

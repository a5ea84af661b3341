// A moment in a device's queue.
#pragma once

#include <cstdint>

namespace paceline {

/// Everything that a device was asked for before the event was recorded is done once the event has
/// happened. An empty event has always happened: that of a device that computes on the host.
class Event {
 public:
  /// The queue that events are recorded in. It must outlive them.
  class Source {
   public:
    /// Returns when the event of this ticket has happened. Throws what a kernel threw before it.
    virtual void synchronize(std::uint64_t ticket) = 0;

   protected:
    ~Source() = default;
  };

  Event() = default;
  Event(Source& source, std::uint64_t ticket) : source_(&source), ticket_(ticket) {}

  bool empty() const { return source_ == nullptr; }
  /// The host waits until the event has happened.
  void synchronize() const {
    if (source_ != nullptr) source_->synchronize(ticket_);
  }
  const Source* source() const { return source_; }

 private:
  Source* source_ = nullptr;
  std::uint64_t ticket_ = 0;
};

}  // namespace paceline

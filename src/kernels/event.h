// A moment in a device's queue.
#pragma once

#include <cstdint>

namespace paceline {

/// The event has happened once everything requested from the device before its recording is done. A
/// device that computes on the host returns empty events, which count as having happened.
class Event {
 public:
  /// The queue in which events are recorded. It must outlive the events.
  class Source {
   public:
    /// Returns once the event of this ticket has happened. Throws what a kernel threw before it.
    virtual void synchronize(std::uint64_t ticket) = 0;

   protected:
    ~Source() = default;
  };

  Event() = default;
  Event(Source& source, std::uint64_t ticket) : source_(&source), ticket_(ticket) {}

  bool empty() const { return source_ == nullptr; }
  /// Makes the host wait until the event has happened.
  void synchronize() const {
    if (source_ != nullptr) source_->synchronize(ticket_);
  }
  const Source* source() const { return source_; }

 private:
  Source* source_ = nullptr;
  std::uint64_t ticket_ = 0;
};

}  // namespace paceline

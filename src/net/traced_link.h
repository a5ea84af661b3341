// A link whose frames are seen on a timeline.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/link.h"
#include "trace/timeline.h"

namespace paceline {

/// What a link does, with an event for each frame: "send NAME", while it is handed to the link, and
/// "receive NAME", from its header until it was dealt with.
class TracedLink : public Link {
 public:
  /// How frames of a type are called, for types below this.
  using NameOfType = std::string (*)(std::uint16_t type);
  static constexpr std::uint16_t kMostTypes = 32;

  /// `timeline` must outlive the link.
  TracedLink(std::unique_ptr<Link> link, Timeline& timeline, NameOfType name_of_type);
  ~TracedLink() override;

  std::string kind() const override { return link_->kind(); }
  std::string listen(const std::string& address, Acceptor acceptor) override;
  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override;
  bool help() override { return link_->help(); }
  void set_spinning(bool spinning) override { link_->set_spinning(spinning); }

 private:
  class Sender;
  class TracedReceiver;
  using Labels = std::vector<const TimelineLabel*>;  // by type, the last for all others

  Labels labels(const std::string& verb, const std::string& peer);
  Receiver* trace(Receiver& receiver, const std::string& peer);

  Timeline& timeline_;
  const NameOfType name_of_type_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<TracedReceiver>> receivers_;
  std::unique_ptr<Link> link_;  // last: its threads call the receivers
};

}  // namespace paceline

// A link that is slower by a given time per frame: for tests of where a step's time goes.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "net/link.h"

namespace paceline {

/// Each frame that comes to a receiver of this link is held back on `clock` before on_frame.
class SlowLink : public Link {
 public:
  /// `clock` must outlive the link.
  SlowLink(std::unique_ptr<Link> link, Clock& clock, Duration added);
  ~SlowLink() override;

  std::string kind() const override { return link_->kind(); }
  std::string listen(const std::string& address, Acceptor acceptor) override;
  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline deadline) override;
  bool help() override { return link_->help(); }
  void set_spinning(bool spinning) override { link_->set_spinning(spinning); }

 private:
  class SlowReceiver;
  Receiver* slow(Receiver& receiver);

  Clock& clock_;
  const Duration added_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<SlowReceiver>> receivers_;
  std::unique_ptr<Link> link_;
};

}  // namespace paceline

#include "net/slow_link.h"

namespace paceline {

class SlowLink::SlowReceiver : public Receiver {
 public:
  SlowReceiver(Receiver& receiver, Clock& clock, Duration added)
      : receiver_(receiver), clock_(clock), added_(added) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    return receiver_.place_payload(header);
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    clock_.sleep_until(clock_.now() + added_);
    receiver_.on_frame(header, payload);
  }
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override {
    receiver_.on_shared(id, std::move(memory));
  }
  void on_closed(const Error& error) override { receiver_.on_closed(error); }

 private:
  Receiver& receiver_;
  Clock& clock_;
  const Duration added_;
};

SlowLink::SlowLink(std::unique_ptr<Link> link, Clock& clock, Duration added)
    : clock_(clock), added_(added), link_(std::move(link)) {}

SlowLink::~SlowLink() = default;

Receiver* SlowLink::slow(Receiver& receiver) {
  std::lock_guard lock(mutex_);
  receivers_.push_back(std::make_unique<SlowReceiver>(receiver, clock_, added_));
  return receivers_.back().get();
}

std::string SlowLink::listen(const std::string& address, Acceptor acceptor) {
  return link_->listen(
      address, [this, acceptor = std::move(acceptor)](std::shared_ptr<Connection> connection) {
        return slow(*acceptor(std::move(connection)));
      });
}

std::shared_ptr<Connection> SlowLink::connect(const std::string& address, Receiver& receiver,
                                              Deadline deadline) {
  return link_->connect(address, *slow(receiver), deadline);
}

}  // namespace paceline

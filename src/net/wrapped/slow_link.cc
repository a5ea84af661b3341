#include "net/wrapped/slow_link.h"

#include "net/wrapped/wrapped_link.h"

namespace paceline {
namespace {

class SlowReceiver : public ForwardingReceiver {
 public:
  SlowReceiver(Receiver& receiver, Clock& clock, Duration added)
      : ForwardingReceiver(receiver), clock_(clock), added_(added) {}

  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    clock_.sleep_until(clock_.now() + added_);
    ForwardingReceiver::on_frame(header, payload);
  }

 private:
  Clock& clock_;
  const Duration added_;
};

}  // namespace

std::unique_ptr<Link> slow_link(std::unique_ptr<Link> link, Clock& clock, Duration added) {
  return std::make_unique<WrappedLink>(
      std::move(link), LinkWrapping{.receiver = [&clock, added](Receiver& receiver, const auto&) {
        return std::make_unique<SlowReceiver>(receiver, clock, added);
      }});
}

}  // namespace paceline

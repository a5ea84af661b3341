#include <atomic>
#include <thread>

#include "base/buffer.h"
#include "bench/channel.h"
#include "bench/spin.h"
#include "net/inproc/inproc_hub.h"
#include "net/link.h"

namespace paceline::bench {
namespace {

/// Counts pieces; sends each back when told to.
class PieceCounter : public Receiver {
 public:
  explicit PieceCounter(std::size_t piece_bytes) : room_(piece_bytes) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    return room_.span().first(header.payload_bytes);
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    if (reply_) reply_->send(header, payload);
    pieces_.fetch_add(1, std::memory_order_release);
    pieces_.notify_all();
  }
  void on_closed(const Error&) override { reply_.reset(); }

  std::uint32_t pieces() const { return pieces_.load(std::memory_order_acquire); }
  /// Returns when another piece than the `seen` ones may have come.
  void wait_past(std::uint32_t seen) const { pieces_.wait(seen, std::memory_order_acquire); }
  void reply_to(std::shared_ptr<Connection> connection) { reply_ = std::move(connection); }

 private:
  Buffer room_;
  std::atomic<std::uint32_t> pieces_{0};
  std::shared_ptr<Connection> reply_;
};

class LinkChannel : public Channel {
 public:
  LinkChannel(const std::string& kind, const ChannelOptions& options)
      : options_(options),
        payload_(options.message.piece_bytes),
        near_(options.message.piece_bytes),
        far_(options.message.piece_bytes) {
    connect(kind);
    if (options.waiting == Waiting::kSleeping) return;
    near_link_->set_spinning(true);
    far_link_->set_spinning(true);
    far_thread_ = std::jthread([this](const std::stop_token& stop) {
      spin_until([&] { return far_link_->help(), stop.stop_requested(); });
    });
  }

  void exchange() override {
    const PieceCounter& counter = options_.echo ? near_ : far_;
    const auto pieces = std::uint32_t(options_.message.pieces);
    const std::uint32_t wanted = counter.pieces() + pieces;
    for (std::uint32_t i = 0; i < pieces; ++i) connection_->send({}, payload_.span());
    wait_for(counter, wanted);
  }

 private:
  void connect(const std::string& kind) {
    LinkOptions link;
    link.hub = std::make_shared<InprocHub>();
    far_link_ = make_link(kind, link);
    near_link_ = make_link(kind, link);
    std::atomic<bool> accepted{false};
    const std::string address = far_link_->listen(kind == "inproc" ? "far:0" : "127.0.0.1:0",
                                                  [&](std::shared_ptr<Connection> connection) {
                                                    if (options_.echo)
                                                      far_.reply_to(std::move(connection));
                                                    accepted = true;
                                                    accepted.notify_all();
                                                    return &far_;
                                                  });
    connection_ = near_link_->connect(address, near_, Deadline::after(std::chrono::seconds(10)));
    accepted.wait(false);
  }

  // The count wraps around.
  void wait_for(const PieceCounter& counter, std::uint32_t wanted) {
    const auto missing = [&] { return std::int32_t(wanted - counter.pieces()) > 0; };
    if (options_.waiting == Waiting::kSpinning) {
      spin_until([&] { return !missing() || (near_link_->help(), !missing()); });
      return;
    }
    for (std::uint32_t seen = counter.pieces(); missing(); seen = counter.pieces()) {
      counter.wait_past(seen);
    }
  }

  const ChannelOptions options_;
  const Buffer payload_;
  PieceCounter near_, far_;
  std::unique_ptr<Link> far_link_, near_link_;
  std::shared_ptr<Connection> connection_;
  std::jthread far_thread_;
};

}  // namespace

std::unique_ptr<Channel> make_link_channel(const std::string& kind, const ChannelOptions& options) {
  return std::make_unique<LinkChannel>(kind, options);
}

}  // namespace paceline::bench

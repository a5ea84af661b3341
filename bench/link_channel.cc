#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "base/buffer.h"
#include "bench/channel.h"
#include "bench/peer_process.h"
#include "bench/shared_word.h"
#include "net/inproc/inproc_link.h"
#include "net/link.h"
#include "net/tls/link_security.h"

namespace paceline::bench {
namespace {

constexpr std::chrono::seconds kMeetingTimeout{10};

using Hub = std::shared_ptr<InprocHub>;

/// Returns one key for both ends; the far end is a process that is forked later.
std::shared_ptr<const LinkSecurity> security() {
  static const auto made = [] {
    auto security = std::make_shared<LinkSecurity>();
    security->tls = Tls::kAlways;
    security->key = SecretKey::make();
    return security;
  }();
  return made;
}

/// Makes a link. Only inproc links need the hub, through which they reach each other.
std::unique_ptr<Link> link_on(const Hub& hub, const std::string& kind) {
  if (kind == "tls") {
    LinkOptions options;
    options.security = security();
    return make_link("tcp", options);
  }
  return kind == "inproc" ? make_inproc_link({}, hub) : make_link(kind, {});
}

/// Sends back the first pieces, as many as reply() says, and counts the pieces after them.
class PieceCounter : public Receiver {
 public:
  static constexpr std::uint32_t kAll = ~std::uint32_t{0};

  PieceCounter(const ChannelOptions& options, SharedWord& pieces)
      : room_(options.message.piece_bytes), pieces_(pieces) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    return room_.span().first(header.payload_bytes);
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    const std::uint32_t replies =
        replies_.load(std::memory_order_acquire);  // read before connection_
    if (replies == 0) return pieces_.set(pieces_.get() + 1);
    if (replies != kAll) replies_.store(replies - 1, std::memory_order_relaxed);
    connection_->send(header, payload);
  }
  void on_closed(const Error&) override { connection_.reset(); }
  /// Makes the counter send this many pieces back. Call it before the pieces are sent.
  void reply(const std::shared_ptr<Connection>& connection, std::uint32_t times) {
    connection_ = connection;
    replies_.store(times, std::memory_order_release);
  }

 private:
  Buffer room_;
  SharedWord& pieces_;
  std::shared_ptr<Connection> connection_;
  std::atomic<std::uint32_t> replies_{0};
};

/// The memory that both ends see.
struct Meeting {
  SharedWord pieces, listens;
  char address[128] = {};
};

/// Listens. Threads of its link count or echo the pieces that arrive.
class LinkFarEnd {
 public:
  LinkFarEnd(const std::string& kind, const Hub& hub, const ChannelOptions& options,
             Meeting& meeting)
      : counter_(options, meeting.pieces), link_(link_on(hub, kind)) {
    const std::string address =
        link_->listen(kind == "inproc" ? "far:0" : "127.0.0.1:0",
                      [this, echo = options.echo](const std::shared_ptr<Connection>& connection) {
                        if (echo) counter_.reply(connection, PieceCounter::kAll);
                        return &counter_;
                      });
    std::strncpy(meeting.address, address.c_str(), sizeof meeting.address - 1);
    meeting.listens.set(1);
  }

 private:
  PieceCounter counter_;
  const std::unique_ptr<Link> link_;
};

class LinkChannel : public Channel {
 public:
  LinkChannel(const std::string& kind, const ChannelOptions& options)
      : options_(options),
        payload_(options.message.piece_bytes),
        near_(options, *echoed_),
        counted_(options.echo ? *echoed_ : meeting_->pieces) {
    const auto hub = std::make_shared<InprocHub>();
    security();
    start_far_end(kind, hub);
    link_ = link_on(hub, kind);
    connection_ = link_->connect(meeting_->address, near_, Deadline::after(kMeetingTimeout));
  }

  using Channel::exchange;
  void exchange(std::uint32_t times) override {
    const auto pieces = std::uint32_t(options_.message.pieces);
    const std::uint32_t sent = options_.echo ? pieces : pieces * times;
    const std::uint32_t wanted = counted_.get() + sent;
    if (options_.echo) near_.reply(connection_, pieces * (times - 1));
    for (std::uint32_t i = 0; i < sent; ++i) connection_->send({}, payload_.span());
    counted_.wait_for(wanted);
  }
  /// The threads of an inproc link are not paused, since they sleep while they wait.
  void pause() override {
    if (process_) process_->pause();
  }
  void resume() override {
    if (process_) process_->resume();
  }

 private:
  void start_far_end(const std::string& kind, const Hub& hub) {
    if (kind == "inproc") {
      start_far_thread(kind, hub);
    } else {
      start_far_process(kind, hub);
    }
    const Deadline deadline = Deadline::after(kMeetingTimeout);
    while (meeting_->listens.get() == 0) {
      if (process_) process_->check();
      if (deadline.passed()) throw Error(ErrorCode::kUnavailable, "[bench] no far end in 10 s");
      std::this_thread::yield();
    }
  }

  // The threads of a link run on the cores of the thread that makes the link. So this link is made
  // by a thread that has left the near end's core.
  void start_far_thread(const std::string& kind, const Hub& hub) {
    const std::jthread thread([&] {
      if (options_.near != nullptr) options_.near->leave();
      far_end_.emplace(kind, hub, options_, *meeting_);
    });
  }

  void start_far_process(const std::string& kind, const Hub& hub) {
    const auto serve = [&] {
      const LinkFarEnd far(kind, hub, options_, *meeting_);
      while (true) ::pause();
    };
    process_.emplace(serve, options_.near);
  }

  const ChannelOptions options_;
  const Buffer payload_;
  const SharedObject<Meeting> meeting_;
  const SharedObject<SharedWord> echoed_;
  PieceCounter near_;
  SharedWord& counted_;
  std::optional<PeerProcess> process_;
  std::optional<LinkFarEnd> far_end_;
  std::unique_ptr<Link> link_;
  std::shared_ptr<Connection> connection_;
};

}  // namespace

std::unique_ptr<Channel> make_link_channel(const std::string& kind, const ChannelOptions& options) {
  return std::make_unique<LinkChannel>(kind, options);
}

}  // namespace paceline::bench

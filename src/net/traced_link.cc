#include "net/traced_link.h"

#include <algorithm>
#include <utility>

namespace paceline {

class TracedLink::Sender : public Connection {
 public:
  Sender(std::shared_ptr<Connection> connection, Timeline& timeline, Labels labels)
      : connection_(std::move(connection)), timeline_(timeline), labels_(std::move(labels)) {}

  void send(const FrameHeader& header, std::span<const std::byte> payload, void (*sent)(void*),
            void* context) override {
    const TimelineScope scope(&timeline_, labels_[std::min(header.type, kMostTypes)],
                              std::int64_t(payload.size()));
    connection_->send(header, payload, sent, context);
  }
  void close(Deadline deadline) override { connection_->close(deadline); }
  bool can_share() const override { return connection_->can_share(); }
  void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override {
    connection_->share(id, std::move(memory));
  }
  bool idle() const override { return connection_->idle(); }
  std::string peer() const override { return connection_->peer(); }
  const Traffic& traffic() const override { return connection_->traffic(); }

 private:
  const std::shared_ptr<Connection> connection_;
  Timeline& timeline_;
  const Labels labels_;
};

class TracedLink::TracedReceiver : public Receiver {
 public:
  TracedReceiver(Receiver& receiver, Timeline& timeline, Labels labels)
      : receiver_(receiver), timeline_(timeline), labels_(std::move(labels)) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    began_ = timeline_.recording() ? std::chrono::steady_clock::now() : TimePoint();
    return receiver_.place_payload(header);
  }
  // What it is told by the frame may begin or end the recording: half a frame is not shown.
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    if (payload.empty() && timeline_.recording()) began_ = std::chrono::steady_clock::now();
    receiver_.on_frame(header, payload);
    const TimePoint began = std::exchange(began_, TimePoint());
    if (began == TimePoint() || !timeline_.recording()) return;
    timeline_.add(labels_[std::min(header.type, kMostTypes)], began,
                  std::chrono::steady_clock::now(), header.payload_bytes);
  }
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override {
    receiver_.on_shared(id, std::move(memory));
  }
  void on_closed(const Error& error) override { receiver_.on_closed(error); }

 private:
  Receiver& receiver_;
  Timeline& timeline_;
  const Labels labels_;
  TimePoint began_{};
};

TracedLink::TracedLink(std::unique_ptr<Link> link, Timeline& timeline, NameOfType name_of_type)
    : timeline_(timeline), name_of_type_(name_of_type), link_(std::move(link)) {}

TracedLink::~TracedLink() = default;

TracedLink::Labels TracedLink::labels(const std::string& verb, const std::string& peer) {
  Labels labels;
  for (std::uint16_t type = 0; type <= kMostTypes; ++type) {
    const std::string name = type < kMostTypes ? name_of_type_(type) : "frame";
    labels.push_back(timeline_.label({verb + " " + name, "frame", {{"peer", peer}}}));
  }
  return labels;
}

Receiver* TracedLink::trace(Receiver& receiver, const std::string& peer) {
  Labels receive = labels("receive", peer);
  const std::lock_guard lock(mutex_);
  receivers_.push_back(std::make_unique<TracedReceiver>(receiver, timeline_, std::move(receive)));
  return receivers_.back().get();
}

std::string TracedLink::listen(const std::string& address, Acceptor acceptor) {
  return link_->listen(address, [this, acceptor = std::move(acceptor)](
                                    std::shared_ptr<Connection> connection) {
    const std::string peer = connection->peer();
    return trace(
        *acceptor(std::make_shared<Sender>(std::move(connection), timeline_, labels("send", peer))),
        peer);
  });
}

std::shared_ptr<Connection> TracedLink::connect(const std::string& address, Receiver& receiver,
                                                Deadline deadline) {
  std::shared_ptr<Connection> connection =
      link_->connect(address, *trace(receiver, address), deadline);
  return std::make_shared<Sender>(std::move(connection), timeline_, labels("send", address));
}

}  // namespace paceline

#include "net/wrapped/traced_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "net/wrapped/wrapped_link.h"

namespace paceline {
namespace {

/// Labels the events of one peer's frames.
class FrameLabels {
 public:
  FrameLabels(Timeline& timeline, NameOfFrameType name_of_type, const std::string& verb,
              const std::string& peer) {
    for (std::uint16_t type = 0; type <= kMostFrameTypes; ++type) {
      const std::string name = type < kMostFrameTypes ? name_of_type(type) : "frame";
      labels_.push_back(
          timeline.label({fmt::format("{} {}", verb, name), "frame", {{"peer", peer}}}));
    }
  }
  const TimelineLabel* operator[](std::uint16_t type) const {
    return labels_[std::min(type, kMostFrameTypes)];
  }

 private:
  std::vector<const TimelineLabel*> labels_;  // by type; the last label is for all others
};

FrameMark mark_of(const FrameHeader& header) {
  return {.piece = header.id, .offset = header.offset, .step = header.step};
}

class TracedConnection : public ForwardingConnection {
 public:
  TracedConnection(std::shared_ptr<Connection> connection, Timeline& timeline, FrameLabels labels)
      : ForwardingConnection(std::move(connection)),
        timeline_(timeline),
        labels_(std::move(labels)) {}

  void send(const FrameHeader& header, std::span<const std::byte> payload, void (*sent)(void*),
            void* context) override {
    const TimelineScope scope(&timeline_, labels_[header.type], std::int64_t(payload.size()),
                              mark_of(header));
    ForwardingConnection::send(header, payload, sent, context);
  }

 private:
  Timeline& timeline_;
  const FrameLabels labels_;
};

class TracedReceiver : public ForwardingReceiver {
 public:
  TracedReceiver(Receiver& receiver, Timeline& timeline, FrameLabels labels)
      : ForwardingReceiver(receiver), timeline_(timeline), labels_(std::move(labels)) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    began_ = timeline_.recording() ? std::chrono::steady_clock::now() : TimePoint();
    return ForwardingReceiver::place_payload(header);
  }
  // If the frame's own handling begins or ends the recording, the timeline does not show the frame.
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    if (payload.empty() && timeline_.recording()) began_ = std::chrono::steady_clock::now();
    ForwardingReceiver::on_frame(header, payload);
    const TimePoint began = std::exchange(began_, TimePoint());
    if (began == TimePoint() || !timeline_.recording()) return;
    timeline_.add(labels_[header.type], began, std::chrono::steady_clock::now(),
                  header.payload_bytes, mark_of(header));
  }

 private:
  Timeline& timeline_;
  const FrameLabels labels_;
  TimePoint began_{};
};

}  // namespace

std::unique_ptr<Link> traced_link(std::unique_ptr<Link> link, Timeline& timeline,
                                  NameOfFrameType name_of_type) {
  LinkWrapping wrapping;
  wrapping.receiver = [&timeline, name_of_type](Receiver& receiver, const std::string& peer) {
    return std::make_unique<TracedReceiver>(receiver, timeline,
                                            FrameLabels(timeline, name_of_type, "receive", peer));
  };
  wrapping.connection = [&timeline, name_of_type](std::shared_ptr<Connection> connection,
                                                  const std::string& peer) {
    return std::make_shared<TracedConnection>(std::move(connection), timeline,
                                              FrameLabels(timeline, name_of_type, "send", peer));
  };
  return std::make_unique<WrappedLink>(std::move(link), std::move(wrapping));
}

}  // namespace paceline

#include "trace/frame_trips.h"

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

namespace paceline {
namespace {

// What identifies a frame: its sender, its receiver, its message, and the numbers of its header.
using FrameKey =
    std::tuple<std::size_t, std::size_t, std::size_t, std::int64_t, std::uint64_t, std::uint64_t>;

struct FrameKeyHash {
  std::size_t operator()(const FrameKey& key) const {
    std::size_t hash = 0;
    std::apply(
        [&](auto... fields) {
          ((hash = (hash ^ std::size_t(fields)) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29), ...);
        },
        key);
    return hash;
  }
};

// The peer and the message of the frames with a label. A message has the same number in all tasks.
struct FrameKind {
  bool is_known = false;
  std::size_t peer = 0, message = 0;
};

class FrameKinds {
 public:
  explicit FrameKinds(std::span<const TaskTimeline> tasks) : tasks_(tasks) {
    for (std::size_t i = 0; i < tasks.size(); ++i) numbers_[tasks[i].task] = i;
  }
  std::vector<std::vector<FrameKind>> of(std::string_view verb) {
    std::vector<std::vector<FrameKind>> kinds(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      for (const TimelineLabel& label : tasks_[i].labels) kinds[i].push_back(kind(label, verb));
    }
    return kinds;
  }

 private:
  FrameKind kind(const TimelineLabel& label, std::string_view verb) {
    const std::string_view message = message_of(label, verb);
    const auto peer = numbers_.find(argument_of(label, "peer"));
    if (message.empty() || peer == numbers_.end()) return {};
    return {true, peer->second, messages_.emplace(message, messages_.size()).first->second};
  }

  const std::span<const TaskTimeline> tasks_;
  std::map<std::string, std::size_t, std::less<>> numbers_;
  std::map<std::string, std::size_t, std::less<>> messages_;
};

}  // namespace

std::string_view message_of(const TimelineLabel& label, std::string_view verb) {
  const std::string_view name = label.name;
  if (label.category != "frame" || !name.starts_with(verb)) return "";
  return name.size() > verb.size() && name[verb.size()] == ' ' ? name.substr(verb.size() + 1) : "";
}

std::vector<FrameTrip> match_frames(std::span<const TaskTimeline> tasks) {
  FrameKinds kinds(tasks);
  const auto sends = kinds.of("send"), receives = kinds.of("receive");
  std::unordered_map<FrameKey, std::deque<SpanPlace>, FrameKeyHash> on_the_way;
  const auto for_frames = [&](const auto& kinds_of_labels, auto&& call) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      for (std::size_t k = 0; k < tasks[i].spans.size(); ++k) {
        const TimelineSpan& span = tasks[i].spans[k];
        const FrameKind& kind = kinds_of_labels[i][span.label];
        if (kind.is_known && span.frame.piece >= 0) call(SpanPlace{i, k}, kind, span.frame);
      }
    }
  };
  for_frames(sends, [&](SpanPlace at, const FrameKind& kind, const FrameMark& frame) {
    on_the_way[{at.task, kind.peer, kind.message, frame.piece, frame.offset, frame.step}].push_back(
        at);
  });
  std::vector<FrameTrip> trips;
  for_frames(receives, [&](SpanPlace at, const FrameKind& kind, const FrameMark& frame) {
    const auto found =
        on_the_way.find({kind.peer, at.task, kind.message, frame.piece, frame.offset, frame.step});
    if (found == on_the_way.end() || found->second.empty()) return;
    trips.push_back({found->second.front(), at});
    found->second.pop_front();
  });
  return trips;
}

}  // namespace paceline

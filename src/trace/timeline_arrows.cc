#include "trace/timeline_arrows.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace paceline {
namespace {

constexpr std::array<std::string_view, 2> kPushes = {"chunk", "contribution"};
constexpr std::array<std::string_view, 4> kPulls = {"values", "row_values", "taken", "copied"};
constexpr std::array<std::string_view, 5> kAllReduce = {"partial_sum", "in_place",
                                                        "contributed_rows", "sums_whole", "commit"};

bool is_one_of(std::span<const std::string_view> messages, std::string_view message) {
  return std::ranges::find(messages, message) != messages.end();
}

class Arrows {
 public:
  Arrows(std::span<const TaskTimeline> tasks, std::span<const FrameTrip> trips) : tasks_(tasks) {
    for (std::size_t i = 0; i < tasks.size(); ++i) sort_spans(i);
    for (const FrameTrip& trip : trips) sort_trip(trip);
    for (auto& [to, pulls] : pulls_) {
      std::ranges::sort(pulls, {}, [&](const FrameTrip& trip) { return span(trip.sent).begin; });
    }
  }
  std::vector<TimelineArrow> take() {
    for (const auto& [piece, push] : pushes_) add_push(push);
    return std::move(arrows_);
  }

 private:
  const TimelineSpan& span(SpanPlace place) const { return tasks_[place.task].spans[place.span]; }

  void sort_spans(std::size_t i) {
    const TaskTimeline& task = tasks_[i];
    for (std::size_t k = 0; k < task.spans.size(); ++k) {
      const TimelineLabel& label = task.label_of(task.spans[k]);
      if (label.category == "rule") {
        rules_[{i, std::string(argument_of(label, "piece"))}].push_back({i, k});
      } else if (label.category == "need") {
        needs_[{i, std::string(argument_of(label, "variable"))}].push_back({i, k});
      }
    }
  }
  void sort_trip(const FrameTrip& trip) {
    const TaskTimeline& sender = tasks_[trip.sent.task];
    const TimelineSpan& sent = span(trip.sent);
    const std::string_view message = message_of(sender.label_of(sent), "send");
    if (is_one_of(kPushes, message)) {
      // The last frame of a piece comes last.
      pushes_[{trip.sent.task, trip.received.task, sent.frame.piece, sent.frame.step}] = trip;
    } else if (is_one_of(kPulls, message)) {
      pulls_[{trip.sent.task, trip.received.task, sent.frame.piece}].push_back(trip);
    } else if (is_one_of(kAllReduce, message)) {
      arrows_.push_back({std::string(message), {begin_of(trip.sent), begin_of(trip.received)}});
      put_in_order(arrows_.back());
    }
  }
  TimelineArrow::End begin_of(SpanPlace place) const { return {place, span(place).begin}; }

  void add_push(const FrameTrip& push) {
    const SpanPlace* const rule = rule_of(push);
    if (rule == nullptr) return;
    TimelineArrow arrow{"push", {begin_of(push.sent), begin_of(*rule)}};
    if (const FrameTrip* const pull = pull_after(push, *rule)) {
      arrow.ends.push_back(begin_of(pull->received));
      const std::string_view variable =
          argument_of(tasks_[rule->task].label_of(span(*rule)), "variable");
      add_need(*pull, std::string(variable), arrow);
    }
    put_in_order(arrow);
    arrows_.push_back(std::move(arrow));
  }
  // The one within the handling of the frame; else the next one of the piece.
  const SpanPlace* rule_of(const FrameTrip& push) const {
    const TimelineSpan& received = span(push.received);
    const auto rules = rules_.find({push.received.task, std::to_string(received.frame.piece)});
    if (rules == rules_.end()) return nullptr;
    const auto first = std::ranges::lower_bound(rules->second, received.begin, {},
                                                [&](SpanPlace place) { return span(place).begin; });
    for (auto rule = first; rule != rules->second.end(); ++rule) {
      if (span(*rule).begin > received.end) break;
      if (span(*rule).thread == received.thread) return &*rule;
    }
    return first == rules->second.end() ? nullptr : &*first;
  }
  const FrameTrip* pull_after(const FrameTrip& push, SpanPlace rule) const {
    const auto pulls =
        pulls_.find({push.received.task, push.sent.task, span(push.received).frame.piece});
    if (pulls == pulls_.end()) return nullptr;
    const auto pull =
        std::ranges::lower_bound(pulls->second, span(rule).begin, {},
                                 [&](const FrameTrip& trip) { return span(trip.sent).begin; });
    return pull == pulls->second.end() ? nullptr : &*pull;
  }
  void add_need(const FrameTrip& pull, const std::string& variable, TimelineArrow& arrow) const {
    const auto needs = needs_.find({pull.received.task, variable});
    if (needs == needs_.end()) return;
    const std::int64_t there = span(pull.received).begin;
    const auto need = std::ranges::upper_bound(needs->second, there, {},
                                               [&](SpanPlace place) { return span(place).end; });
    if (need == needs->second.end()) return;
    arrow.ends.push_back({*need, std::max(span(*need).begin, there)});
  }
  // Clocks that are not quite in step, or a match that is none, must not turn an arrow round.
  static void put_in_order(TimelineArrow& arrow) {
    for (std::size_t i = 1; i < arrow.ends.size(); ++i) {
      arrow.ends[i].at = std::max(arrow.ends[i].at, arrow.ends[i - 1].at);
    }
  }

  const std::span<const TaskTimeline> tasks_;
  // By task, and the piece or variable; in the order of their begin.
  std::map<std::pair<std::size_t, std::string>, std::vector<SpanPlace>> rules_, needs_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t, std::uint64_t>, FrameTrip> pushes_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, std::vector<FrameTrip>> pulls_;
  std::vector<TimelineArrow> arrows_;
};

}  // namespace

std::vector<TimelineArrow> arrows_of(std::span<const TaskTimeline> tasks,
                                     std::span<const FrameTrip> trips) {
  return Arrows(tasks, trips).take();
}

}  // namespace paceline

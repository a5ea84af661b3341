// The group of an all-reduce: whom this worker does not reach, and when it gives up.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "params/protocol/collective_group.h"
#include "params/protocol/seconds_text.h"

namespace paceline {
namespace {

// A worker that sees none but retired ones for so long is too late.
constexpr Duration kOver = std::chrono::seconds(10);

}  // namespace

// Worker 0 begins without those that do not come in time, so whoever sees it waits.
void CollectiveGroup::consider_solitude(TimePoint now) {
  const bool begins = !was_member_ && (self() == 0 || peer(0).connected);
  const bool over = sees(Standing::kRetired) && !sees(Standing::kJoining);
  if (standing_ != Standing::kJoining || sees(Standing::kMember) || (begins && !over)) {
    if (self() != 0 || was_member_) alone_since_ = now;
    return;
  }
  if (!failure_.empty()) return;
  if (over && now >= alone_since_ + std::min(kOver, options_.join_timeout)) {
    came_too_late_ = true;
    failure_ = fmt::format("the training was over before worker:{} joined it", self());
  }
  if (now < alone_since_ + options_.join_timeout || begins) return;
  failure_ = fmt::format("worker:{} waited {} (--join-timeout) for a worker that trains{}", self(),
                         seconds_text(options_.join_timeout),
                         was_member_ ? "" : ": worker:0, which begins, has not come");
}

// One that is not connected with all members of a group cannot join it. A member that the others do
// not reach, either, is about to be left out.
void CollectiveGroup::consider_partition(TimePoint now) {
  std::optional<std::pair<int, int>> apart;  // a member that is seen, and one that is not
  for (int w = 0; w < options_.workers && standing_ == Standing::kJoining; ++w) {
    if (!peer(w).connected || peer(w).status.standing != Standing::kMember) continue;
    std::vector<std::int32_t> unseen = peer(w).status.members;
    std::erase_if(unseen, [&](std::int32_t member) {
      return member == self() || peer(member).connected ||
             !contains(peer(w).status.connected, member);
    });
    if (unseen.empty()) return apart_from_.reset();
    const bool as_before = apart_from_ && std::ranges::count(unseen, *apart_from_) > 0;
    apart = {w, as_before ? *apart_from_ : unseen.front()};
  }
  if (!apart) return apart_from_.reset();
  if (apart_from_ != apart->second) apart_since_ = now;
  apart_from_ = apart->second;
  if (now < apart_since_ + options_.join_timeout || !failure_.empty()) return;
  failure_ = fmt::format(
      "worker:{} could not reach worker:{} for {} (--join-timeout), which worker:{} reaches and "
      "trains with",
      self(), apart->second, seconds_text(options_.join_timeout), apart->first);
}

std::vector<std::int32_t> CollectiveGroup::missing() const {
  std::vector<std::int32_t> missing;
  for (int w = 0; w < options_.workers; ++w) {
    if (w != self() && !peer(w).connected) missing.push_back(w);
  }
  return missing;
}

std::string CollectiveGroup::missing_text() const {
  const std::vector<std::int32_t> workers = missing();
  return workers.empty() ? "" : fmt::format("worker:{}", fmt::join(workers, ", worker:"));
}

}  // namespace paceline

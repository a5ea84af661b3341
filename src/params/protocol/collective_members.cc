// The members of an all-reduce: who they should be.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "params/protocol/collective_group.h"

namespace paceline {
namespace {

// One member may see another that a third does not see for as long as this.
constexpr Duration kUnconnected = std::chrono::seconds(1);
// So much later than one member the others may find out that all are cut off, or are not any more.
constexpr Duration kCutOffAlone = std::chrono::seconds(1);

}  // namespace

// The lowest living member keeps the group such as it should be. It waits while some have formed a
// group without it: either this one goes on, once they are left behind, or it leaves.
void CollectiveGroup::regroup(TimePoint now, Outbox& out) {
  if (standing_ != Standing::kMember || (founded_ && !has_values_)) return;
  if (now < patient_until_ || coordinator() != self()) return;
  if (std::ranges::any_of(members_, [this](int member) { return is_elsewhere(member); })) return;
  std::vector<std::int32_t> wanted = wanted_members(now);
  if (proposal_ && proposer_ == self()) {
    if (must_reform_ || wanted != proposal_->members) propose(std::move(wanted), out);
  } else if (proposal_ || must_reform_ || wanted != members_) {
    propose(std::move(wanted), out);
  }
  agree(now, out);
}

std::vector<std::int32_t> CollectiveGroup::wanted_members(TimePoint now) {
  std::vector<std::int32_t> wanted;
  std::ranges::copy_if(members_, std::back_inserter(wanted),
                       [this](std::int32_t member) { return is_alive(member); });
  leave_out_the_unconnected(wanted, now);
  leave_out_the_cut_off(wanted, now);
  if (!ended_) add_joiners(wanted);
  return wanted;
}

bool CollectiveGroup::is_connected_with(int worker, int other) const {
  if (worker == self()) return peer(other).connected;
  return other == self() || contains(peer(worker).status.connected, other);
}

// The higher of two members that see this one but not each other is left out, unless they meet
// again soon. What they had sent each other may then be lost.
void CollectiveGroup::leave_out_the_unconnected(std::vector<std::int32_t>& members, TimePoint now) {
  const auto apart = std::ranges::find_if(members, [&](std::int32_t high) {
    return std::ranges::any_of(members, [&](std::int32_t low) {
      return low < high && (!is_connected_with(low, high) || !is_connected_with(high, low));
    });
  });
  if (apart == members.end()) {
    must_reform_ = must_reform_ || unconnected_since_;
    return unconnected_since_.reset();
  }
  if (!unconnected_since_) unconnected_since_ = now;
  if (now - *unconnected_since_ >= kUnconnected) members.erase(apart);
}

// Some of the others must have values, since they would wait for nothing else.
void CollectiveGroup::leave_out_the_cut_off(std::vector<std::int32_t>& members, TimePoint now) {
  const auto cut_off = [this](std::int32_t member) { return is_cut_off(member); };
  const auto goes_on = [this](std::int32_t member) {
    const bool has_values = member == self() ? has_values_ : peer(member).status.step >= 0;
    return has_values && !is_cut_off(member);
  };
  if (std::ranges::none_of(members, cut_off) || std::ranges::none_of(members, goes_on)) {
    return cut_off_since_.reset();
  }
  if (!cut_off_since_) cut_off_since_ = now;
  if (now - *cut_off_since_ >= kCutOffAlone) std::erase_if(members, cut_off);
}

// The others may have gone on without this worker, and not have told it yet: it commits nothing
// before they form the next epoch.
void CollectiveGroup::set_cut_off(bool cut_off, TimePoint now, Outbox& out) {
  note_time(now);
  if (std::exchange(cut_off_, cut_off) == cut_off) return;
  if (cut_off) {
    commits_nothing_ = true;
  } else if (standing_ == Standing::kMember) {
    must_reform_ = true;
  }
  tell_status(out);
  turn(now, out);
}

void CollectiveGroup::add_joiners(std::vector<std::int32_t>& members) const {
  for (int w = 0; w < options_.workers; ++w) {
    const Peer& joiner = peer(w);
    if (!joiner.connected || joiner.status.standing != Standing::kJoining) continue;
    if (joiner.status.cut_off) continue;
    const bool sees_all = std::ranges::all_of(
        members, [&](std::int32_t member) { return contains(joiner.status.connected, member); });
    if (sees_all) members.insert(std::ranges::lower_bound(members, w), w);
  }
}

}  // namespace paceline

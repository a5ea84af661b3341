// The epochs of an all-reduce: how the members agree on the next one, and what they go on from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "params/protocol/collective_group.h"

namespace paceline {
namespace {

std::string count_text(std::size_t members) {
  return members == 1 ? "1 worker goes on" : fmt::format("{} workers go on", members);
}

}  // namespace

void CollectiveGroup::check_members(const std::vector<std::int32_t>& members) const {
  const bool ascending =
      std::ranges::adjacent_find(members, std::ranges::greater_equal{}) == members.end();
  if (ascending && !members.empty() && members.front() >= 0 && members.back() < options_.workers) {
    return;
  }
  throw Error(ErrorCode::kDataLoss,
              fmt::format("[all-reduce] the members {} are no workers of this job",
                          fmt::join(members, ", ")));
}

void CollectiveGroup::check_formation(const Formation& formation) const {
  check_members(formation.members);
  RecordSet unused(formation.unused);  // throws
  const bool shares = formation.held.size() == formation.members.size();
  const bool lack = std::ranges::includes(formation.members, formation.lacking);
  if (lack && shares && formation.step >= 0) return;
  throw Error(ErrorCode::kDataLoss,
              fmt::format("[all-reduce] a group forms at step {}, and the workers {} lack values",
                          formation.step, fmt::join(formation.lacking, ", ")));
}

// An epoch is a number, how many members it has, and who proposed it, so that no two propose the
// same. When groups of one number meet, the larger one goes on, and of equal ones that of the lower
// proposer.
std::uint64_t CollectiveGroup::next_epoch(std::uint64_t after, std::size_t members, int proposer) {
  constexpr int kBits = 16;  // of the members, and of the proposer
  constexpr std::uint64_t kMost = (std::uint64_t{1} << kBits) - 1;
  const std::uint64_t number = (after >> (2 * kBits)) + 1;
  return (number << (2 * kBits)) | (std::min<std::uint64_t>(members, kMost) << kBits) |
         (kMost - std::uint64_t(proposer));
}

// Whoever is not among the members may wait to hear whose steps count.
void CollectiveGroup::set_counted(std::int64_t step, TimePoint now, Outbox& out) {
  note_time(now);
  if (!has_values_ || step != step_ || step == counted_) return;
  counted_ = step;
  for (int w = 0; w < options_.workers; ++w) {
    const bool apart = peer(w).connected && peer(w).status.standing == Standing::kMember;
    if (apart && w != self() && !is_member(w)) {
      out.send(PeerId(w), MessageType::kGroupStatus, status());
    }
  }
}

void CollectiveGroup::propose(std::vector<std::int32_t> members, Outbox& out) {
  highest_ = next_epoch(std::max(highest_, epoch_), members.size(), self());
  proposal_ = Proposal{highest_, std::move(members)};
  proposer_ = self();
  rested_ = agreed_ = must_reform_ = false;
  for (Peer& each : peers_) each.agreement.reset();
  for (const std::int32_t member : proposal_->members) {
    if (member != self()) out.send(PeerId(member), MessageType::kPropose, *proposal_);
  }
}

// A member follows the lowest living one only: the others may not know yet that it lives. But it
// goes with a later epoch that it has agreed to, of which it has not heard that it was formed. One
// of another group has other values, even of the same step: it joins this one, or is joined.
void CollectiveGroup::consider_held(Outbox& out) {
  std::erase_if(held_, [this](const auto& entry) {
    const auto& [proposer, proposal] = entry;
    const bool of_group =
        is_member(proposer) || (proposal_ && contains(proposal_->members, proposer));
    return standing_ == Standing::kRetired || !contains(proposal.members, self()) ||
           !peer(proposer).connected || (standing_ == Standing::kMember && !of_group);
  });
  for (auto it = held_.begin(); it != held_.end();) {
    if (must_hold(it->first)) {
      ++it;
    } else {
      accept(it->second, it->first, out);
      it = held_.erase(it);
    }
  }
}

bool CollectiveGroup::must_hold(int proposer) const {
  const int lowest = coordinator();
  const GroupStatus& its = peer(proposer).status;
  const bool has_formed =
      its.standing == Standing::kMember && its.epoch > epoch_ && contains(its.members, self());
  return standing_ == Standing::kMember && lowest >= 0 && lowest < proposer && !has_formed;
}

void CollectiveGroup::accept(const Proposal& proposal, int proposer, Outbox& out) {
  if (proposal.epoch <= highest_) {
    out.send(PeerId(proposer), MessageType::kAgree,
             Agreement{.epoch = proposal.epoch, .highest = highest_});
    return;
  }
  highest_ = proposal.epoch;
  proposal_ = proposal;
  proposer_ = proposer;
  rested_ = agreed_ = false;
}

void CollectiveGroup::rested(TimePoint now, Outbox& out) {
  note_time(now);
  if (!proposal_) return;
  rested_ = true;
  turn(now, out);
}

void CollectiveGroup::agree(TimePoint now, Outbox& out) {
  if (!proposal_ || !rested_ || agreed_) return;
  Agreement agreement{.epoch = proposal_->epoch,
                      .highest = proposal_->epoch,
                      .step = has_values_ ? step_ : -1,
                      .counted = counted_,
                      .in_place = true};
  for (const std::int32_t member : proposal_->members) {
    if (member == self()) continue;
    if (!peer(member).connected) return;
    agreement.in_place = agreement.in_place && peer(member).shares;
  }
  agreed_ = true;
  records_.freeze();
  if (has_values_) agreement.unused = records_.unused().ranges();
  agreement.held = records_.held();
  if (proposer_ != self()) {
    out.send(PeerId(proposer_), MessageType::kAgree, agreement);
  } else {
    peer(self()).agreement = agreement;
    form_when_agreed(now, out);
  }
}

void CollectiveGroup::take_agreement(int worker, const Agreement& agreement, TimePoint now,
                                     Outbox& out) {
  if (agreement.epoch == epoch_) {  // it had agreed, and to another one before this was formed
    highest_ = std::max(highest_, agreement.highest);
    must_reform_ = true;
    return;
  }
  if (!proposal_ || proposer_ != self() || agreement.epoch != proposal_->epoch) return;
  if (agreement.step >= 0) RecordSet unused(agreement.unused);  // throws
  if (agreement.highest > agreement.epoch) {
    highest_ = std::max(highest_, agreement.highest);
    propose(proposal_->members, out);
    return;
  }
  peer(worker).agreement = agreement;
  form_when_agreed(now, out);
}

void CollectiveGroup::form_when_agreed(TimePoint now, Outbox& out) {
  const std::vector<std::int32_t>& members = proposal_->members;
  const auto agreed = [this](std::int32_t member) { return peer(member).agreement.has_value(); };
  if (!std::ranges::all_of(members, agreed)) return;
  Formation formation{.epoch = proposal_->epoch,
                      .members = members,
                      .step = -1,
                      .source = -1,
                      .lacking = {},
                      .in_place = true,
                      .own_steps = {}};
  for (const std::int32_t member : members) {
    const Agreement& agreement = *peer(member).agreement;
    formation.in_place = formation.in_place && agreement.in_place;
    formation.step = std::max(formation.step, agreement.step);
    formation.counted = std::max(formation.counted, agreement.counted);
  }
  if (formation.step < 0) return leave_group(out);  // those that had the values are lost
  if (has_values_ && formation.step == step_ + 1) commit();
  formation.own_steps = own_steps_;
  for (const std::int32_t member : members) {
    const std::int64_t step = peer(member).agreement->step;
    const bool lacks = step < 0 || step < formation.step - 1;
    if (lacks) formation.lacking.push_back(member);
    if (!lacks && formation.source < 0) formation.source = member;
  }
  share_records(formation);
  for (const std::int32_t member : members) {
    if (member != self()) out.send(PeerId(member), MessageType::kForm, formation);
  }
  form(formation, now, out);
}

// A member that lacks values may have taken records since the last epoch began.
void CollectiveGroup::share_records(Formation& formation) const {
  std::vector<std::vector<RecordRange>> claims;
  for (const std::int32_t member : formation.members) {
    const Agreement& agreement = *peer(member).agreement;
    if (agreement.step == formation.step) formation.unused = agreement.unused;
    claims.push_back(agreement.held);
  }
  formation.held = held_by_members(RecordSet(formation.unused), claims);
}

// The others take a worker for a member once it has agreed.
void CollectiveGroup::hear_form(int worker, const Formation& formation, TimePoint now,
                                Outbox& out) {
  check_formation(formation);
  if (proposal_ && formation.epoch == proposal_->epoch) return form(formation, now, out);
  if (formation.epoch <= epoch_) return;
  tell_status(out);
  out.send(PeerId(worker), MessageType::kAgree,
           Agreement{.epoch = formation.epoch, .highest = highest_});
}

void CollectiveGroup::form(const Formation& formation, TimePoint, Outbox& out) {
  const auto own = std::ranges::find(formation.members, self());
  if (own == formation.members.end()) return;
  // It may have been given the values of this step after it agreed. They are not taken again: the
  // step thread may read them by now.
  const bool is_given = !has_values_ && early_values_ == formation.epoch;
  early_values_.reset();
  if (is_given) ++takes_;
  const bool has_them = is_given || (has_values_ && step_ == formation.step);
  const bool lacks = contains(formation.lacking, self()) && !has_them;
  if (!lacks && has_values_ && formation.step == step_ + 1) commit();
  const std::vector<std::int32_t> before = std::exchange(members_, formation.members);
  const bool first = !std::exchange(was_member_, true) || (founded_ && committed_ == 0);
  standing_ = Standing::kMember;
  epoch_ = formation.epoch;
  in_place_ = formation.in_place;
  step_ = formation.step;
  counted_ = std::max(counted_, formation.counted);  // it may have heard more since it agreed
  has_values_ = !lacks;
  records_.deal(RecordSet(formation.unused), formation.held, int(own - formation.members.begin()));
  lacking_.clear();
  if (formation.source == self()) lacking_ = formation.lacking;
  if (proposer_ != self() && formation.own_steps.size() == own_steps_.size()) {
    own_steps_ = formation.own_steps;
  }
  proposal_.reset();
  agreed_ = whole_ = false;
  commits_nothing_ = cut_off_;
  if (proposer_ != self()) must_reform_ = false;
  for (Peer& each : peers_) each.whole = false;
  // The others have agreed, so each is known to be a member.
  for (const std::int32_t member : members_) peer(member).status.standing = Standing::kMember;
  if (proposer_ == self() && !first) say_who_changed(before, out);
  if (begun_ && (begun_->step != step_ || lacks || options_.repeats_steps)) begun_.reset();
  if (begun_) {
    begun_->epoch = epoch_;
    send_all(MessageType::kCollectiveBegin, *begun_, out);
  }
  tell_status(out);
  for (int w = 0; w < options_.workers; ++w) meet(w, out);
}

void CollectiveGroup::say_who_changed(const std::vector<std::int32_t>& before, Outbox& out) {
  for (const std::int32_t worker : before) {
    if (is_member(worker)) continue;
    const Peer& gone = peer(worker);
    if (gone.connected && gone.status.cut_off) {
      out.warn(fmt::format("worker:{} is cut off from a ps; {} from global step {}", worker,
                           count_text(members_.size()), step_),
               Outbox::kNobody, "");
    } else if (gone.connected || gone.lost.empty()) {
      lines_.push_back(
          fmt::format("worker:{} has ended its training; {}", worker, count_text(members_.size())));
    } else {
      out.warn(fmt::format("worker:{} is lost ({}); {} from global step {}", worker, gone.lost,
                           count_text(members_.size()), step_),
               Outbox::kNobody, "");
    }
  }
  for (const std::int32_t worker : members_) {
    if (contains(before, worker)) continue;
    out.say(fmt::format("worker:{} joins at global step {}; {}", worker, step_,
                        count_text(members_.size())));
  }
}

// When two groups meet, the one with the later epoch goes on; or, once it is known, the one of
// which the ps tasks have counted more steps than the other has made. A worker that this one has
// formed a group without may still wait for it.
void CollectiveGroup::meet(int worker, Outbox& out) {
  const GroupStatus& other = peer(worker).status;
  const bool left = options_.counted_by_ps && other.epoch < epoch_ && !is_member(worker);
  if (other.standing != Standing::kMember || (contains(other.members, self()) && !left)) return;
  const bool goes_on = options_.counted_by_ps ? other.counted > step_ : other.epoch > epoch_;
  if (standing_ == Standing::kMember && goes_on) leave_group(out);
}

void CollectiveGroup::leave_group(Outbox& out) {
  if (has_values_) {
    out.say(fmt::format("the others went on without worker:{}, which joins them again", self()));
  }
  standing_ = Standing::kJoining;
  founded_ = has_values_ = whole_ = agreed_ = must_reform_ = commits_nothing_ = false;
  counted_ = -1;
  members_.clear();
  lacking_.clear();
  proposal_.reset();
  held_.clear();
  begun_.reset();
  early_values_.reset();
  patient_until_ = {};
  records_.leave();
  tell_status(out);
}

}  // namespace paceline

#include "params/protocol/collective_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "params/protocol/seconds_text.h"

namespace paceline {
namespace {

// A process that has paused for so long may have been given up by the others.
constexpr Duration kLongPause = std::chrono::seconds(2);
// So long it then waits for word of a group that went on without it.
constexpr Duration kPatience = std::chrono::seconds(10);

}  // namespace

CollectiveGroup::CollectiveGroup(const CollectiveGroupOptions& options, TimePoint now)
    : options_(options),
      peers_(std::size_t(options.workers)),
      own_steps_(std::size_t(options.workers)),
      seen_(now),
      alone_since_(now) {}

bool CollectiveGroup::is_member(int worker) const { return contains(members_, worker); }

bool CollectiveGroup::is_alive(int worker) const {
  return worker == self() ||
         (peer(worker).connected && peer(worker).status.standing == Standing::kMember);
}

bool CollectiveGroup::is_elsewhere(int worker) const {
  const GroupStatus& status = peer(worker).status;
  return worker != self() && is_alive(worker) && status.epoch > epoch_ &&
         !contains(status.members, self());
}

bool CollectiveGroup::is_cut_off(int worker) const {
  return worker == self() ? cut_off_ : peer(worker).status.cut_off;
}

int CollectiveGroup::coordinator() const {
  const auto alive = [this](std::int32_t member) { return is_alive(member); };
  auto first = std::ranges::find_if(
      members_, [&](std::int32_t member) { return alive(member) && !is_cut_off(member); });
  if (first == members_.end()) first = std::ranges::find_if(members_, alive);
  return first == members_.end() ? -1 : *first;
}

void CollectiveGroup::note_time(TimePoint now) {
  if (now - seen_ >= kLongPause) {
    stood_still_until_ = now;
    alone_since_ += now - seen_;
  }
  seen_ = std::max(seen_, now);
}

GroupStatus CollectiveGroup::status() const {
  GroupStatus status{.standing = standing_,
                     .epoch = epoch_,
                     .step = has_values_ ? step_ : -1,
                     .members = members_,
                     .connected = {},
                     .done = done_,
                     .ended = ended_,
                     .wants_values = wants_values_,
                     .cut_off = cut_off_,
                     .counted = counted_,
                     .committed = committed_step_,
                     .saved = saved_};
  for (int w = 0; w < options_.workers; ++w) {
    if (peer(w).connected) status.connected.push_back(w);
  }
  return status;
}

void CollectiveGroup::send_all(MessageType type, const ControlMessage::Body& body, Outbox& out) {
  for (int w = 0; w < options_.workers; ++w) {
    if (peer(w).connected) out.send(PeerId(w), type, body);
  }
}

void CollectiveGroup::tell_status(Outbox& out) {
  send_all(MessageType::kGroupStatus, status(), out);
}

void CollectiveGroup::connected(int worker, bool shares, TimePoint now, Outbox& out) {
  note_time(now);
  peer(worker) = {};
  peer(worker).connected = true;
  peer(worker).shares = shares;
  tell_status(out);
  turn(now, out);
}

void CollectiveGroup::disconnected(int worker, const std::string& why, TimePoint now, Outbox& out) {
  note_time(now);
  if (!peer(worker).connected) return;
  const GroupStatus last = peer(worker).status;
  peer(worker) = {};
  if (last.standing != Standing::kRetired) peer(worker).lost = why;
  if (last.saved) peer(worker).saved = last.committed;
  std::erase(lacking_, worker);
  if (is_member(worker) || (proposal_ && contains(proposal_->members, worker))) {
    must_reform_ = true;
    const bool suspicious =
        stood_still_until_ != TimePoint{} && now - stood_still_until_ < kPatience;
    if (suspicious) patient_until_ = now + kPatience;
  }
  tell_status(out);
  turn(now, out);
}

void CollectiveGroup::received(int worker, const ControlMessage& message, TimePoint now,
                               Outbox& out) {
  note_time(now);
  switch (message.type) {
    case MessageType::kGroupStatus:
      take_status(worker, message.as<GroupStatus>(), out);
      break;
    case MessageType::kPropose:
      check_members(message.as<Proposal>().members);
      held_[worker] = message.as<Proposal>();
      break;
    case MessageType::kAgree:
      take_agreement(worker, message.as<Agreement>(), now, out);
      break;
    case MessageType::kForm:
      hear_form(worker, message.as<Formation>(), now, out);
      break;
    case MessageType::kCollectiveBegin:
      take_begin(worker, message.as<CollectiveBegin>());
      break;
    case MessageType::kSumsWhole:
      peer(worker).whole = message.as<StepMark>() == StepMark{epoch_, step_};
      commit_when_whole(out);
      break;
    case MessageType::kCommit:
      if (message.as<StepMark>() == StepMark{epoch_, step_} && whole_ && !agreed_) commit();
      break;
    default:
      throw Error(ErrorCode::kDataLoss,
                  fmt::format("{} is no message of workers", name_of(message.type)));
  }
  turn(now, out);
}

TimePoint CollectiveGroup::tick(TimePoint now, Outbox& out) {
  note_time(now);
  turn(now, out);
  return now + kTick;
}

// Whatever may have become possible by what has just happened.
void CollectiveGroup::turn(TimePoint now, Outbox& out) {
  consider_solitude(now);
  consider_partition(now);
  consider_founding(now, out);
  consider_held(out);
  agree(now, out);
  regroup(now, out);
}

void CollectiveGroup::take_status(int worker, const GroupStatus& status, Outbox& out) {
  const bool was_cut_off = std::exchange(peer(worker).status, status).cut_off;
  if (was_cut_off && !status.cut_off && is_member(worker)) must_reform_ = true;
  if (status.ended) ended_ = true;
  const bool has_left = status.standing == Standing::kJoining && status.epoch == epoch_;
  if (has_left && is_member(worker)) must_reform_ = true;
  meet(worker, out);
}

bool CollectiveGroup::met() const {
  const auto connected = std::ranges::count_if(peers_, &Peer::connected);
  return standing_ == Standing::kMember || sees(Standing::kMember) ||
         (self() != 0 && connected == options_.workers - 1);
}

void CollectiveGroup::consider_founding(TimePoint now, Outbox& out) {
  if (self() != 0 || standing_ != Standing::kJoining || was_member_) return;
  if (sees(Standing::kMember) || sees(Standing::kRetired)) return;
  bool all = true;
  for (int w = 1; w < options_.workers; ++w) {
    all = all && peer(w).connected &&
          peer(w).status.connected.size() == std::size_t(options_.workers - 1);
  }
  if (!all && now < alone_since_ + options_.join_timeout) return;
  standing_ = Standing::kMember;
  founded_ = true;
  members_ = {0};
  highest_ = epoch_ = next_epoch(0, 1, self());
  tell_status(out);
}

bool CollectiveGroup::sees(Standing standing) const {
  return std::ranges::any_of(
      peers_, [&](const Peer& p) { return p.connected && p.status.standing == standing; });
}

void CollectiveGroup::initialise(std::int64_t step, std::span<const std::int64_t> own_steps,
                                 TimePoint now, Outbox& out) {
  if (!founded_ || has_values_) return;
  has_values_ = was_member_ = true;
  step_ = step;
  if (options_.counted_by_ps) counted_ = step;  // the ps tasks have their values from the founder
  records_.deal(records_.unused(), {{}}, 0);
  std::ranges::copy(own_steps.first(std::min(own_steps.size(), own_steps_.size())),
                    own_steps_.begin());
  for (int w = 1; w < options_.workers; ++w) {
    if (!peer(w).connected) {
      out.warn(fmt::format("worker:{} has not come within {} (--join-timeout); it may join later",
                           w, seconds_text(options_.join_timeout)),
               Outbox::kNobody, "");
    }
  }
  tell_status(out);
  turn(now, out);
}

bool CollectiveGroup::wants_values_of(std::uint64_t epoch) const {
  if (has_values_) return false;
  if (standing_ == Standing::kMember && epoch == epoch_) return true;
  return agreed_ && epoch == proposal_->epoch;
}

// The member that sends them may have heard sooner than this one that its epoch has begun.
void CollectiveGroup::take_values(std::uint64_t epoch, std::int64_t step, TimePoint now,
                                  Outbox& out) {
  if (epoch != 0 && epoch != epoch_) {
    early_values_ = epoch;
    return;
  }
  step_ = step;
  has_values_ = true;
  ++takes_;
  tell_status(out);
  turn(now, out);
}

void CollectiveGroup::sent_values(int worker) { std::erase(lacking_, worker); }

void CollectiveGroup::begin(const CollectiveBegin& own, TimePoint now, Outbox& out) {
  note_time(now);
  begun_ = own;
  begun_->epoch = epoch_;
  begun_->step = step_;
  for (const std::int32_t member : members_) check_training(member);
  if (!proposal_) send_all(MessageType::kCollectiveBegin, *begun_, out);
}

// A worker may hear of a commit or of an epoch before this one does, and begin the next step.
void CollectiveGroup::take_begin(int worker, const CollectiveBegin& begin) {
  if (begin.examples < 0) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] a step of {} examples", begin.examples));
  }
  peer(worker).begun_before = std::exchange(peer(worker).begun, begin);
  check_training(worker);
}

void CollectiveGroup::check_training(int worker) {
  const CollectiveBegin* const begin = begun_by(worker);
  if (!begun_ || begin == nullptr || begin->training == begun_->training) return;
  failure_ = fmt::format(
      "worker:{} and worker:{} make step {} of different trainings: with all-reduce, all workers "
      "make the same steps, and all or none have --sync-batch-norm",
      self(), worker, step_);
}

const CollectiveBegin* CollectiveGroup::begun_by(int worker) const {
  if (worker == self()) return begun_ ? &*begun_ : nullptr;
  for (const auto* begun : {&peer(worker).begun, &peer(worker).begun_before}) {
    if (*begun && (*begun)->epoch == epoch_ && (*begun)->step == step_) return &**begun;
  }
  return nullptr;
}

bool CollectiveGroup::started() const {
  if (!begun_ || proposal_) return false;
  return std::ranges::all_of(members_,
                             [this](std::int32_t member) { return begun_by(member) != nullptr; });
}

void CollectiveGroup::finish_sums(TimePoint now, Outbox& out) {
  note_time(now);
  if (!started() || whole_) return;
  whole_ = true;
  read_by_others_.clear();
  for (const std::int32_t member : members_) {
    if (member == self()) continue;
    const std::vector<RecordRange>& read = begun_by(member)->records;
    read_by_others_.insert(read_by_others_.end(), read.begin(), read.end());
  }
  if (members_.front() != self()) {
    out.send(PeerId(members_.front()), MessageType::kSumsWhole, StepMark{epoch_, step_});
  }
  commit_when_whole(out);
}

void CollectiveGroup::commit_when_whole(Outbox& out) {
  if (!whole_ || proposal_ || members_.empty() || members_.front() != self()) return;
  if (commits_nothing_) return;
  const bool all = std::ranges::all_of(
      members_, [this](std::int32_t member) { return member == self() || peer(member).whole; });
  if (!all) return;
  for (const std::int32_t member : members_) {
    if (member != self()) out.send(PeerId(member), MessageType::kCommit, StepMark{epoch_, step_});
  }
  commit();
  for (std::string& line : lines_) out.say(std::move(line));
  lines_.clear();
}

void CollectiveGroup::commit() {
  for (const std::int32_t member : members_) {
    if (const auto* begun = begun_by(member)) own_steps_[std::size_t(member)] = begun->own_step + 1;
  }
  if (begun_) records_.use_own(begun_->records);
  records_.use(read_by_others_);
  contributors_ = members_;
  committed_step_ = ++step_;
  ++committed_;
  whole_ = false;
  begun_.reset();
  for (Peer& each : peers_) each.whole = false;
}

void CollectiveGroup::set_done(Outbox& out) {
  if (std::exchange(done_, true)) return;
  tell_status(out);
}

void CollectiveGroup::end_training(Outbox& out) {
  if (std::exchange(ended_, true)) return;
  tell_status(out);
}

void CollectiveGroup::retire(bool wants_values, TimePoint now, Outbox& out) {
  note_time(now);
  if (standing_ == Standing::kRetired && wants_values == wants_values_) return;
  standing_ = Standing::kRetired;
  wants_values_ = wants_values;
  members_.clear();
  lacking_.clear();
  proposal_.reset();
  held_.clear();
  begun_.reset();
  whole_ = false;
  records_.freeze();
  tell_status(out);
}

std::vector<int> CollectiveGroup::waiting_for_values() const {
  std::vector<int> waiting;
  for (int w = 0; w < options_.workers; ++w) {
    const GroupStatus& status = peer(w).status;
    const bool waits = peer(w).connected && status.step < step_ &&
                       (status.standing == Standing::kJoining || status.wants_values);
    if (waits && has_values_) waiting.push_back(w);
  }
  return waiting;
}

EndSave CollectiveGroup::end_save(bool patient) const {
  if (patient && !all_retired()) return EndSave::kUnknown;
  std::int64_t newest = -1;
  EndSave by = EndSave::kUnknown;
  for (int w = 0; w < options_.workers; ++w) {
    const Peer& each = peer(w);
    const bool retired = each.connected && each.status.standing == Standing::kRetired;
    if (w != self() && !retired && !each.saved) continue;
    const std::int64_t committed = w == self() ? committed_step_
                                   : retired   ? each.status.committed
                                               : *each.saved;
    if (committed <= newest) continue;
    newest = committed;
    const bool saved = w == self() ? saved_ : !retired || each.status.saved;
    by = saved ? EndSave::kElsewhere : w == self() ? EndSave::kHere : EndSave::kUnknown;
  }
  // Nobody has committed a step: the values are those that training began with.
  if (newest < 0) return founded_ ? EndSave::kHere : EndSave::kElsewhere;
  return by;
}

void CollectiveGroup::set_saved(Outbox& out) {
  if (std::exchange(saved_, true)) return;
  tell_status(out);
}

bool CollectiveGroup::all_warm() const {
  return std::ranges::all_of(members_, [this](std::int32_t member) {
    const std::optional<CollectiveBegin>& begun = peer(member).begun;
    return member == self() || (begun && begun->made >= options_.warm_steps);
  });
}

bool CollectiveGroup::all_done() const {
  return std::ranges::all_of(peers_, [](const Peer& each) {
    return !each.connected || each.status.done || each.status.standing == Standing::kRetired;
  });
}

bool CollectiveGroup::any_done() const {
  return std::ranges::any_of(peers_, [](const Peer& each) {
    return each.status.done || each.status.standing == Standing::kRetired;
  });
}

bool CollectiveGroup::all_retired() const {
  return std::ranges::all_of(peers_, [](const Peer& each) {
    return !each.connected || each.status.standing == Standing::kRetired;
  });
}

}  // namespace paceline

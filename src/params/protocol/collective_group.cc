#include "params/protocol/collective_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <iterator>
#include <utility>

#include "params/protocol/seconds_text.h"

namespace paceline {

std::int64_t GroupRecordSharing::offset() const {
  return (units_ * members_ + place_) * kUnit + of_unit_;
}

RecordRange GroupRecordSharing::take(std::int64_t limit, std::int64_t most) {
  if (frozen_ || revoked_) return {};
  RecordRange taken = pool_.at(offset(), std::min(most, kUnit - of_unit_));
  taken.end = std::min(taken.end, limit);
  if (taken.size() <= 0) return {};
  of_unit_ += taken.size();
  if (of_unit_ == kUnit) {
    ++units_;
    of_unit_ = 0;
  }
  if (!held_.empty() && held_.back().end == taken.first) {
    held_.back().end = taken.end;
  } else {
    held_.push_back(taken);
  }
  return taken;
}

bool GroupRecordSharing::over(std::int64_t limit) const {
  return !frozen_ && !revoked_ && pool_.at(offset(), 1).first >= limit;
}

std::vector<RecordRange> GroupRecordSharing::reads(std::int64_t records) const {
  std::vector<RecordRange> read;
  std::int64_t missing = std::max<std::int64_t>(records - done_, 0);
  for (const RecordRange& range : held_) {
    if (missing == 0) break;
    const std::int64_t count = std::min(missing, range.size());
    read.push_back({range.first, range.first + count});
    missing -= count;
  }
  return read;
}

void GroupRecordSharing::begin() {
  held_.clear();
  revoked_ = false;
  done_ = 0;
}

void GroupRecordSharing::leave() {
  frozen_ = true;
  revoked_ = revoked_ || !held_.empty();
  held_.clear();
}

void GroupRecordSharing::use_up(std::int64_t records) {
  done_ += records;
  while (records > 0 && !held_.empty()) {
    RecordRange& first = held_.front();
    const std::int64_t count = std::min(records, first.size());
    first.first += count;
    records -= count;
    if (first.size() == 0) held_.pop_front();
  }
}

void GroupRecordSharing::use_own(std::span<const RecordRange> ranges) {
  use(ranges);
  for (const RecordRange& range : ranges) use_up(range.size());
}

void GroupRecordSharing::use(std::span<const RecordRange> ranges) {
  for (const RecordRange& range : ranges) unused_.remove(range);
}

void GroupRecordSharing::deal(RecordSet unused, const std::vector<std::vector<RecordRange>>& held,
                              int place) {
  const std::vector<RecordRange>& own = held[std::size_t(place)];
  if (!std::ranges::equal(own, held_)) leave();
  unused_ = std::move(unused);
  pool_ = unused_;
  for (const auto& each : held) {
    for (const RecordRange& range : each) pool_.remove(range);
  }
  place_ = place;
  members_ = std::int64_t(held.size());
  units_ = of_unit_ = 0;
  frozen_ = false;
}

std::vector<std::vector<RecordRange>> held_by_members(
    const RecordSet& unused, const std::vector<std::vector<RecordRange>>& claims) {
  RecordSet free = unused;
  std::vector<std::vector<RecordRange>> held;
  for (const auto& claim : claims) {
    auto& own = held.emplace_back();
    for (const RecordRange& claimed : claim) {
      for (const RecordRange& has : std::vector(free.ranges())) {
        const RecordRange both{std::max(claimed.first, has.first), std::min(claimed.end, has.end)};
        if (both.size() <= 0) continue;
        own.push_back(both);
        free.remove(both);
      }
    }
  }
  return held;
}

namespace {

// If this process has stood still this long, the other workers may have given it up.
constexpr Duration kLongPause = std::chrono::seconds(2);
// After a pause of kLongPause or more, this worker waits this long for a message of a group that
// went on without it.
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

// Does everything that became possible by the last event.
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
  // The ps tasks have their values from the founder, so these values include `step` steps, too.
  if (options_.counted_by_ps) counted_ = step;
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

// The sender of the values may have heard before this worker that the epoch of these values has
// begun.
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

// Another worker may hear of a commit or an epoch before this worker does. So the other worker's
// message that it begins the next step may arrive before the commit.
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
  // Nobody has committed a step, so the values are those from before the training. The founder
  // saves them.
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

// Which workers should be members of an all-reduce.

namespace {

// How long two members may be unconnected with each other before one of them is left out.
constexpr Duration kUnconnected = std::chrono::seconds(1);
// When one member finds that all members are cut off from the ps tasks, or that they no longer are,
// the others may take this long to find the same.
constexpr Duration kCutOffAlone = std::chrono::seconds(1);

}  // namespace

// The lowest living member proposes the members that the group should have. If some workers have
// formed a group without this worker, it proposes nothing: it waits until it can go on because
// those workers are lost or behind, or until it leaves its own group.
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

// If two members are connected with this worker but not with each other, leaves out the higher of
// the two, unless they connect again soon. If they do, the group is formed anew, since messages
// between the two may be lost.
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

// Leaves out the members that are cut off from the ps tasks, unless no other member has values:
// members without values would only wait.
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

// When this worker is cut off from the ps tasks, the others may go on without it, and it may hear
// of that too late. So it commits nothing until the next epoch is formed.
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

// The epochs of an all-reduce: how members agree on the next epoch, and on the step from which it
// continues.

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

// Returns an epoch that consists of a number, the count of its members, and its proposer, so that
// no two proposals are equal. If two groups with the same number meet, the group with more members
// goes on. If they are equally large, the group with the lower proposer goes on.
std::uint64_t CollectiveGroup::next_epoch(std::uint64_t after, std::size_t members, int proposer) {
  constexpr int kBits = 16;  // of the members, and of the proposer
  constexpr std::uint64_t kMost = (std::uint64_t{1} << kBits) - 1;
  const std::uint64_t number = (after >> (2 * kBits)) + 1;
  return (number << (2 * kBits)) | (std::min<std::uint64_t>(members, kMost) << kBits) |
         (kMost - std::uint64_t(proposer));
}

// Tells the count to the members of other groups, since they may wait to hear whose steps count.
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

// A member agrees only to proposals of the lowest living member. It keeps the proposals of other
// workers for later: their senders may not know yet that the lowest member lives.
//
// There is one exception: the member accepts the proposal of a worker to whose later epoch it has
// agreed, even if it has not heard yet that this epoch was formed.
//
// A proposal from another group is dropped: that group has other values, even at the same step. One
// of the two groups must join the other first.
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
  // Before the peer heard that this epoch was formed, it had agreed to a later one. So this epoch
  // does not have the peer, and the group must form again.
  if (agreement.epoch == epoch_) {
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
  if (formation.step < 0) return leave_group(out);  // the members that had the values are lost
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

// A member that lacks values claims records, too: it may have taken records since the last epoch
// began.
void CollectiveGroup::share_records(Formation& formation) const {
  std::vector<std::vector<RecordRange>> claims;
  for (const std::int32_t member : formation.members) {
    const Agreement& agreement = *peer(member).agreement;
    if (agreement.step == formation.step) formation.unused = agreement.unused;
    claims.push_back(agreement.held);
  }
  formation.held = held_by_members(RecordSet(formation.unused), claims);
}

// Once a worker has agreed, the others count it as a member, even if it has accepted a later
// proposal since. So it answers with that later epoch, and the sender of the formation proposes
// again.
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
  // This worker may have got the values of this step after it agreed. It does not take them a
  // second time: the step thread may be reading them by now.
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
  // The count may have risen since this worker agreed.
  counted_ = std::max(counted_, formation.counted);
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
  // The others have agreed, so this worker knows that each of them is a member.
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

// When two groups meet, the group with the later epoch goes on, and the workers of the other group
// leave it. If ps tasks count the steps, their count decides: a group goes on if the ps tasks have
// counted more steps of it than the other group has made. A worker of an earlier epoch may still
// name this worker as a member although this worker has formed a group without that worker
// (`left`).
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

// Which workers of the group this worker cannot reach, and when it gives up.

namespace {

// A worker that has seen only retired workers for this long has come too late, and gives up.
constexpr Duration kOver = std::chrono::seconds(10);

}  // namespace

// Worker 0 waits for the missing workers for a time, and then begins without them. So a worker that
// is connected with worker 0 does not give up.
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

// A worker that is not connected with all members of a group cannot join the group. It does not
// count members that the other members do not reach either, since those are about to be left out.
void CollectiveGroup::consider_partition(TimePoint now) {
  // A member that this worker is connected with, and a member that it is not connected with.
  std::optional<std::pair<int, int>> apart;
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

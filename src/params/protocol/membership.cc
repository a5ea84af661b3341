// ps 0 counts the staleness of a contribution: the global steps between the moment of the values
// that the step read and the step's end. ps 0 tells the worker the staleness in `step_done`, which
// it sends anyway.
//
// A step reads either the values that the answers to its worker's last step brought, or the present
// values. Only the worker knows which, and says so with one bit.
#include "params/protocol/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printed.h"

namespace paceline {

Membership::Membership(const MembershipOptions& options, TimePoint now)
    : options_(options),
      members_(std::size_t(options.workers)),
      start_(now),
      alone_since_(now),
      epoch_(options.first_epoch) {}

Membership::Member* Membership::find(int worker, std::uint64_t incarnation) {
  if (worker < 0 || std::size_t(worker) >= members_.size()) return nullptr;
  Member& member = members_[std::size_t(worker)];
  return member.incarnation == incarnation ? &member : nullptr;
}

std::string Membership::join(int worker, std::uint64_t incarnation, TimePoint now, bool& replaced) {
  replaced = false;
  if (worker < 0 || std::size_t(worker) >= members_.size()) {
    return fmt::format("worker:{} is not in the cluster spec, which has {}", worker,
                       counted(std::int64_t(members_.size()), "worker"));
  }
  Member& member = members_[std::size_t(worker)];
  // A process may join again if it was given up before the ps's welcome reached it: the process
  // then does not know that it had joined.
  const bool again = incarnation == member.incarnation && member.presence == Presence::kDead &&
                     member.made == 0 && member.begun < member.applied;
  if (member.presence != Presence::kAbsent && incarnation <= member.incarnation && !again) {
    return fmt::format("worker:{} has joined as incarnation {}, this is {}", worker,
                       member.incarnation, incarnation);
  }
  replaced = member.presence == Presence::kConnected;
  // Steps that the older process ended are not applied again.
  member = {.presence = Presence::kConnected,
            .incarnation = incarnation,
            .begun = member.applied - 1,
            .applied = member.applied};
  alone_since_ = now;
  ++epoch_;
  return {};
}

bool Membership::has_left(int worker, std::uint64_t incarnation) const {
  if (worker < 0 || std::size_t(worker) >= members_.size()) return false;
  const Member& member = members_[std::size_t(worker)];
  return member.incarnation == incarnation && member.presence == Presence::kLeft;
}

bool Membership::is_displaced(int worker, std::uint64_t incarnation) const {
  if (worker < 0 || std::size_t(worker) >= members_.size()) return false;
  return incarnation < members_[std::size_t(worker)].incarnation;
}

std::string Membership::come_back(int worker, std::uint64_t incarnation, TimePoint now) {
  Member* member = find(worker, incarnation);
  if (member == nullptr || member->presence != Presence::kCutOff) {
    return fmt::format("worker:{} comes back as incarnation {}, which is not known", worker,
                       incarnation);
  }
  member->presence = Presence::kConnected;
  alone_since_ = now;
  ++epoch_;
  return {};
}

void Membership::leave(int worker, std::uint64_t incarnation, Presence presence, TimePoint now) {
  Member* member = find(worker, incarnation);
  const bool here = member != nullptr && member->presence == Presence::kConnected;
  const bool cut_off = member != nullptr && member->presence == Presence::kCutOff;
  if (!here && !cut_off) return;
  member->presence = presence;
  // The epoch and alone_since_ have changed already, when the worker was cut off.
  if (!here) return;
  alone_since_ = now;
  ++epoch_;
}

void Membership::cut_off(int worker, std::uint64_t incarnation, TimePoint now) {
  leave(worker, incarnation, Presence::kCutOff, now);
}

void Membership::lose(int worker, std::uint64_t incarnation, TimePoint now) {
  leave(worker, incarnation, Presence::kDead, now);
}

void Membership::say_goodbye(int worker, std::uint64_t incarnation, TimePoint now) {
  leave(worker, incarnation, Presence::kLeft, now);
}

void Membership::set_done(int worker, std::uint64_t incarnation) {
  if (Member* member = find(worker, incarnation)) member->done = true;
}

bool Membership::begin_step(int worker, std::uint64_t incarnation, std::int64_t step,
                            bool reads_now) {
  Member* member = find(worker, incarnation);
  if (member == nullptr) return false;
  if (step <= member->begun) return false;
  member->begun = step;
  const bool first = member->read_at < 0;
  if (first || reads_now) member->read_at = global_step_;
  return true;
}

StepDone Membership::end_step(int worker, std::uint64_t incarnation, bool counts) {
  Member* member = find(worker, incarnation);
  if (member == nullptr) return {.global_step = global_step_};
  // The answers to this step bring the values of this moment, which the next step may read.
  const std::int64_t read_at = std::exchange(member->read_at, global_step_ + (counts ? 1 : 0));
  if (!counts) return {.global_step = global_step_};
  ++member->made;
  // Steps of an older process may have begun here and never ended. They are passed over, so that no
  // later step is mistaken for one of them.
  member->applied = member->begun + 1;
  return {.global_step = ++global_step_, .staleness = member->read_at - 1 - read_at};
}

// A step that was made in vain also counts for its worker's warm-up: with backup workers, all steps
// of a slow worker may be late.
void Membership::decide_step(int worker, std::int64_t step) {
  if (worker < 0 || std::size_t(worker) >= members_.size()) return;
  Member& member = members_[std::size_t(worker)];
  member.applied = std::max(member.applied, step + 1);
  member.begun = std::max(member.begun, step);
  ++member.made;
}

void Membership::set_applied(int worker, std::int64_t steps) {
  if (worker < 0 || std::size_t(worker) >= members_.size()) return;
  Member& member = members_[std::size_t(worker)];
  member.applied = steps;
  member.begun = steps - 1;
}

int Membership::count(Presence presence) const {
  return int(std::ranges::count(members_, presence, &Member::presence));
}

int Membership::connected() const { return count(Presence::kConnected); }

bool Membership::deserted() const { return connected() == 0 && count(Presence::kCutOff) == 0; }

JobState Membership::job_state(TimePoint now) const {
  const bool waits_for_absent = now < start_ + options_.join_timeout;
  JobState state{.all_warm = true,
                 .any_done = std::ranges::any_of(members_, &Member::done),
                 .all_done = true,
                 .ended = ended_};
  for (const Member& member : members_) {
    const bool awaited = member.presence == Presence::kAbsent && waits_for_absent;
    const bool trains = member.presence == Presence::kConnected && !member.done;
    const bool cold = trains && member.made < options_.warm_steps;
    state.all_warm = state.all_warm && !awaited && !cold;
    state.all_done = state.all_done && !awaited && !trains;
  }
  return state;
}

bool Membership::reached() const {
  if (ended_) return true;
  if (last_step_ > 0) return global_step_ >= last_step_;
  return std::ranges::any_of(members_, &Member::done);
}

Membership::End Membership::end(TimePoint now) const {
  const bool all_left = std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.presence == Presence::kLeft;
  });
  if (all_left && !members_.empty()) return End::kFinished;
  if (!deserted()) return End::kNotYet;
  if (now < end_when_alone()) return End::kNotYet;
  return reached() ? End::kFinished : End::kAbandoned;
}

TimePoint Membership::end_when_alone() const {
  if (!reached()) return alone_since_ + options_.join_timeout;
  const bool all_came = std::none_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.presence == Presence::kAbsent;
  });
  return all_came ? alone_since_ : alone_since_ + options_.late_start;
}

TimePoint Membership::next_change(TimePoint now) const {
  const TimePoint absent = start_ + options_.join_timeout;
  const TimePoint alone = end_when_alone();
  if (deserted()) return absent > now ? std::min(absent, alone) : alone;
  return absent > now ? absent : TimePoint::max();
}

std::string Membership::text() const {
  constexpr std::string_view kWords[] = {"never came", "connected", "cut off", "died", "left"};
  std::string text;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i > 0) text += ", ";
    text += fmt::format("worker:{} {}", i, kWords[std::size_t(members_[i].presence)]);
  }
  return text;
}

}  // namespace paceline

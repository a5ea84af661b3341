// The end of an all-reduce in virtual time: who saves.
#include <fmt/format.h>

#include <algorithm>

#include "params/protocol/testing/virtual_group.h"

namespace paceline {

using namespace std::chrono_literals;

namespace {

constexpr Duration kEndPatience = 10s;  // as a session's
constexpr Duration kEndWithin = 60s;

}  // namespace

// One worker ends the training of all, as early stopping does; some are killed meanwhile.
void VirtualGroup::run_end() {
  std::vector<Process*> running;
  for (auto& [number, process] : processes_) {
    if (process->alive && !process->retired) running.push_back(process.get());
  }
  Process& first = *running[time_.random() % running.size()];
  drive(first, [&](Outbox& out) { first.group->end_training(out); });
  for (std::size_t left = running.size(); left > 1 && time_.happens(0.4); --left) {
    time_.after(time_.between(0s, 3s), [this] { kill_at_end(); });
  }
  end_ = time_.now() + kEndWithin;
  while (time_.now() < end_ && result_.trouble.empty() && time_.run_one()) {
  }
  if (result_.trouble.empty()) check_saves();
}

void VirtualGroup::kill_at_end() {
  std::vector<Process*> running;
  for (auto& [number, process] : processes_) {
    if (process->alive && !process->retired) running.push_back(process.get());
  }
  if (running.size() > 1) kill(*running[time_.random() % running.size()], false);
}

// What a session does between two steps and after the last one.
void VirtualGroup::end(Process& process) {
  CollectiveGroup& group = *process.group;
  if (group.training_ended() && !process.ended_since && !group.begun_by(process.worker)) {
    process.ended_since = time_.now();
    drive(process, [&](Outbox& out) { group.retire(true, time_.now(), out); });
  }
  if (!process.ended_since || process.saves || process.retired) return;
  const EndSave by = group.end_save(time_.now() - *process.ended_since < kEndPatience);
  if (by == EndSave::kElsewhere) return leave(process);
  if (by != EndSave::kHere) return;
  process.saves = true;
  const std::int64_t step = std::int64_t(process.history.size());
  saves_.push_back({process.number, step, time_.now(), TimePoint::max()});
  time_.after(time_.between(10ms, 2s), [this, number = process.number, at = saves_.size() - 1] {
    on(number, [this, at](Process& p) {
      saves_[at].ended = time_.now();
      drive(p, [&](Outbox& out) { p.group->set_saved(out); });
      leave(p);
    });
  });
}

void VirtualGroup::leave(Process& process) {
  process.retired = true;
  drive(process, [&](Outbox& out) { process.group->retire(false, time_.now(), out); });
  time_.after(time_.between(1s, 3s), [this, number = process.number] {
    on(number, [this](Process& p) { kill(p, false); });
  });
}

// The newest values that a living worker has committed are saved, and by no two at a time.
void VirtualGroup::check_saves() {
  std::int64_t newest = -1, saved = -1;
  for (const auto& [number, process] : processes_) {
    if (process->ended_since && process->retired) {
      newest = std::max(newest, process->group->committed_step());
    }
    if (process->alive && process->ended_since && !process->retired)
      complain("a worker does not end");
  }
  for (std::size_t i = 0; i < saves_.size(); ++i) {
    const Save& save = saves_[i];
    if (save.ended == TimePoint::max()) continue;  // its worker was killed
    saved = std::max(saved, save.step);
    for (std::size_t j = 0; j < i; ++j) {
      const Save& before = saves_[j];
      if (before.ended == TimePoint::max()) continue;
      if (before.ended > save.begun) complain("two workers save at once");
    }
  }
  if (saved < newest) {
    complain(
        fmt::format("the newest checkpoint is of step {}, the last step is {}", saved, newest));
  }
  result_.saves = int(saves_.size());
}

}  // namespace paceline

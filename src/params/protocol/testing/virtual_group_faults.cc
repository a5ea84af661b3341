// What goes wrong in an all-reduce in virtual time.
#include <algorithm>
#include <utility>

#include "params/protocol/testing/virtual_group.h"

namespace paceline {

using namespace std::chrono_literals;

namespace {

constexpr Duration kDeadAfter = 4s;

}  // namespace

VirtualGroup::Process* VirtualGroup::random_process() {
  std::vector<Process*> running;
  for (auto& [number, process] : processes_) {
    if (process->alive && !process->stopped && !process->retired) running.push_back(process.get());
  }
  return running.empty() ? nullptr : running[time_.random() % running.size()];
}

// Some other worker goes on with values that are as new; ps tasks may have closed the round of a
// step that it has not heard of.
bool VirtualGroup::can_spare(const Process& process) const {
  const std::int64_t behind = options_.hybrid ? 0 : 1;
  return std::ranges::any_of(processes_, [&](const auto& entry) {
    const Process& other = *entry.second;
    const CollectiveGroup& group = *other.group;
    return &other != &process && other.alive && !other.stopped && !other.retired &&
           group.standing() == Standing::kMember && group.has_values() &&
           group.step() + behind >= process.group->step() &&
           (group.epoch() == process.group->epoch() || !process.group->has_values());
  });
}

void VirtualGroup::fault() {
  last_fault_ = time_.now();
  Process* const process = random_process();
  if (process == nullptr) return;
  const double kind = time_.uniform();
  const bool retires = !options_.hybrid;
  if (kind < 0.15 && options_.hybrid) return cut_from_ps(*process);
  if (kind < 0.3) return cut();
  if (!can_spare(*process)) return;
  if (kind < 0.65) return kill(*process);
  if (kind < 0.9 || !retires) return stop(*process);
  retire(*process);
}

void VirtualGroup::kill(Process& process, bool comes_back) {
  ++result_.kills;
  process.alive = false;
  const bool host = time_.happens(0.2);
  if (fence_) {
    time_.after(host ? kDeadAfter : 5ms,
                [this, number = process.number] { fence_->cut_off(number, true); });
  }
  for (auto& [number, wire] : wires_) {
    for (int end : {0, 1}) {
      if (wire.ends[end] != process.number) continue;
      wire.open[end] = false;
      if (host) wire.lost_after = time_.now();
      close_end(number, 1 - end, host ? kDeadAfter : 5ms, "it has died");
    }
  }
  if (comes_back && time_.happens(0.7)) {
    const Duration wait = time_.between(100ms, 8s);
    time_.after(wait, [this, worker = process.worker] { start(worker); });
  }
}

void VirtualGroup::stop(Process& process) {
  ++result_.stops;
  process.stopped = true;
  const std::uint64_t number = process.number;
  const Duration pause = time_.between(500ms, 12s);
  for (auto& [id, wire] : wires_) {
    for (int end : {0, 1}) {
      if (wire.ends[end] != number || !wire.open[end] || pause < kDeadAfter) continue;
      time_.after(kDeadAfter, [this, id = id, end] {
        wires_.at(id).lost_after = time_.now();
        close_end(id, 1 - end, 250ms, "it was silent for 4 s");
        close_end(id, end, 10ms, "it has gone");
      });
    }
  }
  const bool noticed = fence_ != nullptr && pause > kDeadAfter;
  if (noticed) time_.after(kDeadAfter, [this, number] { fence_->cut_off(number, false); });
  time_.after(pause, [this, number, noticed] {
    Process* const on = find(number);
    on->stopped = false;
    if (noticed) fence_->came_back(number);
    for (const auto& act : std::exchange(on->held, {})) act();
  });
}

void VirtualGroup::cut() {
  std::vector<std::uint64_t> open;
  for (const auto& [number, wire] : wires_) {
    if (wire.open[0] && wire.open[1] && !wire.cut) open.push_back(number);
  }
  if (open.empty()) return;
  ++result_.cuts;
  const std::uint64_t number = open[time_.random() % open.size()];
  Wire& wire = wires_.at(number);
  wire.cut = true;
  wire.lost_after = time_.now();
  if (options_.hybrid && time_.happens(0.3)) {
    const std::pair workers{find(wire.ends[0])->worker, find(wire.ends[1])->worker};
    apart_until_[workers] = time_.now() + time_.between(1s, 6s);
  }
  for (int end : {0, 1}) close_end(number, end, time_.happens(0.5) ? 10ms : 4s, "it was cut");
}

// It may be over before anybody has noticed.
void VirtualGroup::cut_from_ps(Process& process) {
  const std::uint64_t number = process.number;
  if (std::exchange(process.cut_off, true)) return;
  ++result_.ps_cuts;
  const Duration pause = time_.between(100ms, 12s);
  const Duration noticed = time_.happens(0.5) ? 10ms : kDeadAfter;
  const auto set_cut_off = [this, number](bool cut_off) {
    on(number, [this, cut_off](Process& p) {
      if (p.retired) return;
      drive(p, [&](Outbox& out) { p.group->set_cut_off(cut_off, time_.now(), out); });
    });
  };
  fence_->cut(number);
  if (noticed < pause) {
    time_.after(noticed, [this, number, set_cut_off] {
      if (!find(number)->alive) return;
      fence_->cut_off(number, false);
      set_cut_off(true);
    });
  }
  time_.after(pause, [this, number, noticed = noticed < pause, set_cut_off] {
    Process& back = *find(number);
    if (!back.alive) return;
    back.cut_off = false;
    if (noticed) fence_->came_back(number);
    fence_->mend(number);
    set_cut_off(false);
  });
}

void VirtualGroup::retire(Process& process) {
  ++result_.retired;
  drive(process, [&](Outbox& out) { process.group->retire(false, time_.now(), out); });
  process.retired = true;
}

}  // namespace paceline

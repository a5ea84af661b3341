// VirtualGroup: a part of each contribution goes to ps tasks.
#include <fmt/format.h>

#include <algorithm>

#include "params/protocol/testing/virtual_group.h"

namespace paceline {

using namespace std::chrono_literals;

void VirtualGroup::make_fence() {
  VirtualFence::World world;
  world.on = [this](std::uint64_t process, const std::function<void()>& act) {
    on(process, [act](Process&) { act(); });
  };
  world.look = [this](std::uint64_t number) {
    Process& process = *find(number);
    finish_if_whole(process);
    look(process);
  };
  world.left_behind = [this](std::uint64_t process) { fall_behind(process); };
  world.complain = [this](const std::string& trouble) { complain(trouble); };
  world.delay = [this] { return delay(); };
  fence_ = std::make_unique<VirtualFence>(time_, options_.workers, std::move(world));
}

bool VirtualGroup::may_contribute(Process& process) {
  return fence_ == nullptr || fence_->begin(process.number, process.group->step());
}

// The step thread asks as soon as it has begun the step.
void VirtualGroup::count_rounds(Process& process) {
  const CollectiveGroup& group = *process.group;
  if (fence_ == nullptr || group.begun_by(process.worker) == nullptr) return;
  if (!may_contribute(process) || process.counted == group.step()) return;
  process.counted = group.step();
  drive(process,
        [&](Outbox& out) { process.group->set_counted(process.counted, time_.now(), out); });
}

// Its session ends, and the program begins another one.
void VirtualGroup::fall_behind(std::uint64_t number) {
  time_.after(0s, [this, number] {
    Process* const process = find(number);
    if (!process->alive || process->retired) return;
    ++result_.left_behind;
    process->alive = false;
    fence_->cut_off(number, true);
    for (auto& [wire_number, wire] : wires_) {
      for (int end : {0, 1}) {
        if (wire.ends[end] != number) continue;
        wire.open[end] = false;
        close_end(wire_number, 1 - end, 5ms, "it begins again");
      }
    }
    time_.after(100ms, [this, worker = process->worker] { start(worker); });
  });
}

// Each step that counts is one round, of the same contributors.
void VirtualGroup::check_rounds(const Process& process) {
  const auto& closed = fence_->closed();
  const std::size_t both = std::min(closed.size(), process.history.size());
  if (std::equal(closed.begin(), closed.begin() + std::ptrdiff_t(both), process.history.begin()) &&
      std::max(closed.size(), process.history.size()) <= both + 1) {
    return;
  }
  complain(fmt::format("worker:{} has {} steps, and the ps tasks {} other rounds", process.worker,
                       process.history.size(), closed.size()));
}

}  // namespace paceline

#include "params/protocol/testing/virtual_fence.h"

#include <fmt/format.h>

#include <utility>

#include "paceline/error.h"

namespace paceline {

using namespace std::chrono_literals;

namespace {

constexpr int kShards = 2;
constexpr double kFenceBytesPerSecond = 1e9;
constexpr std::size_t kControlBytes = 64, kSparseBytes = 100'000;
constexpr Duration kOthersTellWithin = 100ms, kReconnectTimeout = 5s;

}  // namespace

VirtualFence::VirtualFence(VirtualTime& time, int workers, World world)
    : time_(time),
      world_(std::move(world)),
      coordinator_({.shards = kShards, .workers = workers, .workers_commit = true}) {}

template <typename Act>
void VirtualFence::coordinate(Act&& act) {
  RoundCoordinator::Decisions decisions;
  try {
    act(decisions);
  } catch (const Error& error) {
    return world_.complain(error.what());
  }
  carry_out(decisions);
}

// A message arrives, also when its sender is no more.
void VirtualFence::tell(Worker& worker, std::function<void()> act) {
  worker.to->send(kControlBytes, world_.delay(), {},
                  [this, process = worker.process, act = std::move(act)] { arrive(process, act); });
}

void VirtualFence::arrive(std::uint64_t process, const std::function<void()>& act) {
  Worker& worker = workers_.at(process);
  if (!worker.cut) return act();
  worker.held.push_back(act);
}

void VirtualFence::mend(std::uint64_t process) {
  Worker& worker = workers_.at(process);
  worker.cut = false;
  for (const auto& act : std::exchange(worker.held, {})) act();
}

void VirtualFence::answer(std::uint64_t process, std::function<void(Worker&)> act) {
  workers_.at(process).from->send(kControlBytes, world_.delay(), {},
                                  [this, process, act = std::move(act)] {
                                    arrive(process, [this, process, act] {
                                      world_.on(process, [this, process, act] {
                                        act(workers_.at(process));
                                        world_.look(process);
                                      });
                                    });
                                  });
}

void VirtualFence::started(std::uint64_t process, int index) {
  Worker& worker = workers_[process];
  worker.index = index;
  worker.process = process;
  worker.to = std::make_unique<VirtualLink>(time_, kFenceBytesPerSecond);
  worker.from = std::make_unique<VirtualLink>(time_, kFenceBytesPerSecond);
  came_back(process);
}

void VirtualFence::came_back(std::uint64_t process) {
  Worker& worker = workers_.at(process);
  tell(worker, [this, process, index = worker.index] {
    coordinate([&](auto& out) { coordinator_.joined(index, process, out); });
  });
}

void VirtualFence::cut_off(std::uint64_t process, bool dead) {
  const int index = workers_.at(process).index;
  coordinate([&](auto& out) { coordinator_.left(index, out); });
  if (!dead) return;
  time_.after(kReconnectTimeout, [this, process, index] {
    coordinate([&](auto& out) { coordinator_.forget_unless_whole(index, process, out); });
  });
}

bool VirtualFence::begin(std::uint64_t process, std::int64_t round) {
  Worker& worker = workers_.at(process);
  if (worker.begun == round) return true;
  if (!worker.done) return false;
  if (worker.named != worker.counted && !worker.named.empty()) {
    world_.left_behind(process);
    return false;
  }
  if (!worker.settled || worker.rounds < round) {
    if (worker.awaits == round) return false;
    worker.awaits = round;
    tell(worker, [this, process, round] {
      asked_[process] = round;
      answer_awaiting();
    });
    return false;
  }
  if (worker.rounds != round) {
    world_.left_behind(process);
    return false;
  }
  worker.begun = round;
  return true;
}

void VirtualFence::answer_awaiting() {
  std::erase_if(asked_, [&](const auto& entry) {
    if (entry.second > coordinator_.open_round()) return false;
    answer(entry.first, [rounds = coordinator_.open_round()](Worker& worker) {
      worker.awaits.reset();
      worker.rounds = rounds;
      worker.settled = true;
    });
    return true;
  });
}

void VirtualFence::give(std::uint64_t process) {
  Worker& worker = workers_.at(process);
  if (worker.sent && worker.round == worker.begun) return;
  const RoundContribution given{.worker = worker.index,
                                .incarnation = process,
                                .step = ++worker.step,
                                .round = worker.round = worker.begun,
                                .examples = 1};
  worker.sent = true;
  worker.given = worker.done = false;
  worker.named.clear();
  worker.counted.clear();
  for (int shard = 0; shard < kShards; ++shard) {
    worker.to->send(kSparseBytes, world_.delay(), {}, [this, shard, given, process] {
      arrive(process, [this, shard, given, process] {
        time_.after(shard == 0 ? Duration(0) : world_.delay(), [this, shard, given, process] {
          bool whole = false;
          coordinate([&](auto& out) { whole = coordinator_.whole(shard, given, out); });
          if (whole) answer(process, [](Worker& it) { it.given = true; });
        });
      });
    });
  }
}

bool VirtualFence::given(std::uint64_t process) const {
  const Worker& worker = workers_.at(process);
  return worker.given || worker.done;
}

// The member that has committed first lets the others tell, for a while or until the round is
// closed.
void VirtualFence::commit(std::uint64_t process, const Workers& contributors) {
  Worker& worker = workers_.at(process);
  worker.named = contributors;
  worker.told = false;
  const bool first = contributors.size() > 1 && contributors.front() == worker.index;
  if (!first || worker.done) return tell_commit(worker);
  time_.after(kOthersTellWithin, [this, process, round = worker.round] {
    world_.on(process, [this, process, round] {
      Worker& now = workers_.at(process);
      if (now.round == round) tell_commit(now);
    });
  });
}

void VirtualFence::tell_commit(Worker& worker) {
  if (std::exchange(worker.told, true)) return;
  tell(worker, [this, index = worker.index, round = worker.round, contributors = worker.named] {
    coordinate([&](auto& out) { coordinator_.commit(index, round, contributors, out); });
  });
}

void VirtualFence::lose(std::uint64_t process, std::int64_t round) {
  Worker& worker = workers_.at(process);
  worker.settled = false;
  worker.begun = -1;
  worker.sent = false;
  if (worker.done || round > worker.round) return;
  tell(worker, [this, process, index = worker.index, step = worker.step] {
    coordinate([&](auto& out) { coordinator_.withdraw(index, process, step, out); });
  });
}

void VirtualFence::carry_out(RoundCoordinator::Decisions& decisions) {
  for (const RoundDecision& decision : decisions) {
    Workers contributors;
    for (const RoundContribution& it : decision.contributors) contributors.push_back(it.worker);
    const auto tell_all = [&](const std::vector<RoundContribution>& list, const Workers& counted) {
      for (const RoundContribution& it : list) {
        answer(it.incarnation,
               [this, step = it.step, counted, rounds = coordinator_.open_round()](Worker& worker) {
                 if (worker.step != step) return;
                 tell_commit(worker);
                 worker.done = true;
                 worker.counted = counted;
                 worker.rounds = rounds;
               });
      }
    };
    tell_all(decision.contributors, contributors);
    tell_all(decision.dropped, {});
    if (!decision.closes) continue;
    closed_.push_back(std::move(contributors));
    answer_awaiting();
  }
}

}  // namespace paceline

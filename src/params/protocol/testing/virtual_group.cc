#include "params/protocol/testing/virtual_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
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

// The message arrives even if its sender has ended by then.
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

// The lowest contributor commits a step before the others do. It waits until the round is closed,
// but only for a while, so that the others tell the ps tasks first.
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

using namespace std::chrono_literals;

namespace {

constexpr Duration kProgressWithin = 20s;
constexpr double kBytesPerSecond = 1e9;

}  // namespace

VirtualGroup::VirtualGroup(std::uint64_t seed, const VirtualGroupOptions& options)
    : options_(options), time_(seed) {
  end_of_faults_ = time_.now() + options_.faulty;
  end_ = end_of_faults_ + options_.quiet;
  if (options_.hybrid) make_fence();
  for (int w = 0; w < options_.workers; ++w) {
    const bool late = w > 0 && time_.happens(0.1);
    time_.after(late ? time_.between(25s, 40s) : time_.between(0s, 2s), [this, w] { start(w); });
  }
  for (int i = 0; i < options_.faults; ++i) {
    time_.after(time_.between(2s, options_.faulty), [this] { fault(); });
  }
}

VirtualGroupResult VirtualGroup::run() {
  while (time_.now() < end_ && result_.trouble.empty() && time_.run_one()) {
  }
  if (result_.trouble.empty()) check_end();
  if (options_.ends && result_.trouble.empty()) run_end();
  result_.hash = time_.hash();
  result_.epochs = int(epochs_.size());
  return std::move(result_);
}

void VirtualGroup::complain(const std::string& trouble) {
  if (!result_.trouble.empty()) return;
  result_.trouble = fmt::format("{:.3f} s: {}", time_.seconds(), trouble);
  for (const auto& [number, process] : processes_) {
    if (process->alive) result_.lines.push_back(text_of(*process));
  }
}

std::string VirtualGroup::text_of(const Process& process) const {
  const CollectiveGroup& group = *process.group;
  std::vector<int> connected;
  for (int w = 0; w < options_.workers; ++w) {
    if (group.is_connected(w)) connected.push_back(w);
  }
  return fmt::format(
      "worker:{}{}: standing {}, epoch {:x}, step {}{}, members {}, connected {}{}{}{}",
      process.worker, process.stopped ? " (stopped)" : "", int(group.standing()), group.epoch(),
      group.step(), group.has_values() ? "" : " without values", fmt::join(group.members(), " "),
      fmt::join(connected, " "), group.may_begin() ? ", may begin" : "",
      group.started() ? ", started" : "", group.must_rest() ? ", must rest" : "");
}

VirtualGroup::Process* VirtualGroup::find(std::uint64_t process) {
  const auto found = processes_.find(process);
  return found == processes_.end() ? nullptr : found->second.get();
}

VirtualGroup::Process* VirtualGroup::of_worker(int worker) {
  for (auto& [number, process] : processes_) {
    if (process->worker == worker && process->alive) return process.get();
  }
  return nullptr;
}

Duration VirtualGroup::delay() {
  return time_.happens(0.02) ? time_.between(1ms, 300ms) : time_.between(10us, 1ms);
}

void VirtualGroup::start(int worker) {
  if (of_worker(worker) != nullptr) return;
  auto process = std::make_unique<Process>();
  process->worker = worker;
  process->number = ++made_;
  process->progressed = time_.now();
  process->group = std::make_unique<CollectiveGroup>(
      CollectiveGroupOptions{.worker = worker,
                             .workers = options_.workers,
                             .join_timeout = options_.join_timeout,
                             .repeats_steps = options_.exchanges > 0,
                             .counted_by_ps = options_.hybrid},
      time_.now());
  process->sums = std::make_unique<ExchangedSums>(worker, options_.workers);
  const std::uint64_t number = process->number;
  processes_.emplace(number, std::move(process));
  if (fence_) fence_->started(number, worker);
  tick(number);
}

void VirtualGroup::on(std::uint64_t number, std::function<void(Process&)> act) {
  Process* const process = find(number);
  if (process == nullptr || !process->alive) return;
  if (process->stopped) {
    process->held.emplace_back([this, number, act = std::move(act)] { on(number, act); });
  } else {
    act(*process);
  }
}

void VirtualGroup::tick(std::uint64_t number) {
  Process* const process = find(number);
  if (process == nullptr || !process->alive) return;
  time_.after(200ms + time_.between(0ms, 40ms), [this, number] { tick(number); });
  if (process->stopped) return;
  drive(*process, [&](Outbox& out) { process->group->tick(time_.now(), out); });
  if (ending()) end(*process);
  connect_missing(*process);
  if (ending()) return;  // a worker that has not joined by now is too late
  if (!process->group->failure().empty()) complain(process->group->failure());
  check_progress();
}

void VirtualGroup::connect_missing(Process& process) {
  for (int low = 0; low < process.worker; ++low) {
    Process* const other = of_worker(low);
    int end = 0;
    if (other == nullptr || other->stopped || wire_of(process, low, end) != nullptr) continue;
    if (time_.now() < apart_until_[{low, process.worker}]) continue;
    if (time_.happens(0.5)) open_wire(other->number, process.number);
  }
}

void VirtualGroup::open_wire(std::uint64_t low, std::uint64_t high) {
  const std::uint64_t number = ++made_;
  Wire& wire = wires_[number];
  wire.ends[0] = low;
  wire.ends[1] = high;
  for (int end : {0, 1}) {
    wire.links[end] = std::make_unique<VirtualLink>(time_, kBytesPerSecond);
    wire.open[end] = true;
    const int other = find(wire.ends[1 - end])->worker;
    const std::uint64_t process = wire.ends[end];
    // Both ends know the connection before any message arrives. A new process of a worker replaces
    // the old one.
    close_old_wires(process, other, number);
    on(process, [&](Process& p) {
      drive(p, [&](Outbox& out) {
        p.group->disconnected(other, "it has died", time_.now(), out);
        p.group->connected(other, false, time_.now(), out);
      });
    });
  }
}

void VirtualGroup::close_old_wires(std::uint64_t process, int worker, std::uint64_t except) {
  for (auto& [number, wire] : wires_) {
    for (int end : {0, 1}) {
      const Process* const other = find(wire.ends[1 - end]);
      if (number == except || wire.ends[end] != process || other->worker != worker) continue;
      wire.open[end] = false;
    }
  }
}

VirtualGroup::Wire* VirtualGroup::wire_of(const Process& process, int worker, int& end) {
  for (auto& [number, wire] : wires_) {
    for (int e : {0, 1}) {
      if (wire.ends[e] != process.number) continue;
      Process* const other = find(wire.ends[1 - e]);
      if (other == nullptr || other->worker != worker) continue;
      if (!wire.open[0] && !wire.open[1]) continue;
      end = e;
      return &wire;
    }
  }
  return nullptr;
}

void VirtualGroup::close_end(std::uint64_t number, int end, Duration within,
                             const std::string& why) {
  time_.after(time_.between(0ms, within), [this, number, end, why] {
    Wire& wire = wires_.at(number);
    if (!wire.open[end]) return;
    on(wire.ends[end], [this, number, end, why](Process& p) {
      Wire& ended = wires_.at(number);
      if (!std::exchange(ended.open[end], false)) return;
      const Process* const other = find(ended.ends[1 - end]);
      drive(p, [&](Outbox& out) { p.group->disconnected(other->worker, why, time_.now(), out); });
    });
  });
}

void VirtualGroup::send(Process& from, int worker, std::size_t bytes,
                        std::function<void(Process&)> act) {
  int end = 0;
  Wire* const wire = wire_of(from, worker, end);
  if (wire == nullptr || !wire->open[end]) return;
  const std::uint64_t number =
      std::ranges::find_if(wires_, [&](const auto& w) { return &w.second == wire; })->first;
  wire->links[end]->send(bytes, delay(), {}, [this, number, end, act = std::move(act)] {
    on(wires_.at(number).ends[1 - end], [this, number, end, act](Process& p) {
      const Wire& arrived = wires_.at(number);
      if (!arrived.open[1 - end] || time_.now() > arrived.lost_after) return;
      act(p);
    });
  });
}

void VirtualGroup::drive(Process& process, const std::function<void(Outbox&)>& event) {
  Outbox out;
  event(out);
  for (Outbox::Action& action : out.actions()) {
    if (auto* const to_send = std::get_if<Outbox::Send>(&action)) {
      const int from = process.worker;
      send(process, int(to_send->to), 64, [this, from, message = to_send->message](Process& p) {
        drive(p, [&](Outbox& next) { p.group->received(from, message, time_.now(), next); });
      });
    } else if (const auto* const line = std::get_if<Outbox::Line>(&action)) {
      result_.lines.push_back(
          fmt::format("{:.3f} worker:{}: {}", time_.seconds(), process.worker, line->before));
    }
  }
  look(process);
}

// Does what the state machine asks for, as the real driver does.
void VirtualGroup::look(Process& process) {
  CollectiveGroup& group = *process.group;
  const std::uint64_t number = process.number;
  if (process.retired) return;
  if (group.has_values() && std::int64_t(process.history.size()) + 1 == group.step()) {
    process.history.push_back(group.contributors());
    use_records(process);
    if (fence_) fence_->commit(number, group.contributors());
    process.progressed = time_.now();
    ++process.own_step;
    time_.mix(std::uint64_t(group.step()));
  }
  if (group.has_values() && std::int64_t(process.history.size()) != group.step()) {
    return complain(fmt::format("worker:{} has values of step {} after {} steps", process.worker,
                                group.step(), process.history.size()));
  }
  if (group.standing() == Standing::kMember) epochs_.emplace(group.epoch(), group.members());
  if (group.founded() && !std::exchange(process.initialised, true)) {
    time_.after(time_.between(1ms, 1s), [this, number] {
      on(number, [this](Process& p) {
        drive(p, [&](Outbox& out) { p.group->initialise(0, {}, time_.now(), out); });
      });
    });
  }
  if (group.must_rest()) {
    time_.after(time_.between(0ms, 20ms), [this, number] {
      on(number, [this](Process& p) {
        if (!p.group->must_rest()) return;
        drive(p, [&](Outbox& out) { p.group->rested(time_.now(), out); });
      });
    });
  }
  count_rounds(process);
  for (const std::int32_t worker : group.lacking()) {
    if (!process.sent_values.emplace(group.epoch(), worker).second) continue;
    send(process, worker, 75'000'000,
         [this, epoch = group.epoch(), history = process.history, used = process.used](Process& p) {
           take_values(p, epoch, history, used);
         });
    group.sent_values(worker);
  }
  if (group.may_begin() && !std::exchange(process.computes, true)) {
    time_.after(time_.between(1ms, 100ms), [this, number] {
      on(number, [this](Process& p) {
        p.computes = false;
        if (!p.group->may_begin()) return;
        take_records(p);
        const auto records = p.group->records().reads(p.read);
        read_[{p.group->step(), p.worker}][p.group->epoch()] = records;
        begin_exchanges(p);
        drive(p, [&](Outbox& out) {
          p.group->begin({.examples = 1, .own_step = p.own_step, .records = records}, time_.now(),
                         out);
        });
      });
    });
  }
  if (options_.exchanges > 0) exchange(process);
  if (group.started() && process.exchanged == options_.exchanges) contribute(process);
}

void VirtualGroup::contribute(Process& process) {
  const CollectiveGroup& group = *process.group;
  const Tag tag{group.epoch(), group.step()};
  if (process.sent == tag || !may_contribute(process)) return;
  process.sent = tag;
  const std::uint64_t number = process.number;
  time_.after(time_.between(1ms, 100ms), [this, number, tag] {
    on(number, [this, tag](Process& p) {
      const CollectiveGroup& now = *p.group;
      if (!now.started() || Tag{now.epoch(), now.step()} != tag) return;
      p.contributed[tag].insert(p.worker);
      if (fence_) fence_->give(p.number);
      for (const std::int32_t member : now.members()) {
        if (member == p.worker) continue;
        send(p, member, 1'000'000, [this, tag, from = p.worker](Process& to) {
          to.contributed[tag].insert(from);
          finish_if_whole(to);
        });
      }
      finish_if_whole(p);
    });
  });
}

void VirtualGroup::finish_if_whole(Process& process) {
  const CollectiveGroup& group = *process.group;
  const std::set<int>& have = process.contributed[{group.epoch(), group.step()}];
  const auto contributed = [&](std::int32_t member) { return have.contains(member); };
  if (!group.started() || !std::ranges::all_of(group.members(), contributed)) return;
  if (fence_ && !options_.plant_hasty && !fence_->given(process.number)) return;
  drive(process, [&](Outbox& out) { process.group->finish_sums(time_.now(), out); });
}

void VirtualGroup::take_values(Process& process, std::uint64_t epoch, const History& history,
                               const Records& used) {
  if (!process.group->wants_values_of(epoch)) return;
  process.history = history;
  process.used = used;
  ++result_.joined;
  if (fence_) fence_->lose(process.number, std::int64_t(history.size()));
  drive(process, [&](Outbox& out) {
    process.group->take_values(epoch, std::int64_t(history.size()), time_.now(), out);
  });
}

// Checks that some worker has made a step within a limit after the last fault. A series of faults
// may keep all workers from making steps for longer.
void VirtualGroup::check_progress() {
  TimePoint last = last_fault_;
  for (const auto& [number, process] : processes_) last = std::max(last, process->progressed);
  if (time_.now() - last > kProgressWithin + options_.join_timeout) {
    complain(fmt::format("no worker has made a step, and there was no fault, since {:.3f} s",
                         double(last.time_since_epoch().count()) * 1e-9));
  }
}

void VirtualGroup::check_end() {
  const Process* first = nullptr;
  for (const auto& [number, process] : processes_) {
    if (!process->alive || process->retired) continue;
    const CollectiveGroup& group = *process->group;
    if (group.standing() != Standing::kMember || !group.has_values()) {
      complain(fmt::format("worker:{} is no member with values at the end: standing {}, step {}",
                           process->worker, int(group.standing()), group.step()));
    }
    if (time_.now() - process->progressed > 2s) {
      complain(fmt::format("worker:{} makes no steps at the end", process->worker));
    }
    if (first == nullptr) first = process.get();
    const std::size_t both = std::min(first->history.size(), process->history.size());
    if (!std::equal(first->history.begin(), first->history.begin() + std::ptrdiff_t(both),
                    process->history.begin()) ||
        std::max(first->history.size(), process->history.size()) > both + 1) {
      complain(fmt::format("worker:{} has applied other steps than worker:{}", process->worker,
                           first->worker));
    }
    // Jobs with ps tasks do not share records out among the workers.
    fence_ ? check_rounds(*process) : check_records(*process);
    result_.steps = std::max(result_.steps, std::int64_t(process->history.size()));
  }
}

// The faults of an all-reduce in virtual time.

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

// True when training can go on without the process, because some other worker has values that are
// new enough. Without ps tasks, these may be one step older than the values of the process. With ps
// tasks they may not, since the ps tasks may already have closed the round of the last step.
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

// The cut may end before anybody has noticed it.
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

// The sums that the workers of an all-reduce make in the middle of a step, in virtual time.

using namespace std::chrono_literals;

void VirtualGroup::begin_exchanges(Process& process) {
  const Tag tag{process.group->epoch(), process.group->step()};
  if (process.exchanges_of && process.exchanges_of->step == tag.step) ++result_.repeated;
  process.exchanges_of = tag;
  process.exchanged = 0;
  process.gave = false;
}

// Makes the exchanges of the step that the process has begun, one after the other.
void VirtualGroup::exchange(Process& process) {
  const CollectiveGroup& group = *process.group;
  if (group.begun_by(process.worker) == nullptr) return;
  const Tag tag{group.begun_by(process.worker)->epoch, group.step()};
  if (process.exchanges_of != tag || process.gave) return;
  if (process.exchanged == options_.exchanges) return;
  process.gave = true;
  time_.after(time_.between(100us, 20ms), [this, number = process.number, tag] {
    on(number, [this, tag](Process& p) { give_sums(p, tag); });
  });
}

void VirtualGroup::give_sums(Process& process, Tag tag) {
  const CollectiveGroup& group = *process.group;
  const CollectiveBegin* const begun = group.begun_by(process.worker);
  if (begun == nullptr || Tag{begun->epoch, group.step()} != tag) return;
  const std::vector<double> own{1, double(process.worker)};
  const std::uint32_t which = process.sums->give(number_of(tag), own);
  for (const std::int32_t member : group.members()) {
    if (member == process.worker) continue;
    send(process, member, 1000, [this, tag, which, own, from = process.worker](Process& to) {
      to.sums->take(from, number_of(tag), which, own);
      finish_exchange(to);
    });
  }
  finish_exchange(process);
}

void VirtualGroup::finish_exchange(Process& process) {
  const CollectiveGroup& group = *process.group;
  const CollectiveBegin* const begun = group.begun_by(process.worker);
  if (begun == nullptr || !process.gave || process.exchanged == options_.exchanges) return;
  if (process.exchanges_of != Tag{begun->epoch, group.step()}) return;
  const std::vector<std::int32_t>& members = group.members();
  if (process.sums->which() != std::uint32_t(process.exchanged)) return;
  if (!process.sums->whole(members)) return;
  std::vector<double> sums(2), expected{double(members.size()), 0};
  process.sums->sum(members, sums);
  for (const std::int32_t member : members) expected[1] += member;
  if (sums != expected) complain(fmt::format("worker:{} has other sums", process.worker));
  ++process.exchanged;
  process.gave = false;
  look(process);
}

// VirtualGroup: a part of each contribution goes to ps tasks.

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

// As in a real worker, the step thread asks for the round as soon as it has begun the step.
void VirtualGroup::count_rounds(Process& process) {
  const CollectiveGroup& group = *process.group;
  if (fence_ == nullptr || group.begun_by(process.worker) == nullptr) return;
  if (!may_contribute(process) || process.counted == group.step()) return;
  process.counted = group.step();
  drive(process,
        [&](Outbox& out) { process.group->set_counted(process.counted, time_.now(), out); });
}

// The worker was left behind by the others: its session ends, and the program begins another one.
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

// Checks that each step that counts is one round with the same contributors.
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

// VirtualGroup: the records that its workers share out.

// The worker takes more records than its next step reads, as a pipeline does. It gets none while
// the deal is frozen.
void VirtualGroup::take_records(Process& process) {
  constexpr std::int64_t kBatch = 40, kAhead = 100, kLimit = 1'000'000;
  GroupRecordSharing& records = process.group->records();
  if (records.revoked()) {
    records.begin();
    process.read = 0;
  }
  std::int64_t held = 0;
  for (const RecordRange& range : records.held()) held += range.size();
  while (held < kAhead) {
    const RecordRange taken = records.take(kLimit);
    if (taken.size() == 0) break;
    held += taken.size();
  }
  process.read += std::min(held, kBatch);
}

// If all processes that committed a step have ended, the other workers may make the step again,
// from other records. So a worker's records are those that it read last, in this process's epoch or
// before.
void VirtualGroup::use_records(Process& process) {
  const std::int64_t step = std::int64_t(process.history.size()) - 1;
  std::vector<RecordRange>& used = process.used.emplace_back();
  for (const std::int32_t worker : process.history.back()) {
    const auto& begun = read_[{step, worker}];
    const auto after = begun.upper_bound(process.group->epoch());
    if (after == begun.begin()) continue;
    const auto& read = std::prev(after)->second;
    used.insert(used.end(), read.begin(), read.end());
  }
}

// Checks that a record is unused until a step that counts has read it.
void VirtualGroup::check_records(Process& process) {
  std::set<std::int64_t> used;
  for (const auto& step : process.used) {
    for (const RecordRange& range : step) {
      for (std::int64_t record = range.first; record < range.end; ++record) {
        if (used.insert(record).second) continue;
        return complain(fmt::format("worker:{} has used record {} again", process.worker, record));
      }
    }
  }
  const RecordSet& unused = process.group->records().unused();
  for (std::int64_t record = 0; record < unused.ranges().back().first + 100; ++record) {
    if (used.contains(record) != unused.contains({record, record + 1})) continue;
    return complain(fmt::format("worker:{}: record {} is {}", process.worker, record,
                                used.contains(record) ? "used, and unused" : "lost"));
  }
  result_.records = std::int64_t(used.size());
}

// The end of an all-reduce in virtual time: which worker saves.

using namespace std::chrono_literals;

namespace {

constexpr Duration kEndPatience = 10s;  // as long as that of a session
constexpr Duration kEndWithin = 60s;

}  // namespace

// One worker ends the training of all, as early stopping does. Some workers are killed meanwhile.
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

// Does what a session does between two steps, and after the last step.
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

// Checks that every living worker leaves, that the last step that those who left have committed is
// saved, and that no two workers save at the same time.
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

#include "params/protocol/testing/virtual_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace paceline {

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
  if (ending()) return;  // who has not joined by now is too late
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
    // It is known to its ends before any message of the other. A new process of a worker takes the
    // place of the old one.
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

// Does what the machine asks for, as its driver would.
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

// A worker that runs makes steps, or is on its way to a group that does; faults one after the other
// may keep all from it.
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
    // Jobs with ps tasks share no records out in this way.
    fence_ ? check_rounds(*process) : check_records(*process);
    result_.steps = std::max(result_.steps, std::int64_t(process->history.size()));
  }
}

}  // namespace paceline

#include "params/protocol/testing/virtual_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "params/protocol/reply_schedule.h"
#include "params/protocol/testing/virtual_ps.h"
#include "params/protocol/testing/virtual_worker.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

// Variables whose values fill several chunks, less than one chunk, and a few bytes.
std::vector<VariableSpec> virtual_variables() {
  return {{.name = "large", .shape = {1024, 1024}},
          {.name = "middle", .shape = {600, 600}},
          {.name = "small", .shape = {100, 1000}},
          {.name = "tiny", .shape = {16}}};
}

}  // namespace

void VirtualNetwork::set_ends(std::function<void(PeerId)> ps, std::function<void(PeerId)> worker) {
  ps_sees_end_ = std::move(ps);
  worker_sees_end_ = std::move(worker);
}

PeerId VirtualNetwork::connect(int worker, int ps, std::uint64_t incarnation) {
  const VirtualLink link(time_, options_.bytes_per_s);
  ++made_;
  wires_.emplace(made_, VirtualWire{.worker = worker,
                                    .ps = ps,
                                    .incarnation = incarnation,
                                    .peer = made_,
                                    .to_ps = link,
                                    .to_worker = link});
  return made_;
}

Duration VirtualNetwork::delay() {
  return time_.happens(0.02) ? time_.between(1ms, 300ms) : time_.between(50us, 5ms);
}

// True when the message is lost. A stream does not continue after a lost message.
bool VirtualNetwork::loses(PeerId id, TimePoint& until) {
  if (options_.losses == 0 || !time_.happens(options_.losses)) return false;
  ++lost_;
  if (options_.plant == VirtualOptions::Plant::kLossGoesOn) return true;
  cut(id, 1s);
  until = time_.now();
  return true;
}

std::function<void()> VirtualNetwork::unless_lost(PeerId id, TimePoint VirtualWire::*until,
                                                  std::function<void()> arrived) {
  return [this, id, until, arrived = std::move(arrived)] {
    if (time_.now() > wire(id).*until) return void(++lost_);
    arrived();
  };
}

void VirtualNetwork::to_ps(PeerId id, std::size_t bytes, std::function<void()> arrived) {
  VirtualWire& it = wire(id);
  if (loses(id, it.to_ps_until)) return;
  it.to_ps.send(bytes, delay(), {}, unless_lost(id, &VirtualWire::to_ps_until, std::move(arrived)));
}

void VirtualNetwork::to_worker(PeerId id, std::size_t bytes, std::function<void()> sent,
                               std::function<void()> arrived) {
  VirtualWire& it = wire(id);
  if (loses(id, it.to_worker_until)) arrived = [] {};
  it.to_worker.send(bytes, delay(), std::move(sent),
                    unless_lost(id, &VirtualWire::to_worker_until, std::move(arrived)));
}

void VirtualNetwork::cut(PeerId id, Duration noticed) {
  VirtualWire& it = wire(id);
  if (std::exchange(it.cut, true)) return;
  const Duration ps = time_.between(Duration(0), noticed);
  const Duration worker = time_.between(Duration(0), noticed);
  // Each direction may still work for a while after the cut.
  it.to_ps_until = time_.now() + (time_.happens(0.5) ? time_.between(Duration(0), ps) : 0ns);
  it.to_worker_until =
      time_.now() + (time_.happens(0.5) ? time_.between(Duration(0), worker) : 0ns);
  time_.after(ps, [this, id] { ps_sees_end_(id); });
  time_.after(worker, [this, id] { worker_sees_end_(id); });
}

void VirtualNetwork::cut_after_last_to_worker(PeerId id) {
  time_.at(wire(id).to_worker.last_arrival(), [this, id] { cut(id, Duration(0)); });
}

void VirtualNetwork::cut_after_last_to_ps(PeerId id) {
  time_.at(wire(id).to_ps.last_arrival() + 1ms, [this, id] { cut(id, 1ms); });
}

namespace {

using namespace std::chrono_literals;

constexpr Duration kNoticedAtLatest = 5s;  // the longest time until a lost peer is noticed
constexpr Duration kLongestStep = 1s;

double in_seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void VirtualChecks::fail(const std::string& why) {
  result_.errors.push_back(
      fmt::format("seed {} at {:.3f} s: {}", options_.seed, time_.seconds(), why));
}

void VirtualChecks::applied(const VirtualStep& step, std::uint32_t piece, Cut part) {
  applied_[step][piece].emplace(part.begin, part.size);
}

void VirtualChecks::ended(const VirtualStep& step) {
  const bool first_time = ended_.insert(step).second;
  if (step.ps == 0) use_records(step);
  if (step.ps != 0) return;
  std::int64_t& next = ended_on_first_[step.worker];
  if (!first_time || step.step < next) {
    fail(fmt::format("step {} of worker:{} counts twice", step.step, step.worker));
  }
  next = step.step + 1;
}

void VirtualChecks::told(const VirtualStep& step) {
  if (ended_.contains(step)) return;
  fail(fmt::format("worker:{} is told that its step {} counts on ps:{}, where it does not",
                   step.worker, step.step, step.ps));
}

void VirtualChecks::closed(int ps, std::uint64_t coordinator, std::int64_t round,
                           const std::vector<VirtualStep>& sums) {
  std::vector<VirtualStep> anywhere = sums;
  for (VirtualStep& step : anywhere) step.ps = 0;
  const auto [first, is_first] = rounds_.try_emplace({coordinator, round}, anywhere);
  if (is_first || first->second == anywhere) return;
  fail(fmt::format("ps:{} sums other contributions than another ps", ps));
}

void VirtualChecks::read(int worker, std::uint64_t incarnation, int ps, std::int64_t rounds) {
  read_[{worker, incarnation}][ps] = rounds;
}

void VirtualChecks::check_read(int worker, std::uint64_t incarnation) {
  const std::map<int, std::int64_t>& rounds = read_[{worker, incarnation}];
  for (const auto& [ps, round] : rounds) {
    if (round == rounds.begin()->second) continue;
    fail(fmt::format("a contribution of worker:{} counts, made from values of rounds {} and {}",
                     worker, rounds.begin()->second, round));
  }
}

void VirtualChecks::goes_back(std::span<const std::int64_t> own_steps) {
  for (std::size_t i = 0; i < own_steps.size(); ++i) ended_on_first_[int(i)] = own_steps[i];
}

std::int64_t VirtualChecks::ended_on_first(int worker) const {
  const auto found = ended_on_first_.find(worker);
  return found == ended_on_first_.end() ? 0 : found->second;
}

void VirtualChecks::check_contributions(int ps, std::span<const AssemblyTarget> targets) {
  for (const auto& [step, pieces] : applied_) {
    if (step.ps != ps) continue;
    for (const AssemblyTarget& target : targets) {
      const auto found = pieces.find(target.where.id);
      std::size_t next = 0;
      for (const auto& [begin, size] :
           found == pieces.end() ? std::multimap<std::size_t, std::size_t>() : found->second) {
        if (begin != next) {
          fail(fmt::format("piece {} on ps:{} of step {} of worker:{} was applied at {} after {}",
                           target.where.id, ps, step.step, step.worker, begin, next));
        }
        next = begin + size;
      }
      if (ended_.contains(step) && next != target.bytes()) {
        fail(fmt::format("step {} of worker:{} has ended on ps:{} with {} of {} bytes of piece {}",
                         step.step, step.worker, ps, next, target.bytes(), target.where.id));
      }
    }
  }
}

void VirtualChecks::set_order(PeerId id, std::span<const std::uint32_t> pieces) {
  Replies& replies = replies_[id];
  replies.ranks.clear();
  for (std::size_t i = 0; i < pieces.size(); ++i) replies.ranks[pieces[i]] = i;
}

std::size_t VirtualChecks::rank(const Replies& replies, std::uint32_t piece) {
  const auto found = replies.ranks.find(piece);
  return found == replies.ranks.end() ? replies.ranks.size() : found->second;
}

void VirtualChecks::pushed(PeerId id, std::uint32_t piece, std::size_t bytes) {
  Replies& replies = replies_[id];
  ++replies.waiting[rank(replies, piece)];
  ++result_.replies;
  if (replies.in_connection > 0 && replies.in_connection + bytes > kReplyWindowBytes) {
    ++result_.waiting_replies;
  }
}

void VirtualChecks::given(PeerId id, std::uint32_t piece, std::size_t bytes) {
  Replies& replies = replies_[id];
  const auto first = replies.waiting.begin();
  const std::size_t its = rank(replies, piece);
  if (first->first < its) {
    fail(fmt::format("a reply about piece {} goes before one that is needed first", piece));
  }
  if (--replies.waiting[its] == 0) replies.waiting.erase(its);
  replies.in_connection += bytes;
  if (++replies.connection_has > 1 && replies.in_connection > kReplyWindowBytes) {
    fail(fmt::format("a connection has {} bytes of replies", replies.in_connection));
  }
}

void VirtualChecks::sent(PeerId id, std::size_t bytes) {
  Replies& replies = replies_[id];
  replies.in_connection -= bytes;
  --replies.connection_has;
}

// Checks that the worker has not waited too long. Every lost task is noticed in time, but a worker
// may wait for several lost tasks, one after another.
void VirtualChecks::waited(int worker, Duration time) {
  result_.longest_wait_s = std::max(result_.longest_wait_s, in_seconds(time));
  if (time > (options_.workers + 3) * (kNoticedAtLatest + kLongestStep)) {
    fail(fmt::format("worker:{} has waited for {:.1f} s", worker, in_seconds(time)));
  }
}

void VirtualChecks::began_ahead(std::int64_t steps) {
  result_.most_ahead = std::max(result_.most_ahead, steps);
}

void VirtualChecks::reads(int worker, std::uint64_t incarnation, std::int64_t step,
                          const std::vector<RecordRange>& records) {
  read_records_[{worker, incarnation, step, 0}] = records;
  for (const RecordRange& range : records) {
    for (std::int64_t record = range.first; record < range.end; ++record) {
      if (!given_.insert(record).second) ++result_.records_given_again;
    }
  }
}

void VirtualChecks::use_records(const VirtualStep& step) {
  for (const RecordRange& range : read_records_[step]) {
    for (std::int64_t record = range.first; record < range.end; ++record) {
      if (used_.insert(record).second) continue;
      fail(fmt::format("record {} is used again by step {} of worker:{}", record, step.step,
                       step.worker));
    }
  }
}

VirtualWorld::VirtualWorld(const VirtualOptions& the_options)
    : options(the_options), time(the_options.seed), checks(time, options), network(time, options) {
  declare.last_step = options.records > 0 ? 0 : options.last_step;
  declare.aggregation = options.aggregation;
  declare.shares_records = options.records > 0;
  declare.aggregation.num_ps = options.ps;
  declare.aggregation.coordinator = "ps:0";
  declare.variables = virtual_variables();
  declare.pieces = place_variables(declare.variables, options.ps);
  checkpoint.own_steps.resize(std::size_t(options.workers));
}

VirtualWorld::~VirtualWorld() = default;

void VirtualWorld::caller_received(PeerId wire, const ControlMessage& message) {
  const int caller = network.wire(wire).worker;
  if (caller < 0) return ps[std::size_t(-caller)]->from_coordinator(wire, message);
  workers[std::size_t(caller)]->received(wire, message);
}

void VirtualWorld::caller_confirmed(PeerId wire, std::uint64_t handled) {
  const int caller = network.wire(wire).worker;
  if (caller < 0) return ps[std::size_t(-caller)]->coordinator_confirmed(wire, handled);
  workers[std::size_t(caller)]->confirmed(wire, handled);
}

void VirtualWorld::caller_closed(PeerId wire) {
  const int caller = network.wire(wire).worker;
  if (caller < 0) return ps[std::size_t(-caller)]->coordinator_closed(wire);
  workers[std::size_t(caller)]->closed(wire);
}

std::vector<AssemblyTarget> VirtualWorld::needed_from(int index) const {
  std::vector<AssemblyTarget> targets = assembly_targets(declare.variables, declare.pieces, index);
  std::ranges::reverse(targets);
  return targets;
}

}  // namespace paceline

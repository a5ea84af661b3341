#include "params/protocol/testing/virtual_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "params/protocol/reply_schedule.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

constexpr Duration kNoticedAtLatest = 5s;  // a lost peer
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

// Somebody who is lost is noticed; a worker may wait for several, one after another.
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

}  // namespace paceline

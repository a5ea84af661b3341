// WorkerTask: rounds that the workers commit, and records that are shared out.
#include <algorithm>
#include <utility>

#include "params/protocol/worker_task.h"

namespace paceline {

void WorkerTask::commit(const CommittedRound& committed, Outbox& out) {
  out.send(0, MessageType::kCommitted, committed);
}

void WorkerTask::withdraw(std::int64_t step, Outbox& out) {
  out.send(0, MessageType::kWithdraw, {}, std::uint64_t(step));
}

void WorkerTask::await_round(std::int64_t round, Outbox& out) {
  for (std::size_t ps = 0; ps < peers_.size(); ++ps) {
    peers_[ps].open_round.reset();
    out.send(ps, MessageType::kRoundOpen, {}, std::uint64_t(round));
  }
}

bool WorkerTask::round_is_open() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.open_round.has_value(); });
}

void WorkerTask::begin_again(std::string why, const BeginAgain& again, TimePoint now, Outbox& out) {
  lost_values_ = 0;
  deadline_ = now + options_.join_timeout;
  lost_why_ = std::move(why);
  others_follow_ = true;
  forget_values(0, again, out);
}

void WorkerTask::ask_records(const RecordWish& wish, Outbox& out) {
  out.send(0, MessageType::kAskRecords, wish);
}

void WorkerTask::reads_records(std::int64_t records, Outbox& out) {
  out.send(0, MessageType::kReadsRecords, records, std::uint64_t(next_step_ - 1));
}

void WorkerTask::on_records(const GivenRecords& given) {
  given_.ranges.insert(given_.ranges.end(), given.ranges.begin(), given.ranges.end());
  given_.over = given_.over || given.over;
}

}  // namespace paceline

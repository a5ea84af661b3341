// PsTask: ps 0 shares out the records of a data set.
#include <algorithm>

#include "paceline/error.h"
#include "params/protocol/ps_task.h"

namespace paceline {

void PsTask::on_ask_records(PeerId id, const Peer& peer, const RecordWish& wish, Outbox& out) {
  check_agreed(id, true);
  if (!shares_) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] no records are shared out in this job");
  }
  PsRecordSharing::Answers answers;
  shares_->joined(peer.worker, peer.incarnation, answers);
  shares_->ask(peer.worker, peer.incarnation, wish, answers);
  give_records(answers, out);
}

void PsTask::on_reads_records(PeerId id, const Peer& peer, std::int64_t step, std::int64_t records,
                              Outbox& out) {
  check_agreed(id, true);
  if (!shares_) return;
  PsRecordSharing::Answers answers;
  shares_->reads(peer.worker, peer.incarnation, step, records, answers);
  give_records(answers, out);
}

void PsTask::counts_records(int worker, std::uint64_t incarnation, std::int64_t step, bool counts,
                            Outbox& out) {
  if (!shares_) return;
  PsRecordSharing::Answers answers;
  if (counts) {
    shares_->counted(worker, incarnation, step, answers);
  } else {
    shares_->in_vain(worker, incarnation, step, answers);
  }
  give_records(answers, out);
}

// A contribution to a round may count after its worker was lost.
void PsTask::reads_no_more(const Peer& peer, bool lost, Outbox& out) {
  if (!shares_ || peer.worker < 0) return;
  RoundCoordinator::Decisions decisions;
  const bool may_count =
      lost && coordinator_ &&
      coordinator_->forget_unless_whole(peer.worker, peer.incarnation, decisions);
  PsRecordSharing::Answers answers;
  shares_->left(peer.worker, peer.incarnation, may_count, answers);
  decide(decisions, out);
  give_records(answers, out);
}

// An answer to a worker that is cut off arrives once it is back.
void PsTask::give_records(const PsRecordSharing::Answers& answers, Outbox& out) {
  for (const PsRecordSharing::Answer& answer : answers) {
    const auto reads = std::ranges::find_if(peers_, [&](const auto& entry) {
      return entry.second.worker == answer.worker && entry.second.takes_part();
    });
    if (reads != peers_.end()) out.send(reads->first, MessageType::kRecords, answer.given);
  }
}

}  // namespace paceline

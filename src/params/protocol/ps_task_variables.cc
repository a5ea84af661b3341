// PsTask: the workers agree on the variables, and the chief initialises them. A ps builds no graph:
// it learns variables, slots and rules from the chief, so that one ps serves any model.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "paceline/error.h"
#include "params/protocol/flag_difference.h"
#include "params/protocol/ps_task.h"
#include "params/wire/variables.h"

namespace paceline {

void PsTask::check_agreed(PeerId peer, bool initialised) const {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.agreed) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] the variables are not agreed on yet");
  }
  if (initialised && !initialised_) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] the variables are not initialised yet");
  }
}

// The chief's list counts. Another worker's may come first, and is then compared when that comes.
void PsTask::on_declare(PeerId, Peer& peer, const Declare& declare, Outbox& out) {
  if (peer.agreed || peer.declared) {
    throw Error(ErrorCode::kDataLoss, "[ps] the variables are declared twice");
  }
  peer.declared = declare;
  if (peer.worker == 0 && !declared_) take_declaration(peer, declare);
  if (!declared_) return;
  for (auto& [id, other] : peers_) {
    if (other.declared) check_declaration(id, other, out);
  }
}

void PsTask::take_declaration(const Peer& chief, const Declare& declare) {
  std::unique_ptr<Aggregation> aggregation = make_aggregation(declare.aggregation);
  changed_after_reads_ = take_variables_(declare);
  aggregation_ = std::move(aggregation);
  if (declare.shares_records && counts_steps()) {
    // Elsewhere a worker that waits for records would hold up those that have them.
    const bool waits = declare.aggregation.kind == AggregationKind::kAsync;
    shares_ = std::make_unique<PsRecordSharing>(options_.workers, waits);
  }
  if (declare.last_step > 0) membership_.set_last_step(declare.last_step);
  declared_ = declare;
  flags_ = chief.flags;
}

void PsTask::check_declaration(PeerId id, Peer& peer, Outbox& out) {
  const Declare theirs = *std::exchange(peer.declared, std::nullopt);
  const std::string task = fmt::format("worker:{}", peer.worker);
  const std::string flags = flag_difference(flags_, "the chief", peer.flags, task);
  if (!flags.empty()) return refuse(id, flags, out);
  const std::string difference =
      first_difference(declared_->variables, "the chief", theirs.variables, task);
  if (!difference.empty()) return refuse(id, "other variables: " + difference, out);
  if (theirs.pieces != declared_->pieces) {
    return refuse(id,
                  fmt::format("the chief places {} pieces, {} places {} otherwise",
                              declared_->pieces.size(), task, theirs.pieces.size()),
                  out);
  }
  if (theirs.aggregation != declared_->aggregation) {
    return refuse(id,
                  fmt::format("the chief's --strategy is {}, that of {} is {}",
                              declared_->aggregation.str(), task, theirs.aggregation.str()),
                  out);
  }
  agree(id, peer, out);
}

void PsTask::agree(PeerId id, Peer& peer, Outbox& out) {
  peer.agreed = true;
  out.share_values(id);
  out.send(id, MessageType::kDeclared,
           Declared{.initialised = initialised_, .changed_after_reads = changed_after_reads_});
  if (initialised_) tell_initialised(id, peer, out);
  if (!counts_steps()) return;
  peer.told = told_;
  out.send(id, MessageType::kJobState, told_);
}

void PsTask::on_write_end(PeerId id, Peer& peer, std::int64_t global_step, TimePoint now,
                          Outbox& out) {
  check_agreed(id, false);
  if (peer.worker != 0) {
    throw Error(ErrorCode::kFailedPrecondition, "[ps] only the chief initialises");
  }
  initialised_ = true;
  membership_.set_global_step(global_step);
  if (in_rounds()) open_rounds(now);
  out.send(id, MessageType::kWritten);
  for (auto& [other, its] : peers_) {
    if (its.takes_part()) tell_initialised(other, its, out);
  }
}

}  // namespace paceline

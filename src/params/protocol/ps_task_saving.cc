// PsTask: checkpoints, and what is a worker's own.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "params/protocol/ps_task.h"
#include "params/wire/task_state.h"

namespace paceline {

void PsTask::check_is_chief(PeerId id, MessageType type) const {
  if (worker(id) == 0) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[ps] {} from worker:{}, not from the chief", name_of(type), worker(id)));
}

void PsTask::on_find_file(PeerId id, const FindFile& file, Outbox& out) {
  check_agreed(id, false);
  check_is_chief(id, MessageType::kFindFile);
  out.add(Outbox::Find{id, file});
}

void PsTask::on_mark(PeerId id, std::uint64_t save, Outbox& out) {
  check_agreed(id, true);
  check_is_chief(id, MessageType::kMark);
  SavedShard what;
  what.global_step = membership_.global_step();
  for (int worker = 0; worker < membership_.workers(); ++worker) {
    what.workers.push_back({membership_.applied(worker), false});
  }
  if (shares_) what.unused = shares_->unused().ranges();
  if (counts_steps()) ask_for_states(id, save, what, out);
  out.add(Outbox::Mark{id, std::move(what)});
}

// A worker whose last step is told already need not be asked: it may have ended its training, and
// would not answer.
void PsTask::ask_for_states(PeerId chief, std::uint64_t save, SavedShard& what, Outbox& out) {
  for (auto& [id, peer] : peers_) {
    if (peer.worker <= 0 || !peer.takes_part() || peer.is_cut_off()) continue;
    if (knows_state(peer.worker)) continue;
    out.send(id, MessageType::kAskState, {}, save);
    peer.state_asked = save;
    what.workers[std::size_t(peer.worker)].asked = true;
  }
  for (std::size_t worker = 1; worker < what.workers.size(); ++worker) {
    if (!knows_state(int(worker))) continue;
    out.send(chief, MessageType::kTaskState, states_[worker].bytes, save);
  }
}

bool PsTask::knows_state(int worker) const {
  const KnownState& known = states_[std::size_t(worker)];
  return known.bytes != nullptr && known.step == membership_.applied(worker);
}

void PsTask::on_task_state(Peer& peer, const StateBytes& bytes, std::uint64_t save, Outbox& out) {
  const TaskState state = decode_task_state(*bytes);
  const bool resumes = peer.worker == 0 && !initialised_;
  if (state.worker < 0 || state.worker >= membership_.workers() ||
      (!resumes && state.worker != peer.worker)) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[ps] a state of worker:{} from worker:{}", state.worker, peer.worker));
  }
  if (resumes) membership_.set_applied(state.worker, state.step);
  if (resumes && shares_) {
    if (auto unused = unused_of(state.position)) shares_->restore(std::move(*unused));
  }
  states_[std::size_t(state.worker)] = {state.step, bytes};
  const bool asked = save != 0 && save == std::exchange(peer.state_asked, 0);
  if (resumes || !asked) return;
  for (const auto& [id, other] : peers_) {
    if (other.worker == 0 && other.takes_part()) {
      out.send(id, MessageType::kTaskState, bytes, save);
    }
  }
}

}  // namespace paceline

// ServerJob: checkpoints, and what is a worker's own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "params/server/job.h"
#include "params/server/peer.h"
#include "params/wire/task_state.h"

namespace paceline {
namespace {

void check_is_chief(const ServerPeer& peer, MessageType type) {
  if (peer.standing.worker == 0) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[ps] {} from worker:{}, not from the chief", name_of(type),
                          peer.standing.worker));
}

bool takes_part(const ServerPeer& peer) {
  const ServerPeer::Standing& standing = peer.standing;
  return standing.agreed && !standing.left && !standing.closed;
}

}  // namespace

void ServerJob::find_file(ServerPeer& peer, const FindFile& file) {
  Shard& shard = shard_for(peer, false);
  check_is_chief(peer, MessageType::kFindFile);
  const std::array<std::byte, 1> found = {std::byte(saving_.find(file, shard) ? 1 : 0)};
  peer.replies().send(MessageType::kFoundFile, found);
}

void ServerJob::mark(ServerPeer& peer, std::uint64_t save) {
  Shard& shard = shard_for(peer, true);
  check_is_chief(peer, MessageType::kMark);
  SavedShard what;
  {
    const std::lock_guard lock(mutex_);
    what.global_step = membership_.global_step();
    for (int worker = 0; worker < membership_.workers(); ++worker) {
      what.workers.push_back({membership_.applied(worker), false});
    }
    if (counts_steps()) ask_for_states(peer, save, what);
  }
  saving_.mark(shard, what);
}

// One whose last step is told already need not be asked: it may have ended its training, and would
// not answer.
void ServerJob::ask_for_states(ServerPeer& chief, std::uint64_t save, SavedShard& what) {
  for (const auto& peer : peers_) {
    const int worker = peer->standing.worker;
    if (worker <= 0 || !takes_part(*peer) || knows_state(worker)) continue;
    tell(*peer, [&] { peer->replies().send(MessageType::kAskState, {}, save); });
    peer->standing.state_asked = save;
    what.workers[std::size_t(worker)].asked = true;
  }
  for (std::size_t worker = 1; worker < what.workers.size(); ++worker) {
    if (!knows_state(int(worker))) continue;
    chief.replies().send_task_state(states_[worker].bytes, save);
  }
}

bool ServerJob::knows_state(int worker) const {
  const KnownState& known = states_[std::size_t(worker)];
  return known.bytes != nullptr && known.step == membership_.applied(worker);
}

void ServerJob::save_shard(ServerPeer& peer, const std::string& path, std::uint64_t save) {
  Shard& shard = shard_for(peer, true);
  check_is_chief(peer, MessageType::kSaveShard);
  saving_.write(shard, path, [this, &peer, save](const SavedShard& saved) {
    const std::lock_guard lock(mutex_);
    tell(peer, [&] { peer.replies().send(MessageType::kSaved, encode(saved), save); });
  });
}

void ServerJob::take_state(ServerPeer& peer, std::vector<std::byte> bytes, std::uint64_t save) {
  const TaskState state = decode_task_state(bytes);
  const std::lock_guard lock(mutex_);
  const bool resumes = peer.standing.worker == 0 && !initialised_;
  if (state.worker < 0 || state.worker >= membership_.workers() ||
      (!resumes && state.worker != peer.standing.worker)) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[ps] a state of worker:{} from worker:{}",
                                                  state.worker, peer.standing.worker));
  }
  if (resumes) membership_.set_applied(state.worker, state.step);
  const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  states_[std::size_t(state.worker)] = {state.step, kept};
  const bool asked = save != 0 && save == std::exchange(peer.standing.state_asked, 0);
  if (resumes || !asked) return;
  for (const auto& other : peers_) {
    if (other->standing.worker != 0 || !takes_part(*other)) continue;
    other->replies().send_task_state(kept, save);
  }
}

void ServerJob::tell_initialised(ServerPeer& peer) {
  const int worker = peer.standing.worker;
  // Where it was when the checkpoint was written; a worker that was restarted later begins anew.
  if (knows_state(worker)) {
    peer.replies().send_task_state(states_[std::size_t(worker)].bytes, 0);
  }
  peer.replies().send(MessageType::kInitialised,
                      encode(Initialised{.global_step = membership_.global_step(),
                                         .own_step = membership_.applied(worker)}));
}

bool ServerJob::ask_to_leave() {
  const std::lock_guard lock(mutex_);
  bool somebody = false;
  for (const auto& peer : peers_) {
    if (!takes_part(*peer)) continue;
    peer->replies().send(MessageType::kStop, {});
    somebody = true;
  }
  return somebody;
}

bool ServerJob::all_gone() const {
  const std::lock_guard lock(mutex_);
  return membership_.connected() == 0;
}

}  // namespace paceline

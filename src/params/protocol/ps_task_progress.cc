// PsTask: the chief asks for the progress of the other workers, which only ps 0 passes on.
#include <utility>

#include "params/protocol/ps_task.h"

namespace paceline {

// A worker that has not answered is not asked again, so that nothing piles up for one that stands
// still.
void PsTask::on_ask_progress(PeerId id, const Peer& chief, Outbox& out) {
  check_is_chief(id, MessageType::kAskProgress);
  if (!counts_steps() || chief.left) return;
  for (auto& [to, peer] : peers_) {
    if (peer.worker <= 0 || !peer.takes_part() || peer.is_cut_off() || peer.progress_asked)
      continue;
    peer.progress_asked = true;
    out.send(to, MessageType::kAskProgress);
  }
}

void PsTask::on_progress(Peer& peer, const std::string& text, Outbox& out) {
  if (!std::exchange(peer.progress_asked, false)) return;
  for (const auto& [id, other] : peers_) {
    if (other.worker != 0 || !other.takes_part()) continue;
    out.send(id, MessageType::kProgress, text, std::uint64_t(peer.worker) + 1);
  }
}

}  // namespace paceline

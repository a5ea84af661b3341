// VirtualPs: synchronous rounds, and its connection to ps 0.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/protocol/testing/virtual_ps.h"

namespace paceline {

void VirtualPs::begin_rounds() {
  rounds_.clear();
  kept_.clear();
  squares_told_ = clipped_ = false;
  coordinator_ = {.stream =
                      VirtualStream([this](PeerId wire, const VirtualStream::Message& message) {
                        world_.network.to_ps(wire, message.bytes,
                                             [arrived = message.arrived, wire] { arrived(wire); });
                      })};
  coordinator_.incarnation = incarnation_ + 1;  // of ps 0: its own
}

// Contributions.

void VirtualPs::keep(PeerId id, const FrameHeader& header, Outbox& out) {
  const VirtualStep step = step_of(id, header);
  kept_.insert(step);
  machine_->end_step(id, step.step, Fate::kKeep, world_.time.now(), out);
  if (index_ != 0 || !world_.planted(VirtualOptions::Plant::kOneShardIsEnough)) return;
  pretend_others_have({.worker = step.worker,
                       .incarnation = step.incarnation,
                       .step = step.step,
                       .round = machine_->global_step(),
                       .examples = 1},
                      out);
}

void VirtualPs::pretend_others_have(const RoundContribution& contribution, Outbox& out) {
  for (const auto& [id, peer] : peers_) {
    if (machine_->shard(id) < 0) continue;
    machine_->received(id, {MessageType::kWhole, contribution}, world_.time.now(), out);
  }
}

// They are taken in their order: a round that is clipped waits for the squares of all.
void VirtualPs::carry_out_rounds() {
  if (std::exchange(carries_out_, true)) return;
  while (!rounds_.empty()) {
    const RoundDecision& decision = rounds_.front().decision;
    const bool clips =
        !decision.contributors.empty() && decision.contributors.front().clip_norm > 0;
    if (clips && !std::exchange(squares_told_, true)) {
      Outbox out;
      machine_->squares({decision.round, 1}, out);
      carry_out(out);
    }
    if (clips && !clipped_) break;
    squares_told_ = clipped_ = false;
    const Outbox::Decide decided = std::move(rounds_.front());
    rounds_.pop_front();
    sum(decided);
    answer_round(decided);
  }
  carries_out_ = false;
}

void VirtualPs::sum(const Outbox::Decide& decided) {
  const RoundDecision& decision = decided.decision;
  std::vector<VirtualStep> sums;
  for (const RoundContribution& it : decision.contributors) {
    const bool leaves_out = index_ > 0 && decision.round == 3 && sums.empty() &&
                            world_.planted(VirtualOptions::Plant::kOneSumsWhatItLikes);
    if (leaves_out) continue;
    sums.push_back({it.worker, it.incarnation, it.step, index_});
    if (index_ == 0) world_.checks.check_read(it.worker, it.incarnation);
  }
  for (const VirtualStep& step : sums) {
    if (kept_.erase(step) == 0) {
      world_.checks.fail(fmt::format("ps:{} has not what is to be summed: step {} of worker:{}",
                                     index_, step.step, step.worker));
    }
    for (const AssemblyTarget& target : targets_) {
      world_.checks.applied(step, target.where.id, {0, target.bytes()});
    }
    const bool forgets = world_.planted(VirtualOptions::Plant::kToldAndNotApplied);
    if (!forgets || step.step % 5 != 2) world_.checks.ended(step);
  }
  for (const auto* list : {&decision.dropped, &decision.displaced}) {
    for (const RoundContribution& it : *list) {
      kept_.erase({it.worker, it.incarnation, it.step, index_});
    }
  }
  if (decision.closes) {
    ++counted_;
    world_.checks.closed(index_, coordinator_.incarnation, decision.round, sums);
  }
  if (index_ != 0) return;
  VirtualResult& result = world_.checks.result();
  if (decision.closes) ++result.rounds;
  result.dropped += std::int64_t(decision.dropped.size());
  result.folded += std::ranges::count_if(decision.contributors,
                                         [&](const auto& it) { return it.round < decision.round; });
}

void VirtualPs::answer_round(const Outbox::Decide& decided) {
  for (const auto& [to, step, done] : decided.told) {
    Peer* const peer = find(to);
    if (peer == nullptr) continue;
    peer->assembly.end();
    note_read(to);
    send(to, {MessageType::kStepDone, done, step});
    for (const AssemblyTarget& target : targets_) {
      for (const Cut cut : byte_cuts(target.bytes())) {
        if (find(to) != nullptr) answer(to, target.where.id, cut);
      }
    }
  }
}

void VirtualPs::note_read(PeerId id) {
  const Peer& reader = peer(id);
  world_.checks.read(reader.worker, reader.incarnation, index_, counted_);
}

std::string VirtualPs::standing() const {
  if (!world_.in_rounds() || has_ended_) return {};
  return fmt::format("ps:{} has {} contributions, and {} to ps:0; ", index_, kept_.size(),
                     coordinator_.wire == 0 ? "no connection" : "a connection");
}

// ps 0.

void VirtualPs::connect_coordinator() {
  world_.time.after(world_.network.delay(), [this, incarnation = incarnation_] {
    if (has_ended_ || is_down_ || incarnation_ != incarnation) return;
    VirtualPs& to = *world_.ps.front();
    Outbox out;
    if (to.has_ended() || to.is_down()) {
      machine_->coordinator_failed("nobody listens", world_.time.now());
    } else {
      coordinator_.wire = world_.network.connect(-index_, 0, incarnation_);
      to.accepted(coordinator_.wire);
      machine_->coordinator_connected(out);
    }
    carry_out(out);
  });
}

void VirtualPs::send_to_coordinator(ControlMessage message) {
  const bool counts = is_numbered(message.type);
  auto arrived = [this, message = std::move(message)](PeerId wire) {
    world_.ps.front()->received(wire, message);
  };
  if (counts) {
    return coordinator_.stream.push({kVirtualControlBytes, nullptr, std::move(arrived)});
  }
  if (coordinator_.wire == 0) return;
  world_.network.to_ps(coordinator_.wire, kVirtualControlBytes,
                       [arrived = std::move(arrived), wire = coordinator_.wire] { arrived(wire); });
}

void VirtualPs::from_coordinator(PeerId wire, const ControlMessage& message) {
  if (has_ended_ || is_down_ || coordinator_.wire != wire) return;
  if (message.type == MessageType::kWelcome) {
    coordinator_.incarnation = message.as<Welcome>().incarnation;
  }
  Outbox out;
  try {
    machine_->from_coordinator(message, world_.time.now(), out);
  } catch (const Error& error) {
    world_.checks.fail(
        fmt::format("ps:{} does not take the word of ps:0: {}", index_, error.what()));
  }
  carry_out(out);
  if (!is_numbered(message.type) || !coordinator_.handled.handled(false)) return;
  world_.network.to_ps(wire, kVirtualControlBytes,
                       [this, wire, count = coordinator_.handled.count()] {
                         world_.ps.front()->confirmed(wire, count);
                       });
}

void VirtualPs::coordinator_confirmed(PeerId wire, std::uint64_t handled) {
  if (coordinator_.wire == wire) coordinator_.stream.confirm(handled);
}

void VirtualPs::coordinator_closed(PeerId wire) {
  world_.network.wire(wire).worker_open = false;
  if (coordinator_.wire != wire || has_ended_ || is_down_) return;
  coordinator_.stream.cut();
  coordinator_.wire = 0;
  machine_->coordinator_closed(coordinator_.handled.count(), world_.time.now());
}

}  // namespace paceline

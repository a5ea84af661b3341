// SimulatedPs: synchronous rounds, and its connection to ps 0.
#include <algorithm>
#include <utility>

#include "params/protocol/frame_cuts.h"
#include "predict/simulation/simulated_ps.h"

namespace paceline {
namespace {

template <typename F>
void for_answered(const RoundDecision& decision, F&& act) {
  for (const auto* list : {&decision.contributors, &decision.dropped}) {
    for (const RoundContribution& it : *list) act(it);
  }
}

}  // namespace

// Rounds are carried out in their order. One that is clipped waits for the squares of all.
void SimulatedPs::carry_out_rounds() {
  if (!round_) {
    if (rounds_.empty()) return;
    round_ = std::move(rounds_.front());
    rounds_.pop_front();
    squares_told_ = clipped_ = false;
    const RoundDecision& decision = round_->decision;
    if (!decision.closes || decision.contributors.front().clip_norm <= 0) return apply_round(0);
    // The mean is written, and its squares are summed.
    SimulatedWork work{.threads = threads()};
    const auto given_by = double(decision.contributors.size());
    for (std::size_t at = 0; at < targets_.size(); ++at) {
      const double bytes = given_bytes(at);
      work.rule_bytes += world_.job.costs.bytes_to_sum(bytes, given_by) + 2 * bytes;
    }
    return world_.transport.machine_of(host_).run(work, [this] {
      squares_told_ = true;
      Outbox out;
      machine_.squares({round_->decision.round, 1}, out);
      carry_out(out);
    });
  }
  if (squares_told_ && std::exchange(clipped_, false)) {
    squares_told_ = false;
    apply_round(0);
  }
}

// A worker may contribute to a part of the variables.
bool SimulatedPs::gave(const RoundContribution& it, std::size_t position) const {
  return peers_[std::size_t(it.worker)].assembly.part(position).started;
}

// The size of a contribution to it, of which a sparse one has the named rows.
double SimulatedPs::given_bytes(std::size_t position) const {
  const AssemblyTarget& target = targets_[position];
  return double(target.sparse ? rows_[position].size() * target.row_bytes : target.bytes());
}

void SimulatedPs::apply_round(std::size_t position) {
  if (position == targets_.size()) return answer_round();
  const RoundDecision& decision = round_->decision;
  const auto given_by = std::ranges::count_if(
      decision.contributors, [&](const RoundContribution& it) { return gave(it, position); });
  SimulatedWork work{.threads = threads()};
  if (decision.closes && given_by > 0) {
    const double given = given_bytes(position);
    work.rule_bytes = rule_bytes(position);
    if (given_by > 1 && !world_.step.clipped) {
      work.rule_bytes += world_.job.costs.bytes_to_sum(given, double(given_by)) - given;
    }
  }
  const TimePoint begun = world_.time.now();
  world_.transport.machine_of(host_).run(work, [this, position, begun] {
    applying_ += double((world_.time.now() - begun).count()) * 1e-9;
    for_answered(round_->decision, [&](const RoundContribution& it) {
      Peer& peer = peers_[std::size_t(it.worker)];
      if (!gave(it, position) || !peer.assembly.part(position).shared) return;
      tell(peer, MessageType::kTaken, targets_[position].where.id);
    });
    apply_round(position + 1);
  });
}

// As the real one: the workers hear of the round's end first, and values follow.
void SimulatedPs::answer_round() {
  answers_.clear();
  for_answered(round_->decision, [&](const RoundContribution& it) {
    Peer& peer = peers_[std::size_t(it.worker)];
    RoundAnswer answer{.peer = &peer, .step = std::uint64_t(it.step), .in_frames = {}};
    for (std::size_t at = 0; at < targets_.size(); ++at) {
      const bool in_frames = peer.assembly.part(at).wanted == WantedValues::kInFrames;
      answer.in_frames.push_back(in_frames && gave(it, at) && !targets_[at].sparse);
    }
    answers_.push_back(std::move(answer));
    peer.assembly.end();
  });
  for (const auto& [to, step, done] : round_->told) {
    send(to, {MessageType::kStepDone, done, step});
  }
  for (const auto& [to, round] : round_->open) {
    send(to, {MessageType::kRoundOpen, {}, std::uint64_t(round)});
  }
  send_round_values(0);
}

// One copy of a piece serves all workers that get it in frames.
void SimulatedPs::send_round_values(std::size_t position) {
  if (position == targets_.size()) {
    round_.reset();
    return carry_out_rounds();
  }
  const std::size_t bytes = targets_[position].bytes();
  const auto in_frames = [position](const RoundAnswer& it) { return it.in_frames[position]; };
  SimulatedWork copying;
  if (std::ranges::any_of(answers_, in_frames)) copying.bytes = 2 * double(bytes);
  world_.transport.machine_of(host_).run(copying, [this, position, bytes, in_frames] {
    for (const RoundAnswer& it : answers_) {
      if (in_frames(it)) {
        for (const Cut cut : byte_cuts(bytes)) answer(*it.peer, position, cut);
      }
      send_next_rows(*it.peer, position, it.step);
    }
    send_round_values(position + 1);
  });
}

// Ps 0.

void SimulatedPs::connect_coordinator() {
  SimulatedPs& first = *world_.ps.front();
  const auto here = std::size_t(world_.num_workers()) + std::size_t(index_);
  const auto there = std::size_t(world_.num_workers());
  coordinator_ = world_.transport.open(host_, first.host_, first, int(here));
  first.peers_[here].stream = world_.transport.open(first.host_, host_, *this, int(there));
  first.peers_[here].stream_in = coordinator_;
  peers_[there].stream_in = first.peers_[here].stream;
  Outbox out;
  machine_.coordinator_connected(out);
  carry_out(out);
}

void SimulatedPs::go_on_with_coordinator() {
  coordinator_goes_on_ = true;
  for (ControlMessage& message : std::exchange(for_coordinator_, {})) {
    send(Outbox::kCoordinator, std::move(message));
  }
}

void SimulatedPs::from_coordinator(const ControlMessage& message) {
  Outbox out;
  machine_.from_coordinator(message, world_.time.now(), out);
  carry_out(out);
}

}  // namespace paceline

#include "params/protocol/testing/virtual_ps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/protocol/testing/virtual_worker.h"

namespace paceline {

using namespace std::chrono_literals;

namespace {

PsTaskOptions machine_options(const VirtualOptions& options, int index, std::uint64_t incarnation) {
  PsTaskOptions machine;
  machine.ps = index;
  machine.workers = options.workers;
  machine.cluster_id = "virtual";
  machine.incarnation = incarnation;
  machine.join_timeout = 300s;
  machine.reconnect_timeout = 30s;
  machine.warm_steps = 2;
  return machine;
}

}  // namespace

VirtualPs::VirtualPs(VirtualWorld& world, int index)
    : world_(world),
      index_(index),
      targets_(assembly_targets(world.declare.variables, world.declare.pieces, index)) {
  begin();
  if (world.time.happens(world.options.ps_deaths)) {
    world.time.after(world.time.between(100ms, 4s), [this] { die(); });
  }
}

// Begins as a new process, or as one that has forgotten all.
void VirtualPs::begin() {
  is_down_ = false;
  counted_ = 0;
  peers_.clear();
  begin_rounds();
  machine_ = std::make_unique<PsTask>(
      machine_options(world_.options, index_, ++incarnation_),
      [](const Declare&) { return std::vector<std::int32_t>(); }, world_.time.now());
  tick();
}

void VirtualPs::die() {
  if (has_ended_ || is_down_) return;
  is_down_ = true;
  ++world_.checks.result().ps_restarts;
  end_connections(5s);
  world_.time.after(world_.time.between(10ms, 3s), [this] { begin(); });
}

void VirtualPs::end_connections(Duration noticed) {
  for (const auto& [id, wire] : world_.network.wires()) {
    if (wire.ps != index_ || !wire.ps_open) continue;
    world_.network.wire(id).ps_open = false;
    world_.network.cut(id, noticed);
  }
  if (coordinator_.wire != 0) world_.network.cut(std::exchange(coordinator_.wire, 0), noticed);
}

void VirtualPs::tick() {
  if (has_ended_ || is_down_) return;
  Outbox out;
  const TimePoint now = world_.time.now();
  const TimePoint next = machine_->tick(now, out);
  carry_out(out);
  has_ended_ = machine_->end(now) != Membership::End::kNotYet;
  if (has_ended_) return;
  world_.time.at(std::min(next, now + 1s), [this, incarnation = incarnation_] {
    if (incarnation_ == incarnation) tick();
  });
}

VirtualPs::Peer* VirtualPs::find(PeerId id) {
  const auto found = peers_.find(id);
  return found == peers_.end() ? nullptr : &found->second;
}

void VirtualPs::carry_out(Outbox& out) {
  for (Outbox::Action& action : out.actions()) {
    if (auto* message = std::get_if<Outbox::Send>(&action)) {
      send(message->to, std::move(message->message));
    } else if (const auto* same = std::get_if<Outbox::Attach>(&action)) {
      attach(same->from, same->to);
    } else if (auto* decided = std::get_if<Outbox::Decide>(&action)) {
      rounds_.push_back(std::move(*decided));
    } else if (std::holds_alternative<Outbox::Clip>(action)) {
      clipped_ = true;
    } else if (std::holds_alternative<Outbox::Connect>(action)) {
      connect_coordinator();
    } else if (const auto* on = std::get_if<Outbox::GoOn>(&action)) {
      if (on->peer == Outbox::kCoordinator) {
        coordinator_.stream.go_on(coordinator_.wire, on->handled);
        continue;
      }
      peer(on->peer).stream.go_on(peer(on->peer).wire, on->handled);
    } else if (const auto* gone = std::get_if<Outbox::Forget>(&action)) {
      peers_.erase(gone->peer);
    } else if (const auto* close = std::get_if<Outbox::Close>(&action)) {
      world_.network.cut_after_last_to_worker(peer(close->peer).wire);
    }
  }
  carry_out_rounds();
}

void VirtualPs::send(PeerId id, ControlMessage message) {
  if (id == Outbox::kCoordinator) return send_to_coordinator(std::move(message));
  const bool wake = message.type == MessageType::kStepLimit;
  if (wake && world_.planted(VirtualOptions::Plant::kLostWake) && ++wakes_ % 3 == 0) return;
  const bool counts = is_numbered(message.type);
  auto arrived = [this, message = std::move(message)](PeerId wire) {
    world_.caller_received(wire, message);
  };
  Peer& to = peer(id);
  if (counts) return to.stream.push({kVirtualControlBytes, nullptr, std::move(arrived)});
  world_.network.to_worker(to.wire, kVirtualControlBytes, {},
                           [arrived = std::move(arrived), wire = to.wire] { arrived(wire); });
}

void VirtualPs::attach(PeerId from, PeerId to) {
  const PeerId wire = peer(from).wire;
  peers_.erase(from);
  peer(to).wire = wire;
  world_.network.wire(wire).peer = to;
}

template <typename Act>
void VirtualPs::event(PeerId id, Act&& act) {
  const VirtualWire& wire = world_.network.wire(id);
  if (!wire.ps_open) return;
  const PeerId peer = wire.peer;
  Outbox out;
  try {
    act(peer, out);
  } catch (const Error& error) {
    world_.checks.fail(
        fmt::format("ps:{} refuses worker:{}: {}", index_, wire.worker, error.what()));
    machine_->refuse(peer, error.what(), out);
  }
  carry_out(out);
  if (!machine_->begins_again()) return;
  end_connections(1ms);
  if (!world_.planted(VirtualOptions::Plant::kValuesStay)) begin();
}

template <typename Act>
void VirtualPs::numbered(PeerId wire, Act&& act) {
  event(wire, [&](PeerId id, Outbox& out) {
    act(id, out);
    if (!peer(id).handled.handled(false)) return;
    world_.network.to_worker(
        wire, kVirtualControlBytes, {},
        [this, wire, count = peer(id).handled.count()] { world_.caller_confirmed(wire, count); });
  });
}

void VirtualPs::accepted(PeerId wire) {
  const auto carry = [this](PeerId on, const VirtualStream::Message& message) {
    world_.network.to_worker(on, message.bytes, message.sent,
                             [arrived = message.arrived, on] { arrived(on); });
  };
  Peer peer{.assembly = StepAssembly(targets_), .stream = VirtualStream(carry)};
  peer.wire = wire;
  peers_.emplace(wire, std::move(peer));
  event(wire, [&](PeerId id, Outbox& out) { machine_->accepted(id, world_.time.now(), out); });
}

void VirtualPs::received(PeerId wire, const ControlMessage& message) {
  const auto act = [&](PeerId id, Outbox& out) {
    if (message.type == MessageType::kWriteEnd && !machine_->initialised()) {
      counted_ = message.as<std::int64_t>();
      if (index_ == 0) world_.checks.goes_back(world_.checkpoint.own_steps);
      if (index_ == 0) world_.checks.set_used_records(world_.checkpoint.used);
    }
    machine_->received(id, message, world_.time.now(), out);
  };
  is_numbered(message.type) ? numbered(wire, act) : event(wire, act);
}

void VirtualPs::confirmed(PeerId wire, std::uint64_t handled) {
  event(wire, [&](PeerId id, Outbox&) { peer(id).stream.confirm(handled); });
}

void VirtualPs::pulled(PeerId wire, const std::vector<std::uint32_t>& order) {
  numbered(wire, [&](PeerId id, Outbox&) {
    machine_->check_agreed(id, true);
    world_.checks.set_order(id, order);
    const VirtualWire& wire = world_.network.wire(peer(id).wire);
    peer(id).worker = wire.worker;
    peer(id).incarnation = wire.incarnation;
    note_read(id);
    if (!world_.planted(VirtualOptions::Plant::kRepliesInOrder)) peer(id).replies.set_order(order);
    for (const AssemblyTarget& target : targets_) {
      for (const Cut cut : byte_cuts(target.bytes())) answer(id, target.where.id, cut);
    }
  });
}

void VirtualPs::step_frame(PeerId wire, const FrameHeader& header) {
  numbered(wire, [&](PeerId id, Outbox& out) {
    const MessageType type{header.type};
    if (type == MessageType::kStepBegin) return begin_step(id, header);
    if (type == MessageType::kChunk) return chunk(id, header);
    end_step(id, header, out);
  });
}

VirtualStep VirtualPs::step_of(PeerId id, const FrameHeader& header) {
  const VirtualWire& wire = world_.network.wire(peer(id).wire);
  return {wire.worker, wire.incarnation, std::int64_t(header.step), index_};
}

std::size_t VirtualPs::position(std::uint32_t piece) const {
  const auto found = std::ranges::find(
      targets_, piece, [](const AssemblyTarget& target) { return target.where.id; });
  return std::size_t(found - targets_.begin());
}

void VirtualPs::begin_step(PeerId id, const FrameHeader& header) {
  const std::int64_t step = std::int64_t(header.step);
  // Frames have no payload here, so the header carries the fields of a real payload. Only rounds
  // use them.
  const StepBegin first{.examples = 1,
                        .round = std::int64_t(header.offset),
                        .clip_norm = world_.options.clipped ? 1.0f : 0.0f,
                        .learning_rates = {}};
  Fate fate = machine_->begin_step(id, step, false, first);
  if (world_.planted(VirtualOptions::Plant::kRepeatsCount)) fate = Fate::kApply;
  peer(id).assembly.begin(step, world_.options.clipped, fate);
}

void VirtualPs::chunk(PeerId id, const FrameHeader& header) {
  StepAssembly& assembly = peer(id).assembly;
  assembly.check_step(std::int64_t(header.step), MessageType::kChunk);
  const std::size_t at = position(header.id), bytes = header.payload_bytes;
  assembly.expect_chunk(at, header.offset, bytes);
  const StepAssembly::Arrival arrival = assembly.chunk(at, bytes);
  if (!arrival.apply) return;
  const Cut part{header.offset, bytes};
  if (assembly.counts()) world_.checks.applied(step_of(id, header), header.id, part);
  answer(id, header.id, part);
}

void VirtualPs::end_step(PeerId id, const FrameHeader& header, Outbox& out) {
  StepAssembly& assembly = peer(id).assembly;
  assembly.check_step(std::int64_t(header.step), MessageType::kStepEnd);
  for (std::size_t at = 0; at < targets_.size(); ++at) assembly.check_whole(at);
  if (assembly.fate() == Fate::kKeep) return keep(id, header, out);
  for (std::size_t at = 0; at < targets_.size(); ++at) {
    if (!assembly.take_whole(at)) continue;
    const std::size_t bytes = targets_[at].bytes();
    const std::uint32_t piece = targets_[at].where.id;
    if (assembly.counts()) world_.checks.applied(step_of(id, header), piece, {0, bytes});
    for (const Cut cut : byte_cuts(bytes)) answer(id, piece, cut);
  }
  assembly.end();
  const Fate fate = assembly.fate();
  const TimePoint now = world_.time.now();
  const std::int64_t before = machine_->global_step();
  // The step does not count if a newer process of the worker has joined meanwhile.
  if (machine_->end_step(id, assembly.step(), fate, now, out) > before) {
    ++counted_;
    world_.checks.ended(step_of(id, header));
  }
  if (world_.planted(VirtualOptions::Plant::kEndTwice) && index_ == 0 && assembly.step() == 3) {
    machine_->end_step(id, assembly.step(), fate, now, out);
  }
}

void VirtualPs::answer(PeerId id, std::uint32_t piece, Cut part) {
  const FrameHeader header{
      .type = std::uint16_t(MessageType::kValues), .id = piece, .offset = part.begin};
  world_.checks.pushed(id, piece, part.size);
  peer(id).replies.push(header, part.size, 0);
  send_some(id);
}

void VirtualPs::send_some(PeerId id) {
  const bool no_window = world_.planted(VirtualOptions::Plant::kNoWindow);
  while (auto reply = peer(id).replies.next()) {
    const std::size_t bytes = reply->bytes;
    world_.checks.given(id, reply->header.id, bytes);
    if (no_window) peer(id).replies.sent(bytes);
    const auto sent = [this, id, bytes, no_window] {
      world_.checks.sent(id, bytes);
      Peer* const to = find(id);
      if (no_window || to == nullptr) return;
      to->replies.sent(bytes);
      send_some(id);
    };
    peer(id).stream.push({bytes, sent, [this, bytes](PeerId wire) {
                            const int worker = world_.network.wire(wire).worker;
                            world_.workers[std::size_t(worker)]->received_values(wire, bytes);
                          }});
  }
}

void VirtualPs::closed(PeerId wire) {
  event(wire, [&](PeerId id, Outbox& out) {
    Peer& it = peer(id);
    it.stream.cut();
    it.wire = 0;
    const PsTask::Ended ended = {.why = "the connection was cut", .handled = it.handled.count()};
    if (!machine_->closed(id, ended, world_.time.now(), out)) peers_.erase(id);
  });
  world_.network.wire(wire).ps_open = false;
}

// VirtualPs: synchronous rounds, and its connection to ps 0.

void VirtualPs::begin_rounds() {
  rounds_.clear();
  kept_.clear();
  squares_told_ = clipped_ = false;
  coordinator_ = {.stream =
                      VirtualStream([this](PeerId wire, const VirtualStream::Message& message) {
                        world_.network.to_ps(wire, message.bytes,
                                             [arrived = message.arrived, wire] { arrived(wire); });
                      })};
  coordinator_.incarnation = incarnation_ + 1;  // ps 0 is its own coordinator
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

// Carries out the rounds in their order. A clipped round waits for the squares of all ps tasks, and
// the rounds after it wait, too.
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

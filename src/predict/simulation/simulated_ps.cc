#include "predict/simulation/simulated_ps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "paceline/error.h"
#include "params/protocol/frame_cuts.h"
#include "params/variable_arrays.h"
#include "predict/pack_cost.h"
#include "predict/simulation/known_messages.h"
#include "predict/simulation/simulated_worker.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

PsTaskOptions ps_options(const SimulatedWorld& world, int index) {
  PsTaskOptions options;
  options.ps = index;
  options.workers = world.num_workers();
  options.cluster_id = "simulated";
  options.incarnation = 1;
  options.join_timeout = kSimulatedJoinTimeout;
  options.warm_steps = 1;
  return options;
}

std::vector<std::vector<std::int32_t>> named_rows(const SimulatedWorld& world,
                                                  const std::vector<AssemblyTarget>& targets) {
  std::vector<std::vector<std::int32_t>> all;
  for (const AssemblyTarget& target : targets) {
    auto& rows = all.emplace_back(target.sparse ? world.rows_named(target.where) : 0);
    std::iota(rows.begin(), rows.end(), std::int32_t(target.where.first_row));
  }
  return all;
}

}  // namespace

SimulatedPs::SimulatedPs(SimulatedWorld& world, int index)
    : world_(world),
      index_(index),
      host_(world.job.cluster.ps[std::size_t(index)]),
      targets_(assembly_targets(world.step.specs, world.pieces, index)),
      rows_(named_rows(world, targets_)),
      machine_(
          ps_options(world, index), [](const Declare&) { return std::vector<std::int32_t>(); },
          world.time.now()) {
  const int peers = world.num_workers() + world.num_ps();
  peers_.reserve(std::size_t(peers));
  for (int i = 0; i < peers; ++i) peers_.emplace_back(targets_);
  // Each connection in shared memory uses a thread of its own.
  free_threads_ = std::min(world.num_workers(), threads());
  if (world.job.costs.serial_message_s > 0) free_threads_ = 1;
  for (const int host : world.job.cluster.workers) {
    if (host == host_ && world.job.cluster.share_memory) ++free_threads_;
  }
}

int SimulatedPs::threads() const {
  if (world_.job.cluster.ps_threads > 0) return world_.job.cluster.ps_threads;
  return std::max(1, int(world_.transport.machine_of(host_).machine().cores));
}

void SimulatedPs::connect() {
  for (int w = 0; w < world_.num_workers(); ++w) {
    Peer& peer = peers_[std::size_t(w)];
    SimulatedWorker& to = *world_.workers[std::size_t(w)];
    peer.stream = world_.transport.open(host_, to.host(), to, index_);
    to.set_stream_from(index_, peer.stream);
    world_.transport.set_on_sent(peer.stream, [this, w](std::size_t bytes) {
      Peer& it = peers_[std::size_t(w)];
      if (bytes == 0) return;
      it.replies.sent(bytes);
      send_replies(it);
    });
  }
  tick();
}

void SimulatedPs::tick() {
  Outbox out;
  const TimePoint next = machine_.tick(world_.time.now(), out);
  carry_out(out);
  const bool looks = index_ > 0 && world_.in_rounds() && !coordinator_goes_on_;
  const Duration most = looks ? Duration(std::chrono::milliseconds(1)) : std::chrono::seconds(1);
  const TimePoint at = std::min(next, world_.time.now() + most);
  world_.time.at(at, [this] { tick(); });
}

std::size_t SimulatedPs::position_of(std::uint32_t piece) const {
  const auto found = std::ranges::lower_bound(
      targets_, piece, {}, [](const AssemblyTarget& target) { return target.where.id; });
  return std::size_t(found - targets_.begin());
}

double SimulatedPs::rule_bytes(std::size_t position, double part) const {
  const Piece& piece = targets_[position].where;
  return world_.use(piece.variable).rule_bytes * world_.part_of(piece) * part;
}

// Functions for frames that arrive.

void SimulatedPs::arrived(int from, std::vector<SimulatedFrame> frames) {
  Peer& peer = peers_[std::size_t(from)];
  for (SimulatedFrame& frame : frames) peer.inbox.push_back(std::move(frame));
  if (peer.in_hand) return;
  peer.in_hand = true;
  in_turn_.push_back(std::size_t(from));
  take_frames();
}

// A frame has its effects only once the time of its handling has passed.
void SimulatedPs::take_frames() {
  while (free_threads_ > 0 && !in_turn_.empty()) {
    const std::size_t from = in_turn_.front();
    in_turn_.pop_front();
    --free_threads_;
    receive_some(from);
  }
}

// One thread receives from this worker. Rules are applied by all threads, or by one thread while
// those of another connection are being applied.
void SimulatedPs::receive_some(std::size_t from) {
  Peer& peer = peers_[from];
  std::vector<SimulatedFrame> frames;
  SimulatedWork receiving, applying;
  std::size_t bytes = 0;
  while (!peer.inbox.empty() && bytes < kSimulatedTurnBytes &&
         applying.rule_bytes < double(kSimulatedTurnBytes)) {
    const SimulatedWork one = work_of(peer, peer.inbox.front());
    receiving.core_seconds += one.core_seconds;
    receiving.bytes += one.bytes;
    applying.rule_bytes += one.rule_bytes;
    bytes += peer.inbox.front().bytes;
    frames.push_back(std::move(peer.inbox.front()));
    peer.inbox.pop_front();
  }
  world_.transport.machine_of(host_).run(
      receiving, [this, from, applying, frames = std::move(frames)]() mutable {
        if (applying.rule_bytes == 0) return finish_turn(from, frames);
        apply_some(from, applying, std::move(frames));
      });
}

void SimulatedPs::apply_some(std::size_t from, SimulatedWork work,
                             std::vector<SimulatedFrame> frames) {
  if (applies_++ == 0) work.threads = threads();
  const TimePoint begun = world_.time.now();
  world_.transport.machine_of(host_).run(work, [this, from, begun, frames = std::move(frames)] {
    --applies_;
    applying_ += seconds_of(world_.time.now() - begun);
    finish_turn(from, frames);
  });
}

void SimulatedPs::finish_turn(std::size_t from, const std::vector<SimulatedFrame>& frames) {
  Peer& peer = peers_[from];
  Outbox out;
  for (const SimulatedFrame& frame : frames) handle(peer, frame, out);
  carry_out(out);
  ++free_threads_;
  peer.in_hand = !peer.inbox.empty();
  if (peer.in_hand) in_turn_.push_back(from);
  take_frames();
}

// Returns the bytes that pass the memory when a chunk is applied: the rule's pass over its part,
// and the new values, which go to separate memory.
double SimulatedPs::chunk_bytes(const SimulatedFrame& frame) const {
  const std::size_t position = position_of(frame.piece);
  const AssemblyTarget& target = targets_[position];
  if (target.sparse) return rule_bytes(position) + double(frame.bytes);
  return rule_bytes(position, double(frame.bytes) / double(target.bytes())) + double(frame.bytes);
}

bool SimulatedPs::reads_in_place(const Peer& peer, const AssemblyTarget& target) const {
  return world_.transport.shared(peer.stream) && world_.can_be_mapped(target.where.variable);
}

// True if a pull copies the values, into frames or into the worker's copy in shared memory.
bool SimulatedPs::copies(const Peer& peer, const AssemblyTarget& target) const {
  return !reads_in_place(peer, target) || world_.is_read_in_copy(target.where.variable);
}

SimulatedWork SimulatedPs::work_of(const Peer& peer, const SimulatedFrame& frame) const {
  SimulatedWork work{.core_seconds = world_.transport.receive_seconds(peer.stream_in, frame)};
  const TransportCosts& costs = world_.job.costs;
  // In rounds, the ps keeps contributions until their round is decided.
  const bool keeps = world_.in_rounds();
  switch (frame.type) {
    case MessageType::kChunk:
      // A transport that handles messages one by one has one message for each variable.
      if (frame.offset == 0) work.core_seconds += frame.messages * costs.serial_message_s;
      if (!keeps) work.rule_bytes = chunk_bytes(frame);
      break;
    case MessageType::kContribution:
      if (keeps) break;
      work.rule_bytes = rule_bytes(position_of(frame.piece));
      if ((frame.flags & kRenewCopy) != 0)
        work.rule_bytes += double(targets_[position_of(frame.piece)].bytes());
      break;
    case MessageType::kPull:
      for (const AssemblyTarget& target : targets_) {
        if (copies(peer, target)) work.bytes += 2 * double(target.bytes());
      }
      break;
    default:
      break;
  }
  return work;
}

void SimulatedPs::handle(Peer& peer, const SimulatedFrame& frame, Outbox& out) {
  switch (frame.type) {
    case MessageType::kOrder: {
      std::vector<std::uint32_t> order;
      for (const VariableId v : world_.step.need_order) {
        for (const AssemblyTarget& target : targets_) {
          if (target.where.variable == v) order.push_back(target.where.id);
        }
      }
      return peer.replies.set_order(order);
    }
    case MessageType::kPull:
      machine_.check_agreed(peer.id, true);
      return pulled(peer);
    case MessageType::kStepBegin:
      return begin_step(peer, frame);
    case MessageType::kClip:
      return peer.assembly.clip_known();
    case MessageType::kRowIds:
      return take_rows(peer, frame);
    case MessageType::kChunk:
      return chunk(peer, frame);
    case MessageType::kContribution:
      return contribution(peer, frame);
    case MessageType::kStepEnd:
      return end_step(peer, frame, out);
    default:
      break;
  }
  if (frame.control == nullptr) {
    throw Error(ErrorCode::kInternal,
                fmt::format("[simulation] a ps gets {}", name_of(frame.type)));
  }
  if (std::size_t(&peer - peers_.data()) >= std::size_t(world_.num_workers()) && index_ > 0)
    return from_coordinator(*frame.control);
  if (peer.id == 0) {
    names_.push_back(std::size_t(&peer - peers_.data()));
    peer.id = PeerId(names_.size());
    machine_.accepted(peer.id, world_.time.now(), out);
  }
  machine_.received(peer.id, *frame.control, world_.time.now(), out);
}

void SimulatedPs::begin_step(Peer& peer, const SimulatedFrame& frame) {
  const auto step = std::int64_t(frame.step);
  const StepBegin first{.clipped = world_.step.clipped,
                        .examples = 1,
                        .round = std::int64_t(frame.offset),
                        .clip_norm = world_.step.clipped && world_.in_rounds() ? 1.0f : 0.0f,
                        .learning_rates = {}};
  const Fate fate = machine_.begin_step(peer.id, step, false, first);
  peer.assembly.begin(step, first.clipped, fate);
}

void SimulatedPs::take_rows(Peer& peer, const SimulatedFrame& frame) {
  const std::size_t position = position_of(frame.piece);
  peer.assembly.rows(position, rows_[position]);
}

void SimulatedPs::chunk(Peer& peer, const SimulatedFrame& frame) {
  const std::size_t position = position_of(frame.piece);
  peer.assembly.expect_chunk(position, frame.offset, frame.bytes, frame.flags);
  const StepAssembly::Arrival arrival = peer.assembly.chunk(position, frame.bytes);
  if (arrival.apply && peer.assembly.part(position).wanted == WantedValues::kInFrames) {
    answer(peer, position, {frame.offset, frame.bytes});
  }
}

void SimulatedPs::contribution(Peer& peer, const SimulatedFrame& frame) {
  const std::size_t position = position_of(frame.piece);
  const std::size_t bytes = targets_[position].sparse
                                ? rows_[position].size() * targets_[position].row_bytes
                                : targets_[position].bytes();
  const auto flags = std::uint16_t(frame.flags & (kSendValues | kRenewCopy));
  const StepAssembly::Arrival arrival =
      peer.assembly.shared(position, bytes, 0, flags, rows_[position]);
  if (arrival.apply) apply_whole(peer, position);
}

void SimulatedPs::apply_whole(Peer& peer, std::size_t position) {
  if (!peer.assembly.take_whole(position)) return;
  const StepAssembly::Part& part = peer.assembly.part(position);
  if (part.wanted == WantedValues::kInFrames && !targets_[position].sparse) {
    for (const Cut cut : byte_cuts(targets_[position].bytes())) answer(peer, position, cut);
  }
  if (part.shared) tell(peer, MessageType::kTaken, targets_[position].where.id);
}

void SimulatedPs::end_step(Peer& peer, const SimulatedFrame& frame, Outbox& out) {
  const auto step = std::int64_t(frame.step);
  for (std::size_t at = 0; at < targets_.size(); ++at) {
    if (peer.assembly.part(at).started) peer.assembly.check_whole(at);
  }
  const Fate fate = peer.assembly.fate();
  if (fate == Fate::kKeep) {
    machine_.end_step(peer.id, step, fate, world_.time.now(), out);
    return;
  }
  for (std::size_t at = 0; at < targets_.size(); ++at) {
    if (peer.assembly.part(at).started) apply_whole(peer, at);
    if (world_.asks_next_rows(targets_[at].where.variable)) send_next_rows(peer, at, frame.step);
  }
  peer.assembly.end();
  machine_.end_step(peer.id, step, fate, world_.time.now(), out);
}

void SimulatedPs::pulled(Peer& peer) {
  for (std::size_t at = 0; at < targets_.size(); ++at) {
    if (reads_in_place(peer, targets_[at])) {
      if (copies(peer, targets_[at])) tell(peer, MessageType::kCopied, targets_[at].where.id);
    } else if (targets_[at].sparse) {
      send_next_rows(peer, at, 0);
    } else if (world_.use(targets_[at].where.variable).read) {
      for (const Cut cut : byte_cuts(targets_[at].bytes())) answer(peer, at, cut);
    }
  }
}

// Functions for frames that leave.

void SimulatedPs::send_next_rows(Peer& peer, std::size_t position, std::uint64_t step) {
  if (!targets_[position].sparse || world_.transport.shared(peer.stream)) return;
  const std::size_t bytes = rows_[position].size() * targets_[position].row_bytes;
  const FrameHeader header{.type = std::uint16_t(MessageType::kRowValues),
                           .id = targets_[position].where.id,
                           .step = step};
  peer.replies.push(header, travelling_bytes(bytes, world_.job.wire.of_values()), bytes);
  send_replies(peer);
}

void SimulatedPs::answer(Peer& peer, std::size_t position, Cut part) {
  const FrameHeader header{.type = std::uint16_t(MessageType::kValues),
                           .id = targets_[position].where.id,
                           .offset = part.begin};
  peer.replies.push(header, travelling_bytes(part.size, world_.job.wire.of_values()), part.size);
  send_replies(peer);
}

void SimulatedPs::send_replies(Peer& peer) {
  const ContributionForm form = world_.job.wire.of_values();
  // Frames of values pass a shared-memory ring with one copy in and one copy out.
  const double copy_s = world_.transport.shared(peer.stream) ? world_.job.costs.ring_s_per_byte : 0;
  while (auto reply = peer.replies.next()) {
    const FrameHeader& header = reply->header;
    const auto bytes = double(reply->payload);  // bytes as float32
    world_.transport.send(peer.stream,
                          {.type = MessageType{header.type},
                           .piece = header.id,
                           .offset = header.offset,
                           .bytes = reply->payload,
                           .wire_bytes = reply->bytes,
                           .step = header.step,
                           .messages = world_.messages_of(world_.pieces[header.id], header.offset),
                           .pack_s = bytes * (pack_s_per_byte(form, false) + copy_s),
                           .unpack_s = bytes * (unpack_s_per_byte(form) + copy_s)});
  }
}

void SimulatedPs::tell(Peer& peer, MessageType type, std::uint32_t piece) {
  const int messages = world_.messages_of(world_.pieces[piece], 0);
  world_.transport.send(peer.stream, {.type = type, .piece = piece, .messages = messages});
}

void SimulatedPs::send(PeerId to, ControlMessage message) {
  if (to == Outbox::kCoordinator && !coordinator_goes_on_ && is_numbered(message.type)) {
    return for_coordinator_.push_back(std::move(message));
  }
  const int stream = to == Outbox::kCoordinator ? coordinator_ : peer_of(to).stream;
  SimulatedFrame frame{
      .type = message.type, .wire_bytes = kSimulatedControlBytes, .step = message.step};
  frame.control = std::make_shared<const ControlMessage>(std::move(message));
  world_.transport.send(stream, std::move(frame));
}

void SimulatedPs::carry_out(Outbox& out) {
  for (std::size_t i = 0; i < out.actions().size(); ++i) {
    std::visit(OutboxActions{[&](Outbox::Send& it) { send(it.to, std::move(it.message)); },
                             [&](Outbox::Decide& it) { rounds_.push_back(std::move(it)); },
                             [&](Outbox::Clip&) { clipped_ = true; },
                             [&](Outbox::Connect&) { connect_coordinator(); },
                             [&](const Outbox::GoOn& it) {
                               if (it.peer == Outbox::kCoordinator) go_on_with_coordinator();
                             },
                             [](NotInASteadyRun) {}},
               out.actions()[i]);
  }
  out.clear();
  carry_out_rounds();
}

// SimulatedPs: synchronous rounds, and its connection to ps 0.

namespace {

template <typename F>
void for_answered(const RoundDecision& decision, F&& act) {
  for (const auto* list : {&decision.contributors, &decision.dropped}) {
    for (const RoundContribution& it : *list) act(it);
  }
}

}  // namespace

// Carries out rounds in order. A clipped round waits for the sums of squares of all ps tasks.
void SimulatedPs::carry_out_rounds() {
  if (!round_) {
    if (rounds_.empty()) return;
    round_ = std::move(rounds_.front());
    rounds_.pop_front();
    squares_told_ = clipped_ = false;
    const RoundDecision& decision = round_->decision;
    if (!decision.closes || decision.contributors.front().clip_norm <= 0) return apply_round(0);
    // Writes the mean, and sums its squares.
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

// True if the worker has contributed to this piece. A worker may contribute to only some variables.
bool SimulatedPs::gave(const RoundContribution& it, std::size_t position) const {
  return peers_[std::size_t(it.worker)].assembly.part(position).started;
}

// Returns the bytes of a contribution to this piece; for a sparse variable, only those of the rows
// that a step names.
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

// As with a real ps, the workers first hear that the round has ended, and then get the values.
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

// All workers that get a piece in frames get them from one common copy.
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

// Functions for the connection to ps 0.

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

#include "predict/simulation/simulated_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "paceline/error.h"
#include "params/protocol/frame_cuts.h"
#include "predict/pack_cost.h"
#include "predict/simulation/known_messages.h"
#include "predict/simulation/simulated_ps.h"
#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

WorkerTaskOptions worker_options(const SimulatedWorld& world, int index) {
  WorkerTaskOptions options;
  options.worker = index;
  options.workers = world.num_workers();
  for (int i = 0; i < world.num_ps(); ++i) options.ps.push_back(fmt::format("ps:{}", i));
  options.cluster_id = "simulated";
  options.incarnation = 1;
  // The simulator itself knows the variables; the state machines only compare this declaration.
  options.declare.last_step = std::int64_t{1} << 60;
  options.declare.aggregation = world.aggregation;
  options.join_timeout = kSimulatedJoinTimeout;
  options.say_after = std::chrono::hours(1);
  return options;
}

}  // namespace

SimulatedWorker::SimulatedWorker(SimulatedWorld& world, int index)
    : world_(world),
      index_(index),
      host_(world.job.cluster.workers[std::size_t(index)]),
      machine_(worker_options(world, index), world.time.now()),
      streams_in_(std::size_t(world.num_ps()), -1),
      pieces_(world.step.specs.size()),
      missing_(world.step.specs.size()) {
  for (const Piece& piece : world.pieces) pieces_[std::size_t(piece.variable)].push_back(piece);
}

void SimulatedWorker::connect() {
  for (int ps = 0; ps < world_.num_ps(); ++ps) {
    SimulatedPs& to = *world_.ps[std::size_t(ps)];
    streams_.push_back(
        world_.transport.open(host_, world_.job.cluster.ps[std::size_t(ps)], to, index_));
    to.set_stream_from(index_, streams_.back());
  }
}

void SimulatedWorker::start() { act(); }

void SimulatedWorker::act() {
  Outbox out;
  machine_.tick(world_.time.now(), out);
  carry_out(out);
  if (!machine_.joined()) return;
  if (index_ == 0 && !machine_.initialised() && !std::exchange(wrote_, true)) {
    for (int ps = 0; ps < world_.num_ps(); ++ps) {
      send_control(ps, {MessageType::kWriteEnd, std::int64_t{0}, 0});
    }
  }
  if (!machine_.initialised()) return machine_.wait_initialised(world_.time.now());
  if (!std::exchange(pulled_, true)) {
    for (int ps = 0; ps < world_.num_ps(); ++ps)
      send(ps, MessageType::kOrder, kSimulatedControlBytes);
    pull();
  }
  user().changed();
}

void SimulatedWorker::carry_out(Outbox& out) {
  for (std::size_t i = 0; i < out.actions().size(); ++i) {
    std::visit(
        OutboxActions{[&](Outbox::Send& it) { send_control(int(it.to), std::move(it.message)); },
                      [&](const Outbox::Connect& it) {
                        machine_.connected(int(it.peer), DType::kFloat32, out);
                      },
                      [](const Outbox::Decide&) {}, [](const Outbox::Clip&) {},
                      [](NotInASteadyRun) {}},
        out.actions()[i]);
  }
  out.clear();
}

void SimulatedWorker::send_control(int ps, ControlMessage message) {
  SimulatedFrame frame{
      .type = message.type, .wire_bytes = kSimulatedControlBytes, .step = message.step};
  frame.control = std::make_shared<const ControlMessage>(std::move(message));
  world_.transport.send(streams_[std::size_t(ps)], std::move(frame));
}

void SimulatedWorker::send(int ps, MessageType type, std::size_t payload) {
  SimulatedFrame frame{.type = type, .wire_bytes = payload, .step = std::uint64_t(step_)};
  frame.offset = std::size_t(machine_.global_step());
  world_.transport.send(streams_[std::size_t(ps)], std::move(frame));
}

// Asks for every variable that the worker cannot read in place. Of variables that are read in a
// copy in shared memory, the ps renews the copy.
void SimulatedWorker::pull() {
  for (int ps = 0; ps < world_.num_ps(); ++ps) {
    send(ps, MessageType::kPull, kSimulatedControlBytes);
  }
  for (const Piece& piece : world_.pieces) {
    if (world_.transport.shared(streams_[std::size_t(piece.ps)]) &&
        world_.can_be_mapped(piece.variable)) {
      missing_[std::size_t(piece.variable)] += world_.is_read_in_copy(piece.variable) ? 1 : 0;
      continue;
    }
    const VariableSpec& spec = world_.spec(piece.variable);
    if (!world_.use(piece.variable).read) continue;
    const auto row = std::int64_t(piece_bytes(spec, piece)) / piece.rows;
    missing_[std::size_t(piece.variable)] +=
        spec.sparse ? world_.rows_named(piece) * row : std::int64_t(piece_bytes(spec, piece));
  }
}

// Functions for what arrives.

void SimulatedWorker::arrived(int from, std::vector<SimulatedFrame> frames) {
  for (SimulatedFrame& frame : frames) inbox_.push_back({from, std::move(frame)});
  if (!handles_) take_frames();
}

void SimulatedWorker::take_frames() {
  handles_ = !inbox_.empty();
  if (!handles_) return;
  std::vector<Arrived> some;
  SimulatedWork work;
  std::size_t bytes = 0;
  while (!inbox_.empty() && bytes < kSimulatedTurnBytes) {
    const Arrived& first = inbox_.front();
    work.core_seconds +=
        world_.transport.receive_seconds(streams_in_[std::size_t(first.ps)], first.frame);
    bytes += first.frame.bytes;
    some.push_back(std::move(inbox_.front()));
    inbox_.pop_front();
  }
  world_.transport.machine_of(host_).run(work, [this, some = std::move(some)] {
    for (const Arrived& each : some) handle(each.ps, each.frame);
    act();
    take_frames();
  });
}

void SimulatedWorker::handle(int ps, const SimulatedFrame& frame) {
  if (frame.type == MessageType::kValues || frame.type == MessageType::kRowValues) {
    const Piece& piece = world_.pieces[frame.piece];
    missing_[std::size_t(piece.variable)] -= std::int64_t(frame.bytes);
    return;
  }
  if (frame.type == MessageType::kTaken || frame.type == MessageType::kCopied) {
    const VariableId variable = world_.pieces[frame.piece].variable;
    if (world_.can_be_mapped(variable)) --missing_[std::size_t(variable)];
    return;
  }
  if (frame.control == nullptr) {
    throw Error(ErrorCode::kInternal,
                fmt::format("[simulation] a worker gets {}", name_of(frame.type)));
  }
  Outbox out;
  machine_.received(ps, *frame.control, world_.time.now(), out);
  carry_out(out);
}

// Functions for steps.

bool SimulatedWorker::may_begin(StepKind kind) {
  return machine_.initialised() && (kind != StepKind::kTrain || machine_.may_begin_step());
}

// A step that had to wait for permission first reads the current values. If others' contributions
// are applied between the worker's own, fetch steps and the steps right after them do so, too.
void SimulatedWorker::begin_step(StepKind kind, int) {
  const bool others = world_.num_workers() > 1 && !world_.in_rounds();
  const bool fetches = kind == StepKind::kFetch, fetched = std::exchange(fetched_, fetches);
  if (others && std::exchange(begun_, true) && (fetches || fetched)) pull();
  if (kind != StepKind::kTrain) return;
  if (!std::exchange(permitted_, true) && !world_.in_rounds()) pull();
  step_ = machine_.begin_step();
  round_ = machine_.global_step();
  for (int ps = 0; ps < world_.num_ps(); ++ps) {
    send(ps, MessageType::kStepBegin,
         kSimulatedControlBytes + sizeof(float) * world_.step.specs.size());
  }
}

// A clipped step keeps its contributions until it knows the norm of all of them.
void SimulatedWorker::ready(VariableId variable, const Done& done) {
  if (!world_.step.clipped || world_.in_rounds()) return contribute(variable, 0, done);
  kept_.push_back(variable);
  done();
}

void SimulatedWorker::send_kept(std::size_t next, const Done& done) {
  if (next == kept_.size()) {
    kept_.clear();
    return done();
  }
  contribute(kept_[next], 0, [this, next, done] { send_kept(next + 1, done); });
}

ContributionRoute SimulatedWorker::route_of(const Piece& piece) const {
  const VariableSpec& spec = world_.spec(piece.variable);
  const bool shared = world_.transport.shared(streams_[std::size_t(piece.ps)]);
  ContributionRoute route{.bytes = piece_bytes(spec, piece),
                          .sparse = spec.sparse,
                          .in_shared_memory = shared,
                          .travels_as = shared ? ContributionForm() : world_.job.wire.numbers,
                          .values_mapped = shared && world_.can_be_mapped(piece.variable),
                          .renew_copy = world_.is_read_in_copy(piece.variable),
                          .pulls_later = world_.aggregation.outdates_answers()};
  if (spec.sparse) {
    route.rows = std::size_t(world_.rows_named(piece));
    route.bytes = route.rows * (piece_bytes(spec, piece) / std::size_t(piece.rows));
  }
  return route;
}

// The thread that makes the step packs the numbers into fewer bytes and hands them over before it
// goes on.
void SimulatedWorker::contribute(VariableId variable, std::size_t at, const Done& done) {
  const std::vector<Piece>& pieces = pieces_[std::size_t(variable)];
  if (at == pieces.size()) return done();
  const Piece& piece = pieces[at];
  const ContributionRoute route = route_of(piece);
  missing_[std::size_t(variable)] += std::int64_t(awaited_after(route));
  double handing =
      double(route.bytes) * pack_s_per_byte(route.travels_as, world_.job.wire.error_feedback);
  if (!route.in_shared_memory) {
    handing += world_.messages_of(piece, 0) * world_.job.costs.hand_over_s;
  }
  if (handing == 0) {
    send_frames(piece, route);
    return contribute(variable, at + 1, done);
  }
  const TimePoint begun = world_.time.now();
  world_.transport.machine_of(host_).run(
      {.core_seconds = handing}, [this, variable, at, done, route, begun] {
        user().spent(&SpentSeconds::rules, seconds_of(world_.time.now() - begun));
        send_frames(pieces_[std::size_t(variable)][at], route);
        contribute(variable, at + 1, done);
      });
}

void SimulatedWorker::send_frames(const Piece& piece, const ContributionRoute& route) {
  for_contribution_frames(route, [&](const ContributionFrame& frame) {
    world_.transport.send(
        streams_[std::size_t(piece.ps)],
        {.type = frame.type,
         .flags = frame.flags,
         .piece = piece.id,
         .offset = frame.part.begin,
         .bytes = frame.part.size,
         .wire_bytes = frame.payload_bytes,
         .step = std::uint64_t(step_),
         .messages = world_.messages_of(piece, frame.part.begin),
         .handed_over = !route.in_shared_memory,
         .unpack_s = double(frame.part.size) * unpack_s_per_byte(route.travels_as)});
  });
}

void SimulatedWorker::end_step(const Done& done) {
  if (kept_.empty()) return send_step_end(done);
  for (int ps = 0; ps < world_.num_ps(); ++ps) send(ps, MessageType::kClip, sizeof(StepClip));
  send_kept(0, [this, done] { send_step_end(done); });
}

// Each ps answers the end of the step with the rows that the worker's next batch names.
void SimulatedWorker::send_step_end(const Done& done) {
  for (int ps = 0; ps < world_.num_ps(); ++ps) {
    send(ps, MessageType::kStepEnd, kSimulatedControlBytes + 16 * world_.step.specs.size());
  }
  for (const Piece& piece : world_.pieces) {
    const VariableSpec& spec = world_.spec(piece.variable);
    const bool shared = world_.transport.shared(streams_[std::size_t(piece.ps)]);
    if (shared || !world_.asks_next_rows(piece.variable)) continue;
    missing_[std::size_t(piece.variable)] +=
        world_.rows_named(piece) * std::int64_t(piece_bytes(spec, piece)) / piece.rows;
  }
  permitted_ = machine_.may_begin_step();
  done();
}

// Functions for rounds that the workers commit.

void SimulatedWorker::await_round(std::int64_t round) {
  Outbox out;
  machine_.await_round(round, out);
  carry_out(out);
}

void SimulatedWorker::commit(const std::vector<std::int32_t>& contributors) {
  Outbox out;
  machine_.commit({.round = round_, .contributors = contributors, .squares = 1}, out);
  carry_out(out);
}

}  // namespace paceline

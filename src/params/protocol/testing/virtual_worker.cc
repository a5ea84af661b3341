#include "params/protocol/testing/virtual_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/protocol/testing/virtual_ps.h"
#include "params/wire/task_state.h"

namespace paceline {

using namespace std::chrono_literals;

namespace {

constexpr Duration kDeathNoticed = 5s;  // at the latest

WorkerTaskOptions machine_options(const VirtualWorld& world, int index, std::uint64_t incarnation) {
  WorkerTaskOptions options;
  options.worker = index;
  options.workers = world.options.workers;
  for (int i = 0; i < world.options.ps; ++i) options.ps.push_back(fmt::format("ps:{}", i));
  options.cluster_id = "virtual";
  options.incarnation = incarnation;
  options.declare = world.declare;
  options.join_timeout = 300s;
  options.reconnect_timeout = 30s;
  options.say_after = 1s;
  return options;
}

}  // namespace

VirtualWorker::VirtualWorker(VirtualWorld& world, int index) : world_(world), index_(index) {
  const VirtualOptions& options = world.options;
  VirtualTime& time = world.time;
  const double place = double(index) / double(std::max(1, options.workers - 1));
  compute_ = Duration(std::int64_t(20e6 * (1 + (options.spread - 1) * place)));
  leaves_early_ = time.happens(options.early_leaves);
  const bool late = time.happens(options.latecomers);
  time.after(time.between(0s, late ? Duration(3s) : Duration(500ms)), [this] { start(); });
  if (time.happens(options.deaths)) time.after(time.between(100ms, 4s), [this] { die(); });
  for (int i = 0; i < 3; ++i) {
    if (time.happens(options.cuts / 3)) time.after(time.between(100ms, 4s), [this] { cut_one(); });
  }
}

// The worker's process.

void VirtualWorker::start() {
  machine_ = std::make_unique<WorkerTask>(machine_options(world_, index_, ++incarnation_),
                                          world_.time.now());
  links_.assign(std::size_t(world_.options.ps), new_link());
  training_ = done_ = left_ = sent_ = wrote_ = asks_ = records_over_ = starves_ = false;
  records_.clear();
  records_read_ = 0;
  step_ = -1;
  act();
}

VirtualWorker::Link VirtualWorker::new_link() {
  return {.stream = VirtualStream([this](PeerId wire, const VirtualStream::Message& message) {
            world_.network.to_ps(wire, message.bytes,
                                 [arrived = message.arrived, wire] { arrived(wire); });
          })};
}

void VirtualWorker::die() {
  if (!machine_ || left_) return;
  gone();
  left_ = false;
  if (!world_.time.happens(0.5)) return;
  ++world_.checks.result().restarts;
  world_.time.after(world_.time.between(10ms, 3s), [this] { start(); });
}

void VirtualWorker::gone() {
  left_ = true;
  machine_.reset();
  for (Link& link : links_) {
    if (link.wire != 0) world_.network.cut(std::exchange(link.wire, 0), kDeathNoticed);
  }
}

// A ps lost its values, so the worker's process begins again with a new session of training.
void VirtualWorker::begin_again() {
  gone();
  left_ = false;
  world_.time.after(world_.time.between(1ms, 100ms), [this, incarnation = incarnation_] {
    if (incarnation_ == incarnation && !machine_ && !left_) start();
  });
}

void VirtualWorker::cut_one() {
  if (!machine_ || left_) return;
  const PeerId id = links_[world_.time.random() % links_.size()].wire;
  if (id == 0) return;
  world_.network.cut(id, 1s);
}

// Does whatever the worker can do now.
void VirtualWorker::act() {
  if (!machine_ || left_) return;
  Outbox out;
  TimePoint next;
  try {
    next = machine_->tick(world_.time.now(), out);
  } catch (const Error& error) {
    // After any other error the worker has given up, since its ps tasks have ended.
    return error.code() == ErrorCode::kAborted ? begin_again() : gone();
  }
  carry_out(out);
  if (next < TimePoint::max() && next != tick_at_) {
    tick_at_ = next;
    world_.time.at(next, [this, next] {
      if (tick_at_ == next) tick_at_ = TimePoint::max();
      act();
    });
  }
  if (machine_->joined() || training_) train();
}

void VirtualWorker::carry_out(Outbox& out) {
  for (Outbox::Action& action : out.actions()) {
    if (const auto* to = std::get_if<Outbox::Connect>(&action)) connect(int(to->peer));
    if (auto* send = std::get_if<Outbox::Send>(&action)) {
      send_control(int(send->to), std::move(send->message));
    }
  }
}

void VirtualWorker::connect(int ps) {
  world_.time.after(world_.network.delay(), [this, ps, incarnation = incarnation_] {
    if (!machine_ || incarnation_ != incarnation || left_) return;
    VirtualPs& to = *world_.ps[std::size_t(ps)];
    if (to.has_ended() || to.is_down()) {
      machine_->connect_failed(ps, "nobody listens", world_.time.now());
      return act();
    }
    const PeerId id = world_.network.connect(index_, ps, incarnation_);
    links_[std::size_t(ps)].wire = id;
    to.accepted(id);
    Outbox out;
    machine_->connected(ps, DType::kFloat32, out);
    carry_out(out);
    act();
  });
}

void VirtualWorker::send_control(int ps, ControlMessage message) {
  Link& link = links_[std::size_t(ps)];
  const bool counts = is_numbered(message.type);
  auto arrived = [this, ps, message = std::move(message)](PeerId wire) {
    world_.ps[std::size_t(ps)]->received(wire, message);
  };
  if (counts) return link.stream.push({kVirtualControlBytes, nullptr, std::move(arrived)});
  if (link.wire == 0) return;
  world_.network.to_ps(link.wire, kVirtualControlBytes,
                       [arrived = std::move(arrived), wire = link.wire] { arrived(wire); });
}

// The events of the network.

// Returns null for an event of a connection that no longer exists.
VirtualWorker::Link* VirtualWorker::link_of(PeerId id) {
  const VirtualWire& wire = world_.network.wire(id);
  Link& link = links_[std::size_t(wire.ps)];
  return wire.worker_open && machine_ && link.wire == id ? &link : nullptr;
}

void VirtualWorker::received(PeerId id, const ControlMessage& message) {
  Link* const link = link_of(id);
  if (link == nullptr) return;
  const int ps = world_.network.wire(id).ps;
  world_.time.mix(std::uint64_t(message.type));
  try {
    Outbox out;
    const std::int64_t before = machine_->global_step();
    machine_->received(ps, message, world_.time.now(), out);
    if (machine_->initialised() && machine_->global_step() < before) {
      world_.checks.fail(fmt::format("worker:{} sees the global step go back", index_));
    }
    if (message.type == MessageType::kStepDone && message.as<StepDone>().staleness >= 0) {
      world_.checks.told({index_, incarnation_, std::int64_t(message.step), ps});
    }
    if (message.type == MessageType::kWelcome) go_on(*link, id, message.as<Welcome>().handled);
    carry_out(out);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kAborted) return begin_again();
    world_.checks.fail(fmt::format("worker:{}: {}", index_, error.what()));
  }
  if (is_numbered(message.type)) note_handled(*link);
  if (message.type == MessageType::kInitialised && !std::exchange(link->ready, true)) pull(ps);
  act();
}

void VirtualWorker::received_values(PeerId id, std::size_t bytes) {
  Link* const link = link_of(id);
  if (link == nullptr) return;
  note_handled(*link);
  link->missing -= std::int64_t(bytes);
  if (link->missing < 0) world_.checks.fail(fmt::format("worker:{} has not asked", index_));
  if (link->missing == 0) act();
}

void VirtualWorker::note_handled(Link& link) {
  if (!link.handled.handled(false)) return;
  const PeerId wire = link.wire;
  world_.network.to_ps(wire, kVirtualControlBytes, [this, wire, count = link.handled.count()] {
    world_.ps[std::size_t(world_.network.wire(wire).ps)]->confirmed(wire, count);
  });
}

// With the planted fault kSendAllAgain a worker ignores confirmations, so that it can send
// everything again.
void VirtualWorker::confirmed(PeerId id, std::uint64_t handled) {
  Link* const link = link_of(id);
  if (link == nullptr || world_.planted(VirtualOptions::Plant::kSendAllAgain)) return;
  link->stream.confirm(handled);
}

void VirtualWorker::closed(PeerId id) {
  Link* const link = link_of(id);
  world_.network.wire(id).worker_open = false;
  if (link == nullptr) return;
  link->stream.cut();
  link->wire = 0;
  const int ps = world_.network.wire(id).ps;
  const Error error(ErrorCode::kUnavailable, "the connection was cut");
  const WorkerTask::Ended ended = {
      .where = "a ps", .handled = link->handled.count(), .all_confirmed = left_};
  Outbox out;
  switch (machine_->closed(ps, error, ended, world_.time.now(), out)) {
    case WorkerTask::Closed::kExpected:
    case WorkerTask::Closed::kTryAgain:
      break;
    case WorkerTask::Closed::kCutOff:
      ++world_.checks.result().come_backs;
      break;
    case WorkerTask::Closed::kLost:
    case WorkerTask::Closed::kStranger:
      world_.checks.fail(fmt::format("worker:{} has lost ps:{}", index_, ps));
  }
  act();
}

std::string VirtualWorker::standing() const {
  if (left_ || !machine_) return {};
  std::int64_t missing = 0;
  for (const Link& link : links_) missing += link.missing;
  return fmt::format("worker:{} {}{}{} next step {} under way {} waits for {} bytes; ", index_,
                     machine_->joined() ? "joined" : "apart", done_ ? ", done," : "",
                     machine_->may_begin_step() ? "" : ", may not begin,", machine_->next_step(),
                     step_, missing);
}

// VirtualWorker: its training, and its steps on their way.

using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kVirtualBatch = 10;  // records of a step

}  // namespace

void VirtualWorker::train() {
  if (!machine_->initialised()) return initialise();
  if (done_) {
    if (machine_->job_state().all_done) say_goodbye();
    return;
  }
  if (!has_values()) return;
  if (step_ >= 0) {
    if (sent_ && machine_->steps_done() > step_) end_step();
    return;
  }
  const bool early = leaves_early_ && machine_->next_step() > 5;
  if (machine_->global_step() >= world_.options.last_step || early) return finish();
  if (world_.options.records > 0 && !has_records()) {
    since_ = world_.time.now();
    if (records_over_ && records_.empty()) finish();
    return;
  }
  if (!std::exchange(training_, true)) since_ = world_.time.now();
  if (machine_->may_begin_step()) begin_step();
}

// The chief writes the variables, once.
void VirtualWorker::initialise() {
  if (index_ != 0) return machine_->wait_initialised(world_.time.now());
  const auto has_joined = [](const auto& worker) { return worker->joined(); };
  if (world_.options.start_together && !std::ranges::all_of(world_.workers, has_joined)) {
    return world_.time.after(10ms, [this] { act(); });
  }
  if (machine_->was_initialised()) return machine_->wait_initialised(world_.time.now());
  if (std::exchange(wrote_, true)) return;
  const VirtualWorld::Checkpoint& from = world_.checkpoint;
  if (from.global_step > 0) ++world_.checks.result().restores;
  for (int worker = 0; from.global_step > 0 && worker < world_.options.workers; ++worker) {
    TaskState state;
    state.worker = worker;
    state.step = from.own_steps[std::size_t(worker)];
    if (worker == 0 && world_.options.records > 0) tell_unused(from.unused, state.position);
    send_control(0, {MessageType::kTaskState,
                     std::make_shared<const std::vector<std::byte>>(encode(state)), 0});
  }
  for (int ps = 0; ps < world_.options.ps; ++ps) {
    send_control(ps, {MessageType::kWriteEnd, from.global_step, 0});
  }
}

bool VirtualWorker::has_values() const {
  return std::ranges::all_of(links_,
                             [](const Link& link) { return link.ready && link.missing == 0; });
}

void VirtualWorker::begin_step() {
  note_wait();
  step_ = machine_->begin_step();
  sent_ = false;
  if (world_.options.records > 0) read_records();
  world_.checks.began_ahead(ahead());
  const Duration takes = world_.time.between(compute_ / 2, compute_ * 3 / 2);
  world_.time.after(takes, [this, incarnation = incarnation_] {
    if (machine_ && incarnation_ == incarnation && step_ >= 0) send_own_step();
  });
}

// Returns how many steps the worker is ahead of the slowest worker. This counts the steps that have
// ended on ps 0, since an answer may still be under way.
std::int64_t VirtualWorker::ahead() const {
  std::int64_t least = step_;
  for (std::size_t i = 0; i < world_.workers.size(); ++i) {
    if (!world_.workers[i]->trains()) continue;
    least = std::min(least, world_.checks.ended_on_first(int(i)));
  }
  return step_ - least;
}

void VirtualWorker::send_own_step() {
  sent_ = true;
  since_ = world_.time.now();
  for (int ps = 0; ps < world_.options.ps; ++ps) {
    send_step(ps, step_);
    // In rounds the ps refuses to begin a step twice, since the first attempt is not decided yet.
    if (world_.in_rounds() || !world_.time.happens(world_.options.repeats)) continue;
    ++world_.checks.result().repeated_steps;
    send_step(ps, step_);
  }
}

void VirtualWorker::end_step() {
  note_wait();
  if (index_ == 0 && world_.options.ps_deaths > 0) save();
  step_ = -1;
  since_ = world_.time.now();
  world_.time.after(Duration(0), [this] { act(); });
}

// The chief makes a checkpoint of this moment if enough global steps have passed since the last
// one.
void VirtualWorker::save() {
  const PsTask& first = world_.ps.front()->machine();
  VirtualWorld::Checkpoint& newest = world_.checkpoint;
  const std::int64_t every = world_.in_rounds() ? 3 : 20;
  if (!first.initialised() || first.global_step() < newest.global_step + every) return;
  newest.global_step = first.global_step();
  for (std::size_t i = 0; i < newest.own_steps.size(); ++i) {
    newest.own_steps[i] = world_.checks.ended_on_first(int(i));
  }
  if (first.shares() == nullptr) return;
  newest.unused = first.shares()->unused();
  newest.used = world_.checks.used_records();
}

// True when the records of the next step have arrived: a whole batch, or what is left if no more
// records will arrive.
bool VirtualWorker::has_records() {
  if (!std::exchange(asks_, true)) {
    for (int ahead = 0; ahead < 3; ++ahead) ask_records();
  }
  const GivenRecords given = machine_->take_records();
  records_.insert(records_.end(), given.ranges.begin(), given.ranges.end());
  records_over_ = records_over_ || given.over;
  std::int64_t here = 0;
  for (const RecordRange& range : records_) here += range.size();
  if (!given.ranges.empty()) starves_ = false;
  if (here < kVirtualBatch && !records_over_ && !std::exchange(starves_, true)) ask_records(true);
  return here >= kVirtualBatch || (records_over_ && here > 0);
}

void VirtualWorker::read_records() {
  std::vector<RecordRange> read;
  for (std::int64_t missing = kVirtualBatch; missing > 0 && !records_.empty();) {
    RecordRange& first = records_.front();
    const std::int64_t count = std::min(missing, first.size());
    read.push_back({first.first, first.first + count});
    first.first += count;
    missing -= count;
    records_read_ += count;
    if (first.size() == 0) records_.pop_front();
  }
  world_.checks.reads(index_, incarnation_, step_, read);
  const bool lies = world_.planted(VirtualOptions::Plant::kReadsTooMuch) && index_ == 1;
  Outbox out;
  machine_->reads_records(records_read_ - (lies ? kVirtualBatch / 2 : 0), out);
  carry_out(out);
  ask_records();
}

void VirtualWorker::ask_records(bool starves) {
  Outbox out;
  machine_->ask_records(
      {.records = starves ? 0 : kVirtualBatch, .limit = world_.options.records, .starves = starves},
      out);
  carry_out(out);
}

void VirtualWorker::note_wait() { world_.checks.waited(index_, world_.time.now() - since_); }

void VirtualWorker::finish() {
  done_ = true;
  Outbox out;
  machine_->set_done(out);
  carry_out(out);
  // A worker that leaves early does not wait for the others.
  const Duration patience = leaves_early_ ? 0s : 60s;
  world_.time.after(patience, [this, incarnation = incarnation_] {
    if (machine_ && incarnation_ == incarnation) say_goodbye();
  });
  if (machine_->job_state().all_done) say_goodbye();
}

void VirtualWorker::say_goodbye() {
  if (std::exchange(left_, true)) return;
  Outbox out;
  machine_->leave(out);
  carry_out(out);
  for (const Link& link : links_) {
    if (link.wire != 0) world_.network.cut_after_last_to_ps(link.wire);
  }
}

// Steps on their way.

// Sends again the messages that the ps has not handled.
void VirtualWorker::go_on(Link& link, PeerId id, std::uint64_t handled) {
  if (world_.planted(VirtualOptions::Plant::kSendAllAgain)) handled = link.resumed_at;
  link.resumed_at = handled;
  link.stream.go_on(id, handled, world_.planted(VirtualOptions::Plant::kForgetLost));
}

void VirtualWorker::pull(int ps) {
  std::vector<std::uint32_t> order;
  Link& link = links_[std::size_t(ps)];
  for (const AssemblyTarget& target : world_.needed_from(ps)) {
    order.push_back(target.where.id);
    link.missing += std::int64_t(target.bytes());
  }
  link.stream.push({kVirtualControlBytes, nullptr, [this, ps, order](PeerId wire) {
                      world_.ps[std::size_t(ps)]->pulled(wire, order);
                    }});
}

// The ps answers chunk by chunk, while later chunks are still sent.
void VirtualWorker::send_step(int ps, std::int64_t step) {
  Link& link = links_[std::size_t(ps)];
  FrameHeader header{.type = std::uint16_t(MessageType::kStepBegin),
                     .offset = std::uint64_t(machine_->global_step()),
                     .step = std::uint64_t(step)};
  plan_frame(link, ps, header);
  header.type = std::uint16_t(MessageType::kChunk);
  for (const AssemblyTarget& target : world_.needed_from(ps)) {
    header.id = target.where.id;
    for (const Cut cut : byte_cuts(target.bytes())) {
      header.offset = cut.begin;
      header.payload_bytes = std::uint32_t(cut.size);
      link.missing += std::int64_t(cut.size);
      plan_frame(link, ps, header);
    }
    link.free_at += 3ms;  // until a kernel has made the next piece of the contribution
  }
  header = {.type = std::uint16_t(MessageType::kStepEnd), .step = std::uint64_t(step)};
  plan_frame(link, ps, header);
}

// Frames to one ps follow one another, whatever step or piece they belong to.
void VirtualWorker::plan_frame(Link& link, int ps, const FrameHeader& header) {
  link.free_at = std::max(link.free_at, world_.time.now());
  world_.time.at(link.free_at, [this, ps, incarnation = incarnation_, header] {
    if (!machine_ || incarnation_ != incarnation) return;
    const auto arrived = [this, ps, header](PeerId wire) {
      world_.ps[std::size_t(ps)]->step_frame(wire, header);
    };
    links_[std::size_t(ps)].stream.push(
        {kFrameHeaderBytes + header.payload_bytes, nullptr, arrived});
  });
}

}  // namespace paceline

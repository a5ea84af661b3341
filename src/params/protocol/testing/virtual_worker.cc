#include "params/protocol/testing/virtual_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"
#include "params/protocol/testing/virtual_ps.h"

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

// A ps was lost with its values: the process makes a new session.
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
    // Unless it begins again it gave up: its ps tasks have ended.
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

// Returns null for an event of a connection that is no more.
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

// A worker with the fault planted believes none of it, so that it can send all again.
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

}  // namespace paceline

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

WorkerJobOptions machine_options(const VirtualWorld& world, int index, std::uint64_t incarnation) {
  WorkerJobOptions options;
  options.worker = index;
  options.workers = world.options.workers;
  for (int i = 0; i < world.options.ps; ++i) options.ps.push_back(fmt::format("ps:{}", i));
  options.cluster_id = "virtual";
  options.incarnation = incarnation;
  options.declare = world.declare;
  options.join_timeout = 300s;
  options.say_after = 1s;
  return options;
}

}  // namespace

VirtualWorker::VirtualWorker(VirtualWorld& world, int index)
    : world_(world), index_(index), links_(std::size_t(world.options.ps)) {
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
  machine_ = std::make_unique<WorkerJob>(machine_options(world_, index_, ++incarnation_),
                                         world_.time.now());
  links_.assign(links_.size(), {});
  wrote_.clear();
  training_ = done_ = left_ = sent_ = false;
  step_ = first_step_ = last_sent_ = -1;
  act();
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

// A connection that has not agreed yet may not come back.
void VirtualWorker::cut_one() {
  const PeerId id = links_[world_.time.random() % links_.size()].wire;
  if (id == 0 || !machine_ || !machine_->initialised() || left_) return;
  world_.network.cut(id, 1s);
}

// Does whatever the worker can do now.
void VirtualWorker::act() {
  if (!machine_ || left_) return;
  Outbox out;
  TimePoint next;
  try {
    next = machine_->tick(world_.time.now(), out);
  } catch (const Error&) {
    return gone();  // it gave up: its ps tasks have ended
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
    if (to.has_ended()) {
      machine_->connect_failed(ps, "the ps has ended", world_.time.now());
      return act();
    }
    const PeerId id = world_.network.connect(index_, ps, incarnation_);
    world_.network.wire(id).may_lose = machine_->initialised();
    links_[std::size_t(ps)] = {.wire = id, .free_at = world_.time.now()};
    to.accepted(id);
    Outbox out;
    machine_->connected(ps, DType::kFloat32, out);
    carry_out(out);
    act();
  });
}

void VirtualWorker::send_control(int ps, ControlMessage message) {
  const PeerId id = links_[std::size_t(ps)].wire;
  if (id == 0) return;
  world_.network.to_ps(id, kVirtualControlBytes, [this, ps, id, message = std::move(message)] {
    world_.ps[std::size_t(ps)]->received(id, message);
  });
}

// The events of the network.

// Returns null for an event of a connection that is no more.
VirtualWorker::Link* VirtualWorker::link_of(PeerId id) {
  const VirtualWire& wire = world_.network.wire(id);
  Link& link = links_[std::size_t(wire.ps)];
  return wire.worker_open && machine_ && link.wire == id ? &link : nullptr;
}

void VirtualWorker::received(PeerId id, const ControlMessage& message) {
  if (link_of(id) == nullptr) return;
  const int ps = world_.network.wire(id).ps;
  world_.time.mix(std::uint64_t(message.type));
  try {
    Outbox out;
    machine_->received(ps, message, out);
    carry_out(out);
  } catch (const Error& error) {
    world_.checks.fail(fmt::format("worker:{}: {}", index_, error.what()));
  }
  if (message.type == MessageType::kInitialised) go_on(ps);
  act();
}

void VirtualWorker::received_values(PeerId id, std::size_t bytes) {
  Link* const link = link_of(id);
  if (link == nullptr) return;
  link->missing -= std::int64_t(bytes);
  if (link->missing < 0) world_.checks.fail(fmt::format("worker:{} has not asked", index_));
  if (link->missing == 0) act();
}

void VirtualWorker::closed(PeerId id) {
  Link* const link = link_of(id);
  world_.network.wire(id).worker_open = false;
  if (link == nullptr) return;
  *link = {};
  const int ps = world_.network.wire(id).ps;
  const Error error(ErrorCode::kUnavailable, "the connection was cut");
  if (machine_->closed(ps, error, world_.time.now()) == WorkerJob::Closed::kLost) {
    ++world_.checks.result().come_backs;
    machine_->come_back(ps, world_.time.now());
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

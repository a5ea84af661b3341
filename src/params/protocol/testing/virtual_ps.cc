#include "params/protocol/testing/virtual_ps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "paceline/error.h"
#include "params/protocol/testing/virtual_worker.h"

namespace paceline {

using namespace std::chrono_literals;

namespace {

PsJobOptions machine_options(const VirtualOptions& options, int index) {
  PsJobOptions machine;
  machine.ps = index;
  machine.workers = options.workers;
  machine.cluster_id = "virtual";
  machine.incarnation = 1;
  machine.join_timeout = 300s;
  machine.warm_steps = 2;
  return machine;
}

}  // namespace

VirtualPs::VirtualPs(VirtualWorld& world, int index)
    : world_(world),
      index_(index),
      targets_(assembly_targets(world.declare.variables, world.declare.pieces, index)),
      machine_(
          machine_options(world.options, index),
          [](const Declare&) { return std::vector<std::int32_t>(); }, world.time.now()) {
  tick();
}

void VirtualPs::tick() {
  if (has_ended_) return;
  Outbox out;
  const TimePoint now = world_.time.now();
  const TimePoint next = machine_.tick(now, out);
  carry_out(out);
  has_ended_ = machine_.end(now) != Membership::End::kNotYet;
  if (!has_ended_) world_.time.at(std::min(next, now + 1s), [this] { tick(); });
}

void VirtualPs::carry_out(Outbox& out) {
  for (Outbox::Action& action : out.actions()) {
    if (auto* send = std::get_if<Outbox::Send>(&action)) {
      const bool wake = send->message.type == MessageType::kStepLimit;
      if (wake && world_.planted(VirtualOptions::Plant::kLostWake) && ++wakes_ % 3 == 0) continue;
      world_.network.to_worker(send->to, kVirtualControlBytes, {},
                               [this, id = send->to, message = std::move(send->message)] {
                                 const int worker = world_.network.wire(id).worker;
                                 world_.workers[std::size_t(worker)]->received(id, message);
                               });
    } else if (const auto* close = std::get_if<Outbox::Close>(&action)) {
      world_.network.cut_after_last_to_worker(close->peer);
    }
  }
}

template <typename Act>
void VirtualPs::event(PeerId id, Act&& act) {
  const VirtualWire& wire = world_.network.wire(id);
  if (!wire.ps_open) return;
  Outbox out;
  try {
    act(out);
  } catch (const Error& error) {
    world_.checks.fail(
        fmt::format("ps:{} refuses worker:{}: {}", index_, wire.worker, error.what()));
    machine_.refuse(id, error.what(), out);
  }
  carry_out(out);
}

void VirtualPs::accepted(PeerId id) {
  peers_.emplace(id, Peer{StepAssembly(targets_), {}});
  event(id, [&](Outbox& out) { machine_.accepted(id, world_.time.now(), out); });
}

void VirtualPs::received(PeerId id, const ControlMessage& message) {
  event(id, [&](Outbox& out) { machine_.received(id, message, world_.time.now(), out); });
}

void VirtualPs::pulled(PeerId id, const std::vector<std::uint32_t>& order) {
  event(id, [&](Outbox&) {
    machine_.check_agreed(id, true);
    world_.checks.set_order(id, order);
    if (!world_.planted(VirtualOptions::Plant::kRepliesInOrder)) peer(id).replies.set_order(order);
    for (const AssemblyTarget& target : targets_) {
      for (const Cut cut : byte_cuts(target.bytes())) answer(id, target.where.id, cut);
    }
  });
}

void VirtualPs::step_frame(PeerId id, const FrameHeader& header) {
  event(id, [&](Outbox& out) {
    const MessageType type{header.type};
    if (type == MessageType::kStepBegin) return begin_step(id, header);
    if (type == MessageType::kChunk) return chunk(id, header);
    end_step(id, header, out);
  });
}

VirtualStep VirtualPs::step_of(PeerId id, const FrameHeader& header) const {
  const VirtualWire& wire = world_.network.wire(id);
  return {wire.worker, wire.incarnation, std::int64_t(header.step), index_};
}

std::size_t VirtualPs::position(std::uint32_t piece) const {
  const auto found = std::ranges::find(
      targets_, piece, [](const AssemblyTarget& target) { return target.where.id; });
  return std::size_t(found - targets_.begin());
}

void VirtualPs::begin_step(PeerId id, const FrameHeader& header) {
  const std::int64_t step = std::int64_t(header.step);
  Fate fate = machine_.begin_step(id, step);
  if (world_.planted(VirtualOptions::Plant::kRepeatsCount)) fate = Fate::kApply;
  const StepProgress& before = machine_.progress(world_.network.wire(id).worker);
  std::vector<StepProgress::Entry> applied;
  if (before.begun == step && !world_.planted(VirtualOptions::Plant::kSendAllAgain))
    applied = before.applied;
  peer(id).assembly.begin(step, world_.options.clipped, fate, applied);
}

void VirtualPs::chunk(PeerId id, const FrameHeader& header) {
  StepAssembly& assembly = peer(id).assembly;
  assembly.check_step(std::int64_t(header.step), MessageType::kChunk);
  const std::size_t at = position(header.id), bytes = header.payload_bytes;
  assembly.expect_chunk(at, header.offset, bytes);
  const StepAssembly::Arrival arrival = assembly.chunk(at, header.offset, bytes);
  if (!arrival.apply) return;
  const Cut part{header.offset, bytes};
  if (assembly.counts() && !arrival.again) {
    world_.checks.applied(step_of(id, header), header.id, part);
  }
  answer(id, header.id, part);
}

void VirtualPs::end_step(PeerId id, const FrameHeader& header, Outbox& out) {
  StepAssembly& assembly = peer(id).assembly;
  assembly.check_step(std::int64_t(header.step), MessageType::kStepEnd);
  for (std::size_t at = 0; at < targets_.size(); ++at) {
    assembly.check_whole(at);
    if (!assembly.take_whole(at)) continue;
    const std::size_t bytes = targets_[at].bytes();
    const std::uint32_t piece = targets_[at].where.id;
    if (assembly.counts()) world_.checks.applied(step_of(id, header), piece, {0, bytes});
    for (const Cut cut : byte_cuts(bytes)) answer(id, piece, cut);
  }
  assembly.end();
  const Fate fate = assembly.fate();
  const TimePoint now = world_.time.now();
  machine_.end_step(id, assembly.step(), fate, now, out);
  if (fate == Fate::kApply) {
    ++counted_;
    world_.checks.ended(step_of(id, header));
  }
  if (world_.planted(VirtualOptions::Plant::kEndTwice) && index_ == 0 && assembly.step() == 3) {
    machine_.end_step(id, assembly.step(), fate, now, out);
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
  while (auto reply = peer(id).replies.next()) {
    const std::size_t bytes = reply->bytes;
    const std::uint32_t piece = reply->header.id;
    world_.checks.given(id, piece, bytes);
    if (world_.planted(VirtualOptions::Plant::kNoWindow)) peer(id).replies.sent(bytes);
    world_.network.to_worker(
        id, bytes,
        [this, id, bytes] {
          world_.checks.sent(id, bytes);
          if (world_.planted(VirtualOptions::Plant::kNoWindow)) return;
          peer(id).replies.sent(bytes);
          send_some(id);
        },
        [this, id, bytes] {
          const int worker = world_.network.wire(id).worker;
          world_.workers[std::size_t(worker)]->received_values(id, bytes);
        });
  }
}

void VirtualPs::closed(PeerId id) {
  event(id, [&](Outbox& out) {
    machine_.closed(id, "the connection was cut", peer(id).assembly.progress(), world_.time.now(),
                    out);
  });
  world_.network.wire(id).ps_open = false;
  peers_.erase(id);
}

}  // namespace paceline

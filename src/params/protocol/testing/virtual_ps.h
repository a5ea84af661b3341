// A ps of a virtual job: its state machines, driven by events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "params/protocol/ps_task.h"
#include "params/protocol/reply_schedule.h"
#include "params/protocol/send_log.h"
#include "params/protocol/step_assembly.h"
#include "params/protocol/testing/virtual_stream.h"
#include "params/protocol/testing/virtual_world.h"

namespace paceline {

class VirtualPs {
 public:
  VirtualPs(VirtualWorld& world, int index);

  const PsTask& machine() const { return *machine_; }
  bool has_ended() const { return has_ended_; }
  /// True from the end of its process until the next process starts.
  bool is_down() const { return is_down_; }
  /// Returns a line for the message of a job that does not end; empty if the job has no rounds or
  /// this ps has ended.
  std::string standing() const;
  /// Returns the number of global steps, as this class counts them. Tests compare it with the count
  /// of the state machine.
  std::int64_t counted() const { return counted_; }

  // Events of the network, on one of the ps's connections.
  void accepted(PeerId wire);
  void received(PeerId wire, const ControlMessage& message);
  /// The worker needs the pieces in this order, and is sent all of them.
  void pulled(PeerId wire, const std::vector<std::uint32_t>& order);
  /// A frame of a step: kStepBegin, kChunk or kStepEnd.
  void step_frame(PeerId wire, const FrameHeader& header);
  /// The worker has handled this many numbered messages.
  void confirmed(PeerId wire, std::uint64_t handled);
  void closed(PeerId wire);
  // Events of the ps's own connection to ps 0.
  void from_coordinator(PeerId wire, const ControlMessage& message);
  void coordinator_confirmed(PeerId wire, std::uint64_t handled);
  void coordinator_closed(PeerId wire);

 private:
  /// The ps's side of its connection to ps 0.
  struct Coordinator {
    VirtualStream stream = VirtualStream({});
    HandledCount handled = {};
    PeerId wire = 0;  // 0: none
    std::uint64_t incarnation = 0;
  };
  /// A process of a worker, or another ps, over all its connections.
  struct Peer {
    int worker = -1;  // known once it has pulled values
    std::uint64_t incarnation = 0;
    StepAssembly assembly;
    VirtualStream stream;
    ReplySchedule<int> replies = {};  // the payload is only a size
    HandledCount handled = {};        // the peer's numbered messages
    PeerId wire = 0;                  // 0: the peer is cut off
  };
  /// Calls act(peer, outbox) with the peer behind the connection, unless the connection has ended
  /// here.
  template <typename Act>
  void event(PeerId wire, Act&& act);
  /// Does the same for a numbered message, and counts the message as handled.
  template <typename Act>
  void numbered(PeerId wire, Act&& act);
  void begin();
  void die();
  void end_connections(Duration noticed);
  void tick();
  void carry_out(Outbox& out);
  void send(PeerId id, ControlMessage message);
  void attach(PeerId from, PeerId to);
  Peer& peer(PeerId id) { return peers_.at(id); }
  /// Returns null if the peer has gone for good.
  Peer* find(PeerId id);
  VirtualStep step_of(PeerId id, const FrameHeader& header);
  std::size_t position(std::uint32_t piece) const;

  // Rounds.
  void begin_rounds();
  void keep(PeerId id, const FrameHeader& header, Outbox& out);
  void carry_out_rounds();
  void sum(const Outbox::Decide& decided);
  /// Notes that the worker is sent the present values.
  void note_read(PeerId id);
  void answer_round(const Outbox::Decide& decided);
  void pretend_others_have(const RoundContribution& contribution, Outbox& out);
  void connect_coordinator();
  void send_to_coordinator(ControlMessage message);

  void begin_step(PeerId id, const FrameHeader& header);
  void chunk(PeerId id, const FrameHeader& header);
  void end_step(PeerId id, const FrameHeader& header, Outbox& out);
  void answer(PeerId id, std::uint32_t piece, Cut part);
  void send_some(PeerId id);

  VirtualWorld& world_;
  const int index_;
  const std::vector<AssemblyTarget> targets_;
  std::unique_ptr<PsTask> machine_;
  std::uint64_t incarnation_ = 0;
  std::map<PeerId, Peer> peers_;
  bool has_ended_ = false, is_down_ = false;
  std::int64_t counted_ = 0;
  std::int64_t wakes_ = 0;
  Coordinator coordinator_;
  std::deque<Outbox::Decide> rounds_;            // decisions to carry out
  bool squares_told_ = false, clipped_ = false;  // of the first decision in rounds_
  bool carries_out_ = false;
  std::set<VirtualStep> kept_;  // contributions that are whole here, and undecided
};

}  // namespace paceline

// A ps of a simulated job. It has the state machines of a real ps, but sizes instead of bytes, and
// its rules take the time of their passes over memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "params/protocol/ps_task.h"
#include "params/protocol/reply_schedule.h"
#include "params/protocol/step_assembly.h"
#include "predict/simulation/simulated_frame.h"
#include "predict/simulation/simulated_world.h"

namespace paceline {

class SimulatedPs : public FrameReceiver {
 public:
  SimulatedPs(SimulatedWorld& world, int index);

  /// Opens the streams to the other tasks.
  void connect();
  /// Takes frames from worker `from`, or from ps `from` − N if there are N workers and `from` is at
  /// least N.
  void arrived(int from, std::vector<SimulatedFrame> frames) override;
  /// Sets the stream from a worker or another ps to this ps.
  void set_stream_from(int peer, int stream) { peers_[std::size_t(peer)].stream_in = stream; }
  /// The seconds in which this ps has applied rules.
  double applying() const { return applying_; }

 private:
  struct Peer {
    explicit Peer(std::vector<AssemblyTarget> targets) : assembly(std::move(targets)) {}
    PeerId id = 0;  // 0: the peer has not said anything
    int stream = -1, stream_in = -1;
    StepAssembly assembly;
    ReplySchedule<std::size_t> replies = {};
    std::deque<SimulatedFrame> inbox = {};
    bool in_hand = false;  // a thread handles its frames, or is about to
  };
  Peer& peer_of(PeerId id) { return peers_[names_[std::size_t(id) - 1]]; }
  void tick();
  void take_frames();
  void receive_some(std::size_t from);
  void apply_some(std::size_t from, SimulatedWork work, std::vector<SimulatedFrame> frames);
  void finish_turn(std::size_t from, const std::vector<SimulatedFrame>& frames);
  double chunk_bytes(const SimulatedFrame& frame) const;
  SimulatedWork work_of(const Peer& peer, const SimulatedFrame& frame) const;
  void handle(Peer& peer, const SimulatedFrame& frame, Outbox& out);
  void begin_step(Peer& peer, const SimulatedFrame& frame);
  void take_rows(Peer& peer, const SimulatedFrame& frame);
  void chunk(Peer& peer, const SimulatedFrame& frame);
  void contribution(Peer& peer, const SimulatedFrame& frame);
  void end_step(Peer& peer, const SimulatedFrame& frame, Outbox& out);
  void apply_whole(Peer& peer, std::size_t position);
  void pulled(Peer& peer);
  bool reads_in_place(const Peer& peer, const AssemblyTarget& target) const;
  bool copies(const Peer& peer, const AssemblyTarget& target) const;
  void send_next_rows(Peer& peer, std::size_t position, std::uint64_t step);
  void answer(Peer& peer, std::size_t position, Cut part);
  void send_replies(Peer& peer);
  void carry_out(Outbox& out);
  void send(PeerId to, ControlMessage message);
  void tell(Peer& peer, MessageType type, std::uint32_t piece);
  std::size_t position_of(std::uint32_t piece) const;
  double rule_bytes(std::size_t position, double part = 1) const;
  int threads() const;

  // Rounds (simulated_ps_rounds.cc).
  struct RoundAnswer {
    Peer* peer;
    std::uint64_t step;           // the worker's own step
    std::vector<bool> in_frames;  // by position: the worker gets the new values in frames
  };
  void carry_out_rounds();
  bool gave(const RoundContribution& it, std::size_t position) const;
  double given_bytes(std::size_t position) const;
  void apply_round(std::size_t position);
  void answer_round();
  void send_round_values(std::size_t position);
  void connect_coordinator();
  void go_on_with_coordinator();
  void from_coordinator(const ControlMessage& message);

  SimulatedWorld& world_;
  const int index_, host_;
  const std::vector<AssemblyTarget> targets_;
  const std::vector<std::vector<std::int32_t>> rows_;  // by position: the rows that a step names
  PsTask machine_;
  std::vector<Peer> peers_;          // workers, then ps tasks
  std::vector<std::size_t> names_;   // indices into peers_, by PeerId − 1
  std::deque<std::size_t> in_turn_;  // peers whose frames wait
  int free_threads_ = 0;
  int applies_ = 0;  // rules that are being applied
  double applying_ = 0;
  int coordinator_ = -1;  // the stream to ps 0
  bool coordinator_goes_on_ = false;
  // Messages for ps 0 that wait until go_on_with_coordinator().
  std::vector<ControlMessage> for_coordinator_ = {};
  std::deque<Outbox::Decide> rounds_ = {};  // rounds to carry out
  std::optional<Outbox::Decide> round_;     // the round that is being carried out
  std::vector<RoundAnswer> answers_;        // answers of this round
  bool squares_told_ = false, clipped_ = false;
};

}  // namespace paceline

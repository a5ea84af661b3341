// A worker of a simulated job with parameter servers, as the store of its step. It has the state
// machine of a real worker.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "params/protocol/frame_cuts.h"
#include "params/protocol/worker_task.h"
#include "predict/simulation/simulated_frame.h"
#include "predict/simulation/simulated_store.h"
#include "predict/simulation/simulated_world.h"

namespace paceline {

class SimulatedWorker : public SimulatedStore, public FrameReceiver {
 public:
  SimulatedWorker(SimulatedWorld& world, int index);

  /// Opens the streams to the ps tasks.
  void connect();
  void start();
  void arrived(int from, std::vector<SimulatedFrame> frames) override;
  void set_stream_from(int ps, int stream) { streams_in_[std::size_t(ps)] = stream; }
  // For rounds that the workers commit (hybrid).
  void await_round(std::int64_t round);
  bool round_is_open() const { return machine_.round_is_open(); }
  /// True if every ps has all contributions of the last step.
  bool is_given() const { return machine_.steps_given() > step_ || answered(); }
  void commit(const std::vector<std::int32_t>& contributors);
  /// True if the scale by which the mean of the last step's round is clipped has arrived.
  bool has_scale() const { return machine_.scale().round == round_ || answered(); }

  int index() const { return index_; }
  int host() const { return host_; }

  bool may_begin(StepKind kind) override;
  void begin_step(StepKind kind, int plan) override;
  bool has(VariableId variable) const override { return missing_[std::size_t(variable)] == 0; }
  void ready(VariableId variable, const Done& done) override;
  void end_step(const Done& done) override;
  bool answered() const override { return machine_.steps_done() > step_; }
  std::int64_t global_step() const override { return machine_.global_step(); }

 private:
  void take_frames();
  void handle(int ps, const SimulatedFrame& frame);
  void act();
  void carry_out(Outbox& out);
  void send_control(int ps, ControlMessage message);
  void send(int ps, MessageType type, std::size_t payload);
  void pull();
  ContributionRoute route_of(const Piece& piece) const;
  /// Sends the contribution to the pieces of a variable, starting with piece number `at`.
  void contribute(VariableId variable, std::size_t at, const Done& done);
  void send_frames(const Piece& piece, const ContributionRoute& route);
  /// Sends the kept contributions, starting with number `next`.
  void send_kept(std::size_t next, const Done& done);
  void send_step_end(const Done& done);

  SimulatedWorld& world_;
  const int index_, host_;
  WorkerTask machine_;
  std::vector<int> streams_, streams_in_;   // by ps
  std::vector<std::vector<Piece>> pieces_;  // by variable
  std::vector<std::int64_t> missing_;       // by variable: bytes, or notices, still to arrive
  std::vector<VariableId> kept_;  // to be sent once the norm of all contributions is known
  struct Arrived {
    int ps = 0;
    SimulatedFrame frame;
  };
  std::deque<Arrived> inbox_;
  bool handles_ = false, wrote_ = false, pulled_ = false, permitted_ = true;
  /// `begun_`: a step is under way. `fetched_`: the last step was a fetch step.
  bool begun_ = false, fetched_ = false;
  std::int64_t step_ = -1, round_ = -1;  // the last step that contributed, and its round
};

}  // namespace paceline

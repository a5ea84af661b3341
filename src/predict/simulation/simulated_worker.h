// A worker of a simulated job with parameter servers: the state machine of a real one.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "params/protocol/worker_job.h"
#include "predict/simulation/simulated_frame.h"
#include "predict/simulation/step_thread.h"

namespace paceline {

class SimulatedWorker : public StepThread, public FrameReceiver {
 public:
  SimulatedWorker(SimulatedWorld& world, int index);

  /// Makes the streams to the ps tasks.
  void connect();
  void start();
  void arrived(int from, std::vector<SimulatedFrame> frames) override;
  void set_stream_from(int ps, int stream) { streams_in_[std::size_t(ps)] = stream; }

 private:
  bool may_begin() override;
  void begin_step() override;
  bool has(VariableId variable) const override { return missing_[std::size_t(variable)] == 0; }
  void ready(VariableId variable, const std::function<void()>& done) override;
  void end_step() override;
  bool answered() override;

  void take_frames();
  void handle(int ps, const SimulatedFrame& frame);
  void act();
  void carry_out(Outbox& out);
  void send_control(int ps, ControlMessage message);
  void send(int ps, MessageType type, std::size_t payload);
  void pull();
  void contribute(const Piece& piece);
  /// This step's contributions go to the ps tasks: it is the last of those that are accumulated.
  bool contributes() const;

  WorkerJob machine_;
  std::vector<int> streams_, streams_in_;   // by ps
  std::vector<std::vector<Piece>> pieces_;  // by variable
  std::vector<std::int64_t> missing_;       // by variable: bytes, or words, that are to come
  struct Arrived {
    int ps = 0;
    SimulatedFrame frame;
  };
  std::deque<Arrived> inbox_;
  bool handles_ = false, wrote_ = false, pulled_ = false, permitted_ = true;
  std::int64_t step_ = -1;
};

}  // namespace paceline

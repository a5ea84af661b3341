// A worker task of a virtual job: its processes start, train, die and are started again.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "params/protocol/send_log.h"
#include "params/protocol/testing/virtual_stream.h"
#include "params/protocol/testing/virtual_world.h"
#include "params/protocol/worker_task.h"

namespace paceline {

class VirtualWorker {
 public:
  /// Makes the worker, and plans its failures.
  VirtualWorker(VirtualWorld& world, int index);

  bool joined() const { return machine_ != nullptr && machine_->joined(); }
  /// True while others may have to wait for this worker.
  bool trains() const { return machine_ != nullptr && !done_ && !left_; }
  /// Returns a line for the message of a job that does not end; empty when the worker is gone.
  std::string standing() const;

  // Events of the network.
  void received(PeerId id, const ControlMessage& message);
  void received_values(PeerId id, std::size_t bytes);
  /// The ps has handled this many numbered messages.
  void confirmed(PeerId id, std::uint64_t handled);
  void closed(PeerId id);

 private:
  /// This process's connection to one ps, and the count of its messages.
  struct Link {
    VirtualStream stream;
    HandledCount handled = {};  // numbered messages of the ps
    /// How many messages of this process the ps had handled at the last resumption.
    std::uint64_t resumed_at = 0;
    PeerId wire = 0;           // the connection; 0: none
    bool ready = false;        // the ps takes steps
    std::int64_t missing = 0;  // bytes of values that have not arrived
    TimePoint free_at{};       // the time at which the last planned frame is sent
  };
  void start();
  void die();
  void cut_one();
  void gone();
  void begin_again();
  void act();
  void carry_out(Outbox& out);
  void connect(int ps);
  Link new_link();
  Link* link_of(PeerId id);
  void note_handled(Link& link);
  void send_control(int ps, ControlMessage message);

  void train();
  void initialise();
  void begin_step();
  void send_own_step();
  bool has_values() const;
  void end_step();
  void save();
  void finish();
  void say_goodbye();
  void note_wait();
  bool has_records();
  void read_records();
  void ask_records(bool starves = false);
  std::int64_t ahead() const;

  void go_on(Link& link, PeerId id, std::uint64_t handled);
  void pull(int ps);
  void send_step(int ps, std::int64_t step);
  void plan_frame(Link& link, int ps, const FrameHeader& header);

  VirtualWorld& world_;
  const int index_;
  Duration compute_{};
  bool leaves_early_ = false;

  std::unique_ptr<WorkerTask> machine_;  // null: no process runs
  std::uint64_t incarnation_ = 0;
  std::vector<Link> links_;  // by ps
  bool wrote_ = false;       // this process has initialised the ps tasks
  bool training_ = false, done_ = false, left_ = false;
  std::int64_t step_ = -1;  // the step under way; −1: none
  bool sent_ = false;       // all frames of the step are planned
  TimePoint since_{};       // the time at which the worker began to wait
  // The shared-out records that the worker was given and has not read, and the number of records
  // that it has read.
  std::deque<RecordRange> records_;
  std::int64_t records_read_ = 0;
  bool asks_ = false, records_over_ = false, starves_ = false;
  TimePoint tick_at_ = TimePoint::max();
};

}  // namespace paceline

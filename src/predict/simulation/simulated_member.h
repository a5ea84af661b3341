// A worker of a simulated all-reduce, as the store of its step. It has the state machine of a real
// member (CollectiveGroup), and makes the reduction of LinkCollectives, in place or in a ring, with
// sizes instead of bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "params/collective/contribution_layout.h"
#include "params/protocol/collective_group.h"
#include "predict/simulation/simulated_frame.h"
#include "predict/simulation/simulated_store.h"
#include "predict/simulation/simulated_world.h"

namespace paceline {

class SimulatedMember : public SimulatedStore, public FrameReceiver {
 public:
  using Members = std::vector<std::unique_ptr<SimulatedMember>>;
  SimulatedMember(SimulatedWorld& world, int index, const Members& members);

  void connect();
  void start();
  void arrived(int from, std::vector<SimulatedFrame> frames) override;
  int host() const { return host_; }

  bool may_begin(StepKind kind) override;
  void begin_step(StepKind kind, int plan) override;
  bool has(VariableId) const override { return true; }
  void ready(VariableId variable, const Done& done) override;
  /// Waits until the step is committed, and applies it.
  void end_step(const Done& done) override;
  bool answered() const override { return true; }

  /// From now on the sums of a step are complete only after confirm_receipt(). When the step is
  /// committed, calls `commit`, which calls `apply` once the rule may be applied.
  void wait_for_receipts(std::function<void(const Done& apply)> commit) {
    commit_ = std::move(commit);
  }
  void confirm_receipt();
  const std::vector<std::int32_t>& contributors() const { return group_.contributors(); }
  std::int64_t global_step() const override { return group_.step(); }

 private:
  /// The reduction of a bucket in one step.
  struct Work {
    std::size_t not_ready = 0;  // variables that are not ready
    bool begun = false, reduced = false, whole = false;
    int there = 0, summed = 0;     // how many other members contributed; how many summed
    std::size_t summed_bytes = 0;  // ring: bytes summed; in place: 1 once this member has summed
    std::vector<SimulatedFrame> early = {};
  };
  /// The contributions that a plan reduces together.
  struct Layout {
    std::vector<Bucket> buckets;
    std::vector<std::size_t> bucket_of;  // by variable
  };
  void apply_when_committed();
  void apply();
  void finish_sums();
  const std::vector<Bucket>& buckets() const { return layouts_[plan_].buckets; }
  void drive(const std::function<void(Outbox&)>& event);
  void look();
  void tick();
  void take_frames();
  void handle(int from, const SimulatedFrame& frame);
  /// Queues work for the thread that reduces beside the step, in order.
  void reduce(const SimulatedWork& work, std::function<void()> done);
  void reduce_next();
  void turn(std::size_t bucket);
  void announce(std::size_t bucket, std::uint16_t flags);
  void scatter(std::size_t bucket);
  void add_and_pass_on(std::size_t bucket, const SimulatedFrame& frame);
  void take_partial(const SimulatedFrame& frame);
  void note_whole(std::size_t bucket);
  void send(int to, SimulatedFrame frame);
  int size() const { return world_.num_workers(); }
  int next() const { return (index_ + 1) % size(); }
  std::size_t bucket_bytes(std::size_t bucket) const;
  std::size_t segment_begin(std::size_t bucket, int number) const;
  int segment_of(std::size_t bucket, std::size_t offset) const;
  MachineShare& machine() { return world_.transport.machine_of(host_); }

  SimulatedWorld& world_;
  const int index_, host_;
  const Members& members_;
  CollectiveGroup group_;
  std::vector<int> streams_, streams_in_;  // by worker; −1: this one
  std::vector<Layout> layouts_;            // by plan
  std::size_t plan_ = 0;
  std::vector<Work> work_;
  std::size_t left_ = 0;  // buckets that are not complete
  std::int64_t commits_ = 0, made_ = 0;
  Done ended_ = {};  // set while the step waits for its commit
  std::function<void(const Done& apply)> commit_ = {};
  bool given_ = true;  // the other store has received its part of this step
  TimePoint ended_at_{};
  bool initialised_ = false, in_step_ = false;
  struct Arrived {
    int from = 0;
    SimulatedFrame frame;
  };
  std::deque<Arrived> inbox_;
  bool handles_ = false;
  struct Reduction {
    SimulatedWork work;
    std::function<void()> done;
  };
  std::deque<Reduction> reductions_;
  bool reduces_ = false;
};

}  // namespace paceline

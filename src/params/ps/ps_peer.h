// PsPeer: one worker, or another ps, as a ps sees it, over all its connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/link.h"
#include "params/protocol/frame_cuts.h"
#include "params/protocol/outbox.h"
#include "params/ps/incoming_step.h"
#include "params/ps/replies.h"
#include "params/resumable_connection.h"
#include "params/wire/message.h"
#include "params/wire/task_state.h"
#include "params/wire/travelling_type.h"

namespace paceline {

class PsDriver;

class PsPeer : public Receiver, public ResumableConnection::Source {
 public:
  PsPeer(PsDriver& driver, PeerId id, std::shared_ptr<Connection> connection);
  ~PsPeer() override;

  /// The receiver that the link calls for the connection with which this object was made.
  Receiver& inlet() { return inlet_; }
  ResumableConnection& stream() { return *stream_; }
  const ResumableConnection& stream() const { return *stream_; }
  /// Takes over the connection of `other`, whose hello has shown that it is this worker, which was
  /// cut off. Call it while a frame of that connection is handled, with the driver's lock.
  void take_connection_of(PsPeer& other);
  /// Call it when the worker will not come back. Frees what was kept for the worker.
  void finish();

  std::span<std::byte> place_payload(const FrameHeader& header) override;
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override;
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;
  void on_closed(const Error& error) override;
  bool makes(const FrameHeader& header) const override;
  void make(const FrameHeader& header, std::size_t bytes, Connection& to) override;

  Replies& replies() { return replies_; }
  /// "worker:1 at 10.0.0.2:50312 in step 41, last message chunk".
  std::string text() const;

  PeerId id() const { return id_; }
  /// The peer has said hello as this worker, and was welcomed. Call it with the driver's lock.
  void identify(int worker);
  /// The peer has said hello as another ps, and was welcomed. Call it with the driver's lock.
  void identify_ps(int ps);
  void name_on_timeline();
  void hold_timeline(bool hold);
  bool is_member() const { return !task_.empty(); }

  // Protected by the driver's lock.
  bool gone = false;  // the connection with which this object was made has ended

 private:
  /// The inlet of the connection with which this peer was made.
  class OwnInlet : public Inlet {
   public:
    explicit OwnInlet(PsPeer& peer) : Inlet(*peer.stream_), peer_(peer) {}
    void on_closed(const Error& error) override;

   private:
    PsPeer& peer_;
  };
  /// Throws kDataLoss. `why` names what the worker should not have sent.
  [[noreturn]] static void fail(const std::string& why);
  void handle(MessageType type, const FrameHeader& header, std::span<const std::byte> payload);
  void on_hello(const ControlMessage& hello);
  void on_write(const FrameHeader& header, std::span<const std::byte> payload);
  void on_row_ids(const FrameHeader& header, std::span<const std::byte> payload);
  void on_pull(const FrameHeader& header, std::span<const std::byte> payload);
  void on_pull_next(const FrameHeader& header);
  void on_order(std::span<const std::byte> payload);
  void on_step_begin(const FrameHeader& header, std::span<const std::byte> payload);
  void on_chunk(const FrameHeader& header);
  void on_clip(const FrameHeader& header, std::span<const std::byte> payload);
  void on_step_end(const FrameHeader& header, std::span<const std::byte> payload);
  void on_contribution(const FrameHeader& header, std::span<const std::byte> payload);
  void on_read_done(const FrameHeader& header);
  void on_task_state(const FrameHeader& header, std::span<const std::byte> payload);
  void on_read_marked(const FrameHeader& header, std::span<const std::byte> payload);
  void apply_whole(std::size_t position);
  void renew_copy(std::size_t position, std::uint64_t step);
  std::span<std::byte> place_in_copy(std::size_t position);
  void apply_and_answer_whole(std::size_t position);
  void apply_dense(std::size_t position);
  /// Applies one range of a contribution if its step counts. Then writes the range's values into
  /// `copy` unless that is empty.
  void apply_unanswered(std::size_t position, std::size_t offset,
                        std::span<const std::byte> gradient, std::span<std::byte> copy);
  /// Calls `apply`, which applies the rule of the piece at `position`, and accounts for its time.
  template <typename F>
  void timed_apply(std::size_t position, F&& apply);
  /// Applies one range of a contribution if its step counts. Returns a block with the range's
  /// values after that.
  ReplyBlocks::Lent apply_range(std::size_t position, std::size_t offset,
                                std::span<const std::byte> gradient);
  void answer(std::size_t position, std::size_t offset, ReplyBlocks::Lent values);
  std::size_t most_payload(MessageType type) const;
  Shard& shard(bool initialised = true);
  IncomingStep& incoming();
  void keep();

  PsDriver& driver_;
  const PeerId id_;
  const std::shared_ptr<ResumableConnection> stream_;
  OwnInlet inlet_;
  Replies replies_;
  ContributionForm contributions_;  // the form of the worker's contributions, from its hello
  /// Small messages, as bytes and decoded. This memory is reused in every step.
  struct Messages {
    std::vector<std::byte> bytes;
    StepBegin step_begin;
    StepEnd step_end;
    std::vector<std::uint32_t> pieces;
    std::vector<std::int32_t> rows;
  };
  Messages messages_;
  Shard* working_ = nullptr;  // the shard, once it is initialised
  std::shared_ptr<IncomingStep> incoming_;
  StateFrames state_frames_;
  std::vector<std::shared_ptr<const SharedMemory>> shared_;  // the worker's shared memories
  /// The worker's copy of the values; null: the worker has asked for none.
  std::shared_ptr<SharedMemory> copy_;
  TimePoint frame_began_{};
  bool greeted_ = false, ended_ = false;
  int worker_ = -1;  // −1: the peer has not been welcomed, or is another ps
  std::uint64_t incarnation_ = 0;
  std::string task_;  // "worker:1" or "ps:1", once the peer has been welcomed
  std::atomic<std::int64_t> last_step_{-1};
  std::int64_t steps_ = 0;  // steps that have begun; counted only with a timeline
  bool holds_timeline_ = false;
  std::atomic<MessageType> last_type_{};
};

}  // namespace paceline

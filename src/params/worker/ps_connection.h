// One ps as a worker sees it, over all connections to the ps.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/link.h"
#include "params/clock_questions.h"
#include "params/protocol/worker_task.h"
#include "params/resumable_connection.h"
#include "params/wire/control_message.h"
#include "params/wire/message.h"
#include "params/wire/travelling_type.h"
#include "params/worker/worker_state.h"

namespace paceline {

/// Buffers for the payloads of small messages; each buffer is busy until its message is sent. There
/// are as many buffers as were ever busy at once, so that later messages allocate nothing. One
/// thread takes buffers; any thread may give them back.
class ControlBuffers {
 public:
  struct Buffer {
    std::vector<std::byte> bytes;
    std::atomic<bool> busy{false};
  };
  /// Returns a buffer that is busy until sent() is called with it.
  Buffer& take() {
    for (Buffer& buffer : buffers_) {
      if (!buffer.busy.exchange(true)) return buffer;
    }
    Buffer& buffer = buffers_.emplace_back();
    buffer.busy = true;
    return buffer;
  }
  /// Returns a buffer for a message without payload.
  Buffer& take_empty() {
    Buffer& buffer = take();
    buffer.bytes.clear();
    return buffer;
  }
  /// The `sent` function for Connection::send; its context is the buffer.
  static void sent(void* context) { static_cast<Buffer*>(context)->busy = false; }

 private:
  std::deque<Buffer> buffers_;
};

class WorkerDriver;

/// Sends the worker's requests to the ps, and writes arriving data into the core. The core must
/// outlive the connection; the link need not.
class PsConnection : public Receiver {
 public:
  PsConnection(WorkerState& core, WorkerDriver& driver, int ps, std::string address);

  /// Tries to connect once; throws what Link::connect throws.
  void connect(Link& link, Deadline deadline);
  int ps() const { return ps_; }
  /// "ps:0 at host:2222".
  std::string name() const;
  /// The name, with the number of the last step and the type of the last message.
  std::string text() const;

  /// Sends a control message of the job. Any thread may call it, one at a time.
  void send_job_control(const ControlMessage& message);
  /// Asks the ps for its progress; ps 0 also asks the other workers. Any thread may call.
  void ask_progress();
  /// Asks what the ps's clock shows, if there is a timeline. Any thread may call.
  void ask_clock() { clock_.ask(stream_); }
  /// True once the ps has handled the goodbye: this worker may close the connection.
  bool goodbye_confirmed() const { return goodbye_confirmed_; }
  /// Sends a small message whose payload lies in a buffer of control() or saving_control().
  void send_control(MessageType type, FrameHeader header, ControlBuffers::Buffer& payload);
  void send_small(MessageType type, std::span<const std::byte> payload);
  /// Sends the state of this worker, or the saved state of another worker.
  void send_task_state(const TaskState& state, std::uint64_t save);
  /// Borrows the payload until `sent` is called.
  void send(MessageType type, FrameHeader header, std::span<const std::byte> payload,
            void (*sent)(void*), void* context);
  ControlBuffers& control() { return control_; }
  /// The buffers of the thread that saves.
  ControlBuffers& saving_control() { return saving_control_; }
  /// True when the ps takes contributions from shared memory.
  bool can_share() const { return stream_.can_share(); }
  /// The form in which float32 contributions travel. They are not rounded if the ps shares memory,
  /// since then hardly any of them travel in frames.
  ContributionForm wire() const {
    const bool shares = can_share() && core_.options().share_memory;
    return shares ? ContributionForm() : core_.options().wire;
  }
  ContributionForm wire_of(DType dtype) const {
    return dtype == DType::kFloat32 ? wire() : ContributionForm();
  }
  /// The type in which float32 values travel.
  DType values_wire() const { return type_of_values(wire().type); }
  void share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
    stream_.share(id, std::move(memory));
  }
  const Traffic& traffic() const { return stream_.traffic(); }
  StoreLink link() const;
  void close(Deadline deadline);
  /// Call it once the link has ended: gives back all messages that wait to be sent or confirmed.
  void abandon() { stream_.abandon(); }

  std::span<std::byte> place_payload(const FrameHeader& header) override;
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override;
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;
  void on_closed(const Error& error) override;

 private:
  const Piece& piece(std::uint32_t id) const;
  void handle(MessageType type, const FrameHeader& header, std::span<const std::byte> payload);
  void tell_progress();
  void hear_progress(const ControlMessage& message);
  void handle_control(MessageType type, const FrameHeader& header,
                      std::span<const std::byte> payload);
  std::span<std::byte> place_values(const FrameHeader& header);
  std::span<std::byte> place_small(const FrameHeader& header, std::size_t most_bytes);
  void on_values(const FrameHeader& header);
  std::span<std::byte> place_next(const FrameHeader& header);
  void on_next_values(const FrameHeader& header);
  bool rounds_values(const Piece& piece) const {
    const DType dtype = core_.variables()[std::size_t(piece.variable)].dtype;
    return dtype == DType::kFloat32 && values_wire() != dtype;
  }
  void on_row_values(const FrameHeader& header, std::span<const std::byte> payload);
  void on_state(const FrameHeader& header);
  void on_task_state(const FrameHeader& header, std::span<const std::byte> payload);

  WorkerState& core_;
  WorkerDriver& driver_;
  const int ps_;
  const std::string address_;
  ControlBuffers control_, job_control_, saving_control_;
  StateFrames state_frames_;
  std::vector<std::byte> received_;
  /// The memory for the next value, which this worker has asked for ahead; empty: the value is no
  /// longer wanted.
  std::span<std::byte> next_;
  bool declared_ = false;  // the ps has agreed on the variables
  std::atomic<MessageType> last_type_{};
  std::atomic<bool> progress_asked_{false};  // asked, and not answered yet
  std::atomic<bool> goodbye_confirmed_{false};
  ClockQuestions clock_;
  ResumableConnection stream_;  // declared after the members that it borrows
  Inlet inlet_;
};

}  // namespace paceline

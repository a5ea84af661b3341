// The values that a joiner is sent, and the states of workers for a checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "params/collective/collective_driver.h"

namespace paceline {
namespace {

// It marks the state of a joiner in the checkpoint that training resumes from; others are for a
// save.
constexpr std::uint64_t kRestoredState = ~std::uint64_t{0};

// Frames that borrow values until they are sent.
class SentFrames {
 public:
  void begin() { ++under_way_; }
  static void sent(void* self) {
    SentFrames& frames = *static_cast<SentFrames*>(self);
    const std::lock_guard lock(frames.mutex_);
    --frames.under_way_;
    frames.changed_.notify_all();
  }
  // They end with the connection at the latest.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> under_way_{0};
};

}  // namespace

// Values that a joiner lacks change no more until it has contributed.
void CollectiveDriver::send_lacking_values() {
  while (true) {
    int worker = -1;
    std::uint64_t epoch = 0;
    std::int64_t step = 0;
    {
      const std::lock_guard lock(mutex_);
      if (group_.lacking().empty() || applied_ != group_.commits()) return;
      worker = group_.lacking().front();
      epoch = group_.epoch();
      step = group_.step();
    }
    send_values(worker, epoch, step);
    change([&] {
      if (group_.epoch() == epoch) group_.sent_values(worker);
    });
  }
}

// Epoch 0 is for a worker that trains no more.
void CollectiveDriver::send_values(int worker, std::uint64_t epoch, std::int64_t step) {
  const std::unique_lock values = change_values();
  const std::shared_ptr<Connection> connection = connection_of(worker);
  if (connection == nullptr) return;
  std::deque<std::int64_t> scalars;
  SentFrames frames;
  for (const HeldVariables::Range& range : variables_.ranges(scalars)) {
    const FrameHeader header{.payload_bytes = std::uint32_t(range.bytes.size()),
                             .type = std::uint16_t(MessageType::kWrite),
                             .flags = range.array,
                             .id = range.variable,
                             .offset = range.offset,
                             .step = epoch};
    frames.begin();
    connection->send(header, range.bytes, &SentFrames::sent, &frames);
  }
  std::optional<TaskState> restored;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(restored_, worker, &TaskState::worker);
    if (found != restored_.end()) {
      restored = std::move(*found);
      restored_.erase(found);
    }
  }
  if (restored) send_state_frames(worker, *restored, kRestoredState);
  const auto number = encode_number(step);
  connection->send_copy({.payload_bytes = std::uint32_t(number.size()),
                         .type = std::uint16_t(MessageType::kValuesSent),
                         .step = epoch},
                        number);
  frames.wait();
}

// They are taken only while the step thread reads none.
bool CollectiveDriver::takes_values_of(std::uint64_t epoch) {
  if (!parked_) return false;
  if (epoch == 0) return group_.standing() != Standing::kMember;
  return group_.wants_values_of(epoch);
}

void CollectiveDriver::take_value_frame(int worker, const FrameHeader& header,
                                        std::span<const std::byte> payload) {
  if (header.type == std::uint16_t(MessageType::kValuesSent)) {
    const std::int64_t step = decode_number(payload, MessageType::kValuesSent);
    return change([&] {
      if (receives_from_ != worker || !takes_values_of(header.step)) return;
      receives_from_ = -1;
      group_.take_values(header.step, step, now(), out_);
    });
  }
  {
    const std::lock_guard lock(mutex_);
    if (!takes_values_of(header.step)) return;
    const bool first = header.id == 0 && header.flags == 0 && header.offset == 0;
    if (first) receives_from_ = worker;
    if (receives_from_ != worker) return;
  }
  variables_.write(header.id, header.flags, header.offset, payload);
}

void CollectiveDriver::send_state_frames(int worker, const TaskState& state, std::uint64_t save) {
  const std::shared_ptr<Connection> connection = connection_of(worker);
  if (connection == nullptr) return;
  const std::vector<std::byte> bytes = encode(state);
  for_state_frames(bytes, [&](std::uint16_t flags, std::span<const std::byte> frame) {
    connection->send_copy({.payload_bytes = std::uint32_t(frame.size()),
                           .type = std::uint16_t(MessageType::kTaskState),
                           .flags = flags,
                           .step = save},
                          frame);
  });
}

void CollectiveDriver::take_state(CollectiveConnection& from, const FrameHeader& header,
                                  std::span<const std::byte> payload) {
  const std::optional<std::vector<std::byte>> whole = from.state.add(header.flags, payload);
  if (!whole) return;
  TaskState state = decode_task_state(*whole);
  if (header.step == kRestoredState) {
    const std::lock_guard lock(mutex_);
    own_restored_ = std::move(state);
  } else {
    state.worker = from.worker;
    inbox_.put(from.worker, header.step, std::move(state));
  }
}

std::optional<TaskState> CollectiveDriver::restored() const {
  const std::lock_guard lock(mutex_);
  return own_restored_;
}

// A worker that has not answered is not asked again, so that nothing piles up for one that stands
// still.
void CollectiveDriver::ask_progress() {
  const std::lock_guard lock(mutex_);
  for (CollectiveConnection* const peer : current_) {
    if (peer == nullptr || std::exchange(peer->progress_asked, true)) continue;
    send_message(*peer, {MessageType::kAskProgress});
  }
}

// The worker that has called is the one of a pair that asks.
void CollectiveDriver::ask_clocks() {
  const std::lock_guard lock(mutex_);
  for (CollectiveConnection* const peer : current_) {
    if (peer != nullptr && peer->expected() >= 0 && !peer->closed) {
      peer->clock.ask(*peer->connection);
    }
  }
}

void CollectiveDriver::tell_progress(int worker) {
  const std::string text = options_.progress == nullptr ? "" : options_.progress->asked();
  const std::vector<std::byte> bytes = encode_text(text);
  send_copy(
      worker,
      {.payload_bytes = std::uint32_t(bytes.size()), .type = std::uint16_t(MessageType::kProgress)},
      bytes);
}

void CollectiveDriver::hear_progress(CollectiveConnection& from, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    from.progress_asked = false;
  }
  if (options_.progress == nullptr) return;
  options_.progress->heard(fmt::format("worker:{}", from.worker), std::move(text));
}

// A worker that is not asked makes no step any more: whoever saves last needs its state.
void CollectiveDriver::send_state(const TaskState& state) {
  const std::uint64_t save = shown_.state_asked.exchange(0);
  std::vector<int> to;
  {
    const std::lock_guard lock(mutex_);
    for (int w = 0; w < int(current_.size()); ++w) {
      if (current_[std::size_t(w)] != nullptr && (save == 0 || w == state_asker_)) to.push_back(w);
    }
  }
  for (const int worker : to) send_state_frames(worker, state, save);
}

void CollectiveDriver::ask_states() {
  std::set<int> asked;
  const std::lock_guard lock(mutex_);
  ++saves_;
  for (int w = 0; w < int(current_.size()); ++w) {
    if (current_[std::size_t(w)] != nullptr && group_.standing_of(w) != Standing::kJoining) {
      asked.insert(w);
    }
  }
  asked = inbox_.ask(saves_, std::move(asked));
  for (const int worker : asked) {
    send_message(*current_[std::size_t(worker)], {MessageType::kAskState, {}, saves_});
  }
}

}  // namespace paceline

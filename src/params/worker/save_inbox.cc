#include "params/worker/save_inbox.h"

#include <fmt/format.h>

#include <algorithm>

#include "paceline/error.h"

namespace paceline {

template <typename F>
void SaveInbox::change(F&& function) {
  {
    const std::lock_guard lock(mutex_);
    function();
    ++changes_;
  }
  changed_.notify_all();
}

void SaveInbox::wake() {
  change([] {});
}

void SaveInbox::begin(std::uint64_t save) {
  change([&] {
    save_ = save;
    saved_.assign(saved_.size(), {});
    states_.clear();
  });
}

void SaveInbox::put_found(int ps, bool found) {
  change([&] { found_[std::size_t(ps)] = found; });
}

void SaveInbox::put_saved(int ps, std::uint64_t save, SavedShard shard) {
  change([&] {
    if (save == save_) saved_[std::size_t(ps)] = std::move(shard);
  });
}

void SaveInbox::put_state(TaskState state, std::uint64_t save) {
  change([&] {
    if (save == save_) states_.push_back(std::move(state));
  });
}

std::vector<std::optional<bool>> SaveInbox::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

std::vector<std::optional<SavedShard>> SaveInbox::saved() const {
  const std::lock_guard lock(mutex_);
  return saved_;
}

std::vector<TaskState> SaveInbox::states() const {
  const std::lock_guard lock(mutex_);
  return states_;
}

void SaveInbox::expect(std::uint32_t piece, std::uint16_t array, std::size_t first,
                       std::span<std::byte> memory) {
  change([&] {
    expected_ = {piece, array, first, memory};
    missing_ = memory.size();
  });
}

std::span<std::byte> SaveInbox::place(const FrameHeader& header) {
  const std::lock_guard lock(mutex_);
  const Expected& expected = expected_;
  if (header.id != expected.piece || header.flags != expected.array ||
      header.offset < expected.first || header.payload_bytes > missing_ ||
      header.offset - expected.first > expected.memory.size() - header.payload_bytes) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[store] {} bytes at {} of piece {}, unasked",
                                                  header.payload_bytes, header.offset, header.id));
  }
  return expected.memory.subspan(header.offset - expected.first, header.payload_bytes);
}

void SaveInbox::arrived(std::size_t bytes) {
  change([&] { missing_ -= std::min(bytes, missing_); });
}

std::size_t SaveInbox::missing() const {
  const std::lock_guard lock(mutex_);
  return missing_;
}

}  // namespace paceline

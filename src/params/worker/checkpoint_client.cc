#include "params/worker/checkpoint_client.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "checkpoint/checkpoint_save.h"
#include "paceline/error.h"
#include "params/shard/saved_variables.h"

namespace paceline {

namespace fs = std::filesystem;

namespace {

// How long the chief waits for the workers' states. A worker tells its state only between two of
// its steps, and a step with a validation may take longer than this.
constexpr Duration kWaitForStates = std::chrono::seconds(5);

/// A file whose content no other file has. The file exists as long as this object.
class TokenFile {
 public:
  explicit TokenFile(const std::string& folder) {
    std::uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number)) number = 1;
    content = fmt::format("{:016x}", number);
    path = fmt::format("{}/step-seen-by-all-{}.part", fs::canonical(folder).string(), content);
    std::ofstream(path, std::ios::binary) << content;
  }
  ~TokenFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::string path, content;
};

}  // namespace

// Uses the connection's buffers for saving, since its other buffers belong to the step thread.
void CheckpointClient::send(PsConnection& ps, MessageType type, std::span<const std::byte> payload,
                            FrameHeader header) {
  ControlBuffers::Buffer& buffer = ps.saving_control().take();
  buffer.bytes.assign(payload.begin(), payload.end());
  header.step = save_;
  ps.send_control(type, header, buffer);
}

std::vector<std::string> CheckpointClient::prepare_saving(const std::string& folder) {
  const TokenFile token(folder);
  check_files_are_found(token.path, token.content);
  std::vector<std::string> lines;
  const auto found = core_.save_inbox().found();
  for (std::size_t ps = 0; ps < found.size(); ++ps) {
    sees_.push_back(*found[ps]);
    if (sees_.back()) continue;
    lines.push_back(fmt::format("{} does not see {}: what it has to save is sent to this task",
                                connections_[ps]->name(), folder));
  }
  return lines;
}

void CheckpointClient::check_files_are_found(const std::string& path, const std::string& content) {
  for (const auto& ps : connections_) {
    send(*ps, MessageType::kFindFile, encode(FindFile{path, content}));
  }
  const auto answered = [&] {
    core_.check();
    return std::ranges::all_of(core_.save_inbox().found(),
                               [](const auto& found) { return found.has_value(); });
  };
  if (core_.wait_patiently(saving_wait(answered))) return;
  throw Error(ErrorCode::kDeadlineExceeded, "a ps does not say whether it sees --out");
}

// If the workers commit rounds, there is one more shard: the variables that the workers keep
// themselves.
int CheckpointClient::shard_count() const {
  return int(connections_.size()) + (core_.options().aggregation.workers_commit ? 1 : 0);
}

void CheckpointClient::mark() {
  core_.save_inbox().begin(++save_);
  for (const auto& ps : connections_) {
    ps->send_control(MessageType::kMark, {.step = save_}, ps->control().take_empty());
  }
}

std::string CheckpointClient::shard_path(const std::string& folder, std::size_t ps) const {
  return fs::canonical(folder).string() + "/" + shard_name(int(ps), shard_count());
}

SavedShards CheckpointClient::write_shards(const std::string& folder) {
  for (std::size_t ps = 0; ps < connections_.size(); ++ps) {
    send(*connections_[ps], MessageType::kSaveShard,
         encode_text(sees_[ps] ? shard_path(folder, ps) : ""));
  }
  SavedShards shards;
  shards.variables = saved_variables(core_.variables(), core_.pieces(), shard_count());
  for (std::size_t ps = 0; ps < connections_.size(); ++ps) {
    wait_saved(ps);
    const SavedShard saved = *core_.save_inbox().saved()[ps];
    shards.files.push_back(
        sees_[ps] ? WrittenFile{shard_name(int(ps), shard_count()), saved.bytes, saved.checksum}
                  : write_here(shard_path(folder, ps), ps));
  }
  const SavedShard counts = *core_.save_inbox().saved()[0];
  shards.global_step = counts.global_step;
  if (!counts.unused.empty()) shards.unused = RecordSet(counts.unused);
  add_other_workers(shards, counts);
  return shards;
}

// Waits without a limit, since a disk may be slow. If a ps is lost, the store's error ends the
// wait.
void CheckpointClient::wait_saved(std::size_t ps) {
  const auto answered = [&] {
    core_.check();
    return core_.save_inbox().saved()[ps].has_value();
  };
  while (!core_.save_inbox().wait(core_.reply_deadline(), answered)) {
  }
  const std::string error = core_.save_inbox().saved()[ps]->error;
  if (error.empty()) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("{}: {}", connections_[ps]->name(), error));
}

WrittenFile CheckpointClient::write_here(const std::string& path, std::size_t ps) {
  return write_shard(path, core_.variables(), core_.pieces(), int(ps), shard_count(),
                     [this](const Piece& piece, std::size_t array, std::size_t offset,
                            std::size_t bytes) { return fetch(piece, array, offset, bytes); });
}

std::span<const std::byte> CheckpointClient::fetch(const Piece& piece, std::size_t array,
                                                   std::size_t offset, std::size_t bytes) {
  fetched_.resize(bytes);
  core_.save_inbox().expect(piece.id, std::uint16_t(array), offset, fetched_);
  send(*connections_[std::size_t(piece.ps)], MessageType::kReadMarked,
       encode_number(std::int64_t(bytes)),
       {.flags = std::uint16_t(array), .id = piece.id, .offset = offset});
  const auto come = [&] {
    core_.check();
    return core_.save_inbox().missing() == 0;
  };
  if (!core_.wait_patiently(saving_wait(come))) {
    throw Error(ErrorCode::kDeadlineExceeded,
                connections_[std::size_t(piece.ps)]->name() + " does not send what is to be saved");
  }
  return fetched_;
}

// If a worker does not tell its state, its place in the data stays unknown, but `counts` has the
// number of its applied steps.
void CheckpointClient::add_other_workers(SavedShards& shards, const SavedShard& counts) {
  const auto knows = [&](std::size_t worker) {
    return std::ranges::find(shards.others, int(worker), &TaskState::worker) != shards.others.end();
  };
  const auto told = [&] {
    core_.check();
    shards.others = core_.save_inbox().states();
    for (std::size_t worker = 1; worker < counts.workers.size(); ++worker) {
      if (counts.workers[worker].asked && !knows(worker)) return false;
    }
    return true;
  };
  core_.save_inbox().wait(Deadline::after(kWaitForStates), told);
  for (std::size_t worker = 1; worker < counts.workers.size(); ++worker) {
    if (knows(worker)) continue;
    TaskState& state = shards.others.emplace_back();
    state.worker = int(worker);
    state.step = counts.workers[worker].applied;
    if (!counts.workers[worker].asked) continue;
    shards.lines.push_back(fmt::format(
        "worker:{} did not say within {} s where it is: its place in its data and its local "
        "variables are not in this checkpoint",
        worker, std::chrono::duration_cast<std::chrono::seconds>(kWaitForStates).count()));
  }
}

}  // namespace paceline

#include "params/ps/shard_saver.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/failure_text.h"
#include "checkpoint/checkpoint_save.h"
#include "paceline/error.h"
#include "params/shard/saved_variables.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// A piece whose contributions overlap for longer than this is kept region by region.
constexpr Duration kWaitForNoneUnderWay = std::chrono::milliseconds(500);

bool holds(const FindFile& file) {
  std::error_code error;
  if (!fs::is_regular_file(file.path, error) ||
      fs::file_size(file.path, error) != file.content.size() || error) {
    return false;
  }
  std::ifstream stream(file.path, std::ios::binary);
  std::string content(file.content.size(), '\0');
  stream.read(content.data(), std::streamsize(content.size()));
  return bool(stream) && content == file.content;
}

}  // namespace

ShardSaver::~ShardSaver() {
  cancelled_ = true;
  if (thread_.joinable()) thread_.join();
}

void ShardSaver::start(std::function<void()> work) {
  if (thread_.joinable()) thread_.join();  // it is not busy
  busy_ = true;
  thread_ = std::thread([work = std::move(work)] {
    run_in_background();
    work();
  });
}

bool ShardSaver::find(const FindFile& file, Shard& shard) {
  const std::lock_guard lock(mutex_);
  const bool found = sees_files_ && holds(file);
  folder_ = found ? fs::path(file.path).parent_path().string() : "";
  if (busy_) return found;
  makes_room_ = true;
  start([this, &shard] {
    try {
      for (std::size_t i = 0; i < shard.size() && !cancelled_; ++i) {
        shard.at(i).snapshot().make_room();
      }
    } catch (const std::exception&) {
      // The mark tries again, and ends its sender's connection.
    }
    busy_ = false;
  });
  return found;
}

void ShardSaver::mark(Shard& shard, const SavedShard& what) {
  const std::lock_guard lock(mutex_);
  if (makes_room_ && thread_.joinable()) thread_.join();
  makes_room_ = false;
  refused_ = busy_;
  if (refused_) return;
  what_ = what;
  // A chief may ask for a shard before it has asked for any file.
  for (std::size_t i = 0; i < shard.size(); ++i) shard.at(i).snapshot().make_room();
  for (std::size_t i = 0; i < shard.size(); ++i) shard.at(i).mark();
}

std::string ShardSaver::why_not(const std::string& path) const {
  if (refused_) return "the last save is still under way";
  const bool outside =
      folder_.empty() || !path.starts_with(folder_ + "/") || path.find("/../") != std::string::npos;
  if (!path.empty() && outside) return path + " is not in the folder of checkpoints";
  return "";
}

void ShardSaver::write(Shard& shard, const std::string& path,
                       std::function<void(const SavedShard&)> done) {
  const std::lock_guard lock(mutex_);
  if (const std::string why = why_not(path); !why.empty()) {
    SavedShard refused;
    refused.error = why;
    return done(refused);
  }
  start([this, &shard, path, done = std::move(done)] {
    const SavedShard saved = write_now(shard, path);
    busy_ = false;  // before the chief hears of it, who may then ask for the next
    done(saved);
  });
}

SavedShard ShardSaver::write_now(Shard& shard, const std::string& path) {
  SavedShard saved = what_;
  try {
    const Deadline deadline = Deadline::after(kWaitForNoneUnderWay);
    for (std::size_t i = 0; i < shard.size(); ++i) shard.at(i).wait_marked(deadline);
    if (path.empty()) return saved;
    // Only the file's name, which the chief gives, says how many shards there are.
    const WrittenFile file = write_shard(
        path, shard.variables(), shard.all_pieces(), shard.ps(), shard.ps() + 1,
        [&](const Piece& piece, std::size_t array, std::size_t offset, std::size_t bytes) {
          if (cancelled_) throw Error(ErrorCode::kCancelled, "this ps ends");
          return shard.at(shard.position(piece.id)).read_marked(array, offset, bytes);
        });
    saved.bytes = file.bytes;
    saved.checksum = file.checksum;
  } catch (const std::exception& error) {
    saved.error = failure_text(error);
  }
  for (std::size_t i = 0; i < shard.size(); ++i) shard.at(i).snapshot().drop();
  return saved;
}

}  // namespace paceline

// The chief's part of a checkpoint of parameter servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "params/savable_store.h"
#include "params/worker/ps_connection.h"
#include "params/worker/worker_state.h"

namespace paceline {

/// Every ps that sees the folder writes its own shard, in parallel. The chief writes the shards of
/// the other ps tasks from what they send. Core and connections must outlive this object.
class CheckpointClient : public StoreSaving {
 public:
  CheckpointClient(WorkerState& core, std::vector<std::unique_ptr<PsConnection>>& connections)
      : core_(core), connections_(connections) {}

  std::vector<std::string> prepare_saving(const std::string& folder) override;
  void mark() override;
  SavedShards write_shards(const std::string& folder) override;

 private:
  void send(PsConnection& ps, MessageType type, std::span<const std::byte> payload,
            FrameHeader header = {});
  void check_files_are_found(const std::string& path, const std::string& content);
  int shard_count() const;
  std::string shard_path(const std::string& folder, std::size_t ps) const;
  void wait_saved(std::size_t ps);
  WrittenFile write_here(const std::string& path, std::size_t ps);
  std::span<const std::byte> fetch(const Piece& piece, std::size_t array, std::size_t offset,
                                   std::size_t bytes);
  template <typename Predicate>
  auto saving_wait(Predicate& come) {
    return [&](Deadline deadline) { return core_.save_inbox().wait(deadline, come); };
  }
  void add_other_workers(SavedShards& shards, const SavedShard& counts);

  WorkerState& core_;
  std::vector<std::unique_ptr<PsConnection>>& connections_;
  std::vector<bool> sees_;  // by ps: it sees the folder
  std::vector<std::byte> fetched_;
  std::uint64_t save_ = 0;
};

}  // namespace paceline

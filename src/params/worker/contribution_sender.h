// Sends a worker's contributions to the shards as protocol/frame_cuts.h cuts them: in frames, or as
// the place in shared memory where a ps reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "params/protocol/frame_cuts.h"
#include "params/worker/worker_context.h"

namespace paceline {

/// Sends the contributions of one plan. One step thread.
class ContributionSender {
 public:
  explicit ContributionSender(WorkerContext& context) : context_(context), core_(context.core) {}

  /// Makes space for the contributions of these uses: in memory that the ps tasks of this host
  /// read, if there are any. Waits until the contribution in a space that is too small was taken.
  void make_spaces(std::span<const PlanBinding::Use> uses);
  /// The content of the variable's space is whole. The ids of rows are kept. Throws
  /// kInvalidArgument unless they are in ascending order.
  void take(VariableId variable, const Contribution& contribution);
  /// Sends what was taken, which is not to be touched until the ps has taken it. A ps that shares
  /// memory can renew this worker's copy of the values meanwhile. Never blocks.
  void send(VariableId variable, std::uint64_t step, bool renew_copy);

 private:
  std::vector<const PlanBinding::Use*> uses_without_space(std::span<const PlanBinding::Use> uses);
  std::shared_ptr<SharedMemory> share_memory(std::size_t bytes);
  void keep_errors(VariableId variable) const;
  void send_dense(const Piece& piece, ContributionBuffer& space);
  void send_rows(const Piece& piece, ContributionBuffer& space);
  std::span<const std::byte> as_it_travels(const ContributionForm& form, ContributionBuffer& space,
                                           Cut part, float* errors) const;
  ContributionRoute route(const Piece& piece, const ContributionBuffer& space) const;
  void take_row_errors(std::span<const std::int32_t> ids, ContributionBuffer& space,
                       std::size_t row);
  void put_row_errors(std::span<const std::int32_t> ids, ContributionBuffer& space,
                      std::size_t row) const;
  template <typename Payload>
  void send_frames(const Piece& piece, const ContributionRoute& route, ContributionBuffer& space,
                   std::size_t begin, std::span<const std::int32_t> ids, Payload&& payload_of);

  WorkerContext& context_;
  WorkerState& core_;
  std::vector<float> row_errors_;  // of the rows that are sent now
  std::uint64_t step_ = 0;
  bool renew_copy_ = false;
};

}  // namespace paceline

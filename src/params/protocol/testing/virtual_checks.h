// The notes of a virtual job, and the checks of what must hold of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/virtual_time.h"
#include "net/frame.h"
#include "paceline/task_position.h"
#include "params/protocol/outbox.h"
#include "params/protocol/step_assembly.h"
#include "params/protocol/testing/virtual_job.h"

namespace paceline {

/// One step of one worker's process on one ps.
struct VirtualStep {
  int worker = 0;
  std::uint64_t incarnation = 0;
  std::int64_t step = 0;
  int ps = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy sees a 0 in what the compiler writes.
  auto operator<=>(const VirtualStep&) const = default;
};

class VirtualChecks {
 public:
  VirtualChecks(const VirtualTime& time, const VirtualOptions& options)
      : time_(time), options_(options) {}

  void fail(const std::string& why);
  VirtualResult& result() { return result_; }

  // Contributions.
  void applied(const VirtualStep& step, std::uint32_t piece, Cut part);
  void ended(const VirtualStep& step);
  /// A worker is told that the step counts.
  void told(const VirtualStep& step);
  /// A ps has closed the round, by the word of that process of ps 0, and sums these contributions:
  /// all ps tasks must sum the same, in the same order.
  void closed(int ps, std::uint64_t coordinator, std::int64_t round,
              const std::vector<VirtualStep>& sums);
  /// Rounds only: the worker was last sent the values that the ps has after so many rounds.
  void read(int worker, std::uint64_t incarnation, int ps, std::int64_t rounds);
  /// A contribution of the worker counts: it was made from values of one round.
  void check_read(int worker, std::uint64_t incarnation);
  /// Returns the number of own steps that have ended on the ps that counts.
  std::int64_t ended_on_first(int worker) const;
  /// Training goes on from a checkpoint, with these numbers of next own steps by worker.
  void goes_back(std::span<const std::int64_t> own_steps);
  /// Checks, at the end of the run, that each byte was applied once, and all of them of a step that
  /// has ended.
  void check_contributions(int ps, std::span<const AssemblyTarget> targets);

  // Records that are shared out.
  /// The worker's step is made from these.
  void reads(int worker, std::uint64_t incarnation, std::int64_t step,
             const std::vector<RecordRange>& records);
  const std::set<std::int64_t>& used_records() const { return used_; }
  void set_used_records(std::set<std::int64_t> used) { used_ = std::move(used); }

  // Replies of one connection.
  void set_order(PeerId id, std::span<const std::uint32_t> pieces);
  void pushed(PeerId id, std::uint32_t piece, std::size_t bytes);
  /// Notes that the connection has the reply.
  void given(PeerId id, std::uint32_t piece, std::size_t bytes);
  void sent(PeerId id, std::size_t bytes);

  // Workers.
  void waited(int worker, Duration time);
  void began_ahead(std::int64_t steps);

 private:
  struct Replies {
    std::map<std::uint32_t, std::size_t> ranks;         // by piece
    std::map<std::size_t, std::int64_t> waiting;        // by rank: how many
    std::size_t in_connection = 0, connection_has = 0;  // bytes, replies
  };
  static std::size_t rank(const Replies& replies, std::uint32_t piece);

  const VirtualTime& time_;
  const VirtualOptions& options_;
  VirtualResult result_;
  /// The parts that were applied, by piece and by their begin; several of one begin are a fault.
  std::map<VirtualStep, std::map<std::uint32_t, std::multimap<std::size_t, std::size_t>>> applied_;
  std::set<VirtualStep> ended_;
  std::map<int, std::int64_t> ended_on_first_;  // by worker
  /// The contributions that are summed, by the process of ps 0 and the round.
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<VirtualStep>> rounds_;
  /// The rounds of the values that a worker's process has, by ps.
  std::map<std::pair<int, std::uint64_t>, std::map<int, std::int64_t>> read_;
  std::map<PeerId, Replies> replies_;
  void use_records(const VirtualStep& step);
  std::map<VirtualStep, std::vector<RecordRange>> read_records_;
  std::set<std::int64_t> given_, used_;
};

}  // namespace paceline

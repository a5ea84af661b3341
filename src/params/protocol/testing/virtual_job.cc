#include "params/protocol/testing/virtual_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "params/protocol/testing/virtual_ps.h"
#include "params/protocol/testing/virtual_worker.h"
#include "params/protocol/testing/virtual_world.h"

namespace paceline {
namespace {

constexpr Duration kLongestRun = std::chrono::hours(1);

/// One run.
class VirtualJob {
 public:
  explicit VirtualJob(const VirtualOptions& options) : world_(options) {
    world_.network.set_ends([this](PeerId id) { ps_of(id).closed(id); },
                            [this](PeerId id) { world_.caller_closed(id); });
    for (int i = 0; i < options.ps; ++i) {
      world_.ps.push_back(std::make_unique<VirtualPs>(world_, i));
    }
    for (int i = 0; i < options.workers; ++i) {
      world_.workers.push_back(std::make_unique<VirtualWorker>(world_, i));
    }
  }

  VirtualResult run() {
    VirtualResult& result = world_.checks.result();
    while (!all_ended() && world_.time.now() < TimePoint(kLongestRun) &&
           result.errors.size() < 10) {
      if (!world_.time.run_one()) break;
    }
    if (!all_ended()) world_.checks.fail("the job has not ended: " + standing());
    for (int i = 0; i < world_.options.ps; ++i) {
      const auto targets = assembly_targets(world_.declare.variables, world_.declare.pieces, i);
      world_.checks.check_contributions(i, targets);
    }
    fill(result);
    return std::move(result);
  }

 private:
  VirtualPs& ps_of(PeerId id) { return *world_.ps[std::size_t(world_.network.wire(id).ps)]; }
  bool all_ended() const {
    return std::ranges::all_of(world_.ps, [](const auto& ps) { return ps->has_ended(); });
  }

  void fill(VirtualResult& result) {
    const VirtualPs& first = *world_.ps.front();
    result.global_step = first.machine().global_step();
    result.applied = first.counted();
    if (result.global_step != result.applied) {
      world_.checks.fail(
          fmt::format("{} steps were applied and {} counted", result.applied, result.global_step));
    }
    check_records(first.machine().shares());
    result.records_used = std::int64_t(world_.checks.used_records().size());
    result.lost_messages = world_.network.lost();
    result.seconds = world_.time.seconds();
    result.events = world_.time.events();
    result.hash = world_.time.hash();
  }

  // Checks that a record is unused until a step that counts has read it.
  void check_records(const PsRecordSharing* shares) {
    if (shares == nullptr) return;
    const RecordSet unused = shares->unused();
    const std::set<std::int64_t>& used = world_.checks.used_records();
    for (std::int64_t record = 0; record < world_.options.records; ++record) {
      if (used.contains(record) != unused.contains({record, record + 1})) continue;
      world_.checks.fail(fmt::format("record {} is {}", record,
                                     used.contains(record) ? "used, and left" : "lost"));
    }
  }

  /// Describes the state of every task, for the message of a job that does not end.
  std::string standing() const {
    std::string text;
    for (const auto& ps : world_.ps) {
      if (!ps->has_ended() && world_.workers.size() < 10) text += ps->machine().members() + "; ";
    }
    for (const auto& ps : world_.ps) text += ps->standing();
    for (const auto& [id, wire] : world_.network.wires()) {
      if (wire.worker < 0 || !wire.ps_open) continue;
      if (world_.ps[std::size_t(wire.ps)]->has_ended()) continue;
      text += fmt::format("ps:{} has connection {} of worker:{}, {}; ", wire.ps, id, wire.worker,
                          wire.cut ? "cut" : "open");
    }
    for (const auto& worker : world_.workers) text += worker->standing();
    return text;
  }

  VirtualWorld world_;
};

}  // namespace

VirtualResult run_virtual_job(const VirtualOptions& options) { return VirtualJob(options).run(); }

}  // namespace paceline

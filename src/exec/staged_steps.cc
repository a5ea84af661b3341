// A device may have memory of its own, which only its kernels, upload() and download() reach. The
// executor uploads inputs and downloads what the host reads after a step; the steps here do the
// same for values and contributions. So no store asks which device it serves.
#include "exec/staged_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "paceline/error.h"

namespace paceline {
namespace {

class StagedSteps : public StoreSteps {
 public:
  StagedSteps(Device& device, std::unique_ptr<StoreSteps> steps, const Plan& plan)
      : device_(device), steps_(std::move(steps)) {
    for (const Storage& storage : plan.storages) {
      if (storage.kind == Storage::Kind::kVariable) make_room(values_, storage);
      if (storage.kind == Storage::Kind::kPlace) make_room(places_, storage);
    }
    for (const RowReads& reads : plan.row_reads) {
      staged(values_, reads.variable).by_rows = !reads.all;
    }
  }

  NormBy norm_by() const override { return steps_->norm_by(); }
  MemorySpace space() const override { return device_.space(); }
  void count_waits(StepAccount& account) override { steps_->count_waits(account); }
  bool wants_next_rows() const override { return steps_->wants_next_rows(); }
  void begin_step(StepKind kind, std::span<const RowSet> rows,
                  const StepScalars& scalars) override {
    for (const RowSet& set : rows) staged(values_, set.variable).rows = set.ids;
    steps_->begin_step(kind, rows, scalars);
  }
  SumExchange* exchange() override { return steps_->exchange(); }
  AsyncView need(VariableId variable) override;
  AsyncView place(VariableId variable) override;
  void ready(VariableId variable, const Contribution& contribution, const Event& event) override;
  StepHandle& end_step(float clip_scale, std::span<const RowSet> next_rows) override {
    return steps_->end_step(clip_scale, next_rows);
  }

 private:
  struct Staged {
    Buffer memory;
    TensorView host;  // for places: where the contribution goes
    bool by_rows = false;
    std::span<const std::int32_t> rows;  // for values: those that the batch reads
  };

  void make_room(std::vector<Staged>& all, const Storage& storage) const {
    const std::size_t at = std::size_t(storage.variable);
    if (at >= all.size()) all.resize(at + 1);
    if (all[at].memory.size() < storage.bytes) all[at].memory = device_.allocate(storage.bytes);
  }
  static Staged& staged(std::vector<Staged>& all, VariableId variable) {
    PACELINE_CHECK(variable >= 0 && std::size_t(variable) < all.size());
    return all[std::size_t(variable)];
  }
  void upload_rows(const Staged& staged, const TensorView& host);

  Device& device_;
  const std::unique_ptr<StoreSteps> steps_;
  std::vector<Staged> values_,
      places_;  // by variable; one that the plan does not use has no memory
};

std::size_t row_bytes(const TensorView& view) {
  return view.bytes() / std::size_t(std::max<std::int64_t>(view.shape[0], 1));
}

// Copies rows that follow one another together.
void StagedSteps::upload_rows(const Staged& staged, const TensorView& host) {
  const std::size_t row = row_bytes(host);
  const auto* const from = static_cast<const std::byte*>(host.data);
  for (std::size_t i = 0; i < staged.rows.size();) {
    const std::size_t first = i++;
    while (i < staged.rows.size() && staged.rows[i] == staged.rows[i - 1] + 1) ++i;
    const std::size_t offset = std::size_t(staged.rows[first]) * row;
    device_.upload(staged.memory.data() + offset, from + offset, (i - first) * row);
  }
}

AsyncView StagedSteps::need(VariableId variable) {
  const AsyncView host = steps_->need(variable);
  const Staged& value = staged(values_, variable);
  PACELINE_CHECK(host.view.bytes() <= value.memory.size());
  device_.wait(host.event);
  if (value.by_rows) {
    upload_rows(value, host.view);
  } else {
    device_.upload(value.memory.data(), host.view.data, host.view.bytes());
  }
  return TensorView{value.memory.data(), host.view.dtype, host.view.shape};
}

AsyncView StagedSteps::place(VariableId variable) {
  const AsyncView host = steps_->place(variable);
  Staged& place = staged(places_, variable);
  device_.wait(host.event);
  place.host = host.view;
  return TensorView{place.memory.data(), host.view.dtype, host.view.shape};
}

void StagedSteps::ready(VariableId variable, const Contribution& contribution, const Event& event) {
  const Staged& place = staged(places_, variable);
  const std::size_t bytes =
      contribution.sparse ? contribution.ids.size() * row_bytes(place.host) : place.host.bytes();
  PACELINE_CHECK(bytes <= place.memory.size());
  device_.wait(event);
  device_.download(place.host.data, place.memory.data(), bytes);
  steps_->ready(variable, contribution, device_.record());
}

}  // namespace

std::unique_ptr<StoreSteps> steps_on(Device& device, std::unique_ptr<StoreSteps> steps,
                                     const Plan& plan) {
  if (steps->space() == device.space()) return steps;
  if (steps->space().host()) return std::make_unique<StagedSteps>(device, std::move(steps), plan);
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[executor] the store's values lie in the memory of a device that {} "
                          "does not reach",
                          device.name()));
}

}  // namespace paceline

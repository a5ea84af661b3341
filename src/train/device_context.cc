#include "train/device_context.h"

#include <algorithm>
#include <exception>
#include <iterator>

#include "base/copy_bytes.h"
#include "paceline/error.h"
#include "train/step_feed.h"

namespace paceline {

Tensor copy_of(const TensorView& view) {
  Tensor tensor(view.dtype, view.shape);
  copy_bytes(tensor.raw(), view.data, view.bytes());
  return tensor;
}

std::vector<Tensor> copies_of(std::span<const TensorView> views) {
  std::vector<Tensor> copies;
  std::ranges::transform(views, std::back_inserter(copies), copy_of);
  return copies;
}

DeviceContext::DeviceContext(const Parts& parts)
    : parts_(parts),
      snapshot_(parts.store),
      plans_({parts.store, parts.device, snapshot_, parts.step_account, parts.evaluation_account,
              parts.rewrite, parts.fused_update, parts.timeline}) {
  if (parts.timeline != nullptr) parts.step_account.show_device_waits(*parts.timeline);
}

void DeviceContext::settle() noexcept {
  try {
    parts_.device.synchronize();
  } catch (const std::exception&) {
    return;  // the device is gone, with what it would have told
  }
}

// Fills the inputs of a step. Without a feed, the step reads only values that its inputs keep.
void DeviceContext::fill(Executor& executor, StepKind kind, const std::function<void(Feed&)>& feed,
                         bool anew) {
  StepFeed step_feed(executor, parts_.normals, steps_, nullptr, nullptr, anew);
  if (feed) {
    const AccountScope input(account_of(kind), Activity::kInput);
    feed(step_feed);
  }
  if (step_feed.stopped()) {
    throw Error(ErrorCode::kFailedPrecondition,
                "[feed] stopped in an evaluation, which then has no batch: ArrayBatches and "
                "PipelineFeed give one by fill()");
  }
  step_feed.check_fed();
}

// Fills a batch of a graph with open dimensions, and returns the plan for the sizes of this batch.
ReadPlan& DeviceContext::fill_open(StepKind kind, const Graph& graph,
                                   std::span<const Value> fetches, Mode mode, bool keep_locals,
                                   const std::function<void(Feed&)>& feed) {
  BatchFeed& batch = batches_.try_emplace(&graph, true).first->second;
  batch.begin(steps_, nullptr, parts_.normals, nullptr);
  if (feed) {
    const AccountScope input(account_of(kind), Activity::kInput);
    feed(batch);
  }
  batch.end();
  ReadPlan& plan = plans_.read_plan(kind, graph, fetches, mode, keep_locals, batch.sizes());
  fill(
      plan.executor(), kind, [&](Feed& to) { batch.give(to); }, true);
  return plan;
}

std::span<const TensorView> DeviceContext::read(StepKind kind, const Graph& graph,
                                                std::span<const Value> fetches, Mode mode,
                                                bool keep_locals,
                                                const std::function<void(Feed&)>& feed) {
  const bool open = plans_.is_open(graph);
  ReadPlan& plan = open ? fill_open(kind, graph, fetches, mode, keep_locals, feed)
                        : plans_.read_plan(kind, graph, fetches, mode, keep_locals);
  if (!open) fill(plan.executor(), kind, feed);
  StepRequest request;
  request.kind = kind;
  request.examples = examples_ =
      parts_.examples.of(open ? batches_.at(&graph).sizes() : OpenSizes(), graph);
  request.identity = {parts_.seed, parts_.task, steps_++};
  return plan.run(request);
}

}  // namespace paceline

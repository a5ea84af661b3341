#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "data/pipeline_plan.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline {
namespace {

[[noreturn]] void refuse_stage(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "[pipeline] " + message);
}

void expect_at_least(const char* what, std::int64_t value, std::int64_t least) {
  if (value < least) refuse_stage(fmt::format("{} is {}; the least is {}", what, value, least));
}

}  // namespace

std::int64_t PipelinePlan::records() const {
  return std::accumulate(order.files.begin(), order.files.end(), std::int64_t{0});
}

Pipeline::Pipeline(std::shared_ptr<const RecordSource> source) {
  PipelinePlan plan;
  plan.order.files = source->files();
  plan.source = std::move(source);
  plan_ = std::make_shared<PipelinePlan>(std::move(plan));
  if (plan_->records() == 0) refuse_stage("the data holds no record");
}

// Copies of a pipeline share the plan, so each change is made in a copy of the plan.
PipelinePlan& Pipeline::change() {
  const auto changed = std::make_shared<PipelinePlan>(*plan_);
  plan_ = changed;
  return *changed;
}

Pipeline& Pipeline::interleave(int files) {
  expect_at_least("the number of interleaved files", files, 1);
  change().order.interleave = files;
  return *this;
}

Pipeline& Pipeline::shard(int part, int parts) {
  if (parts < 1 || part < 0 || part >= parts) {
    refuse_stage(fmt::format("there is no part {} of {}", part, parts));
  }
  if (part >= plan_->records()) {
    refuse_stage(fmt::format("part {} of {} is empty: the data holds only {} records", part, parts,
                             plan_->records()));
  }
  PipelinePlan& plan = change();
  plan.order.part = part;
  plan.order.parts = parts;
  return *this;
}

Pipeline& Pipeline::share_out() {
  change().shared_out = true;
  return *this;
}

Pipeline& Pipeline::shuffle(std::int64_t pool) {
  expect_at_least("the shuffle pool", pool, 1);
  change().order.pool = pool;
  return *this;
}

Pipeline& Pipeline::repeat(std::optional<std::int64_t> epochs) {
  if (epochs) expect_at_least("the number of epochs", *epochs, 1);
  change().epochs = epochs;
  return *this;
}

Pipeline& Pipeline::seed(std::uint64_t seed) {
  change().order.seed = seed;
  return *this;
}

Pipeline& Pipeline::map(std::string name, std::function<void(Example&)> function, MapOrder order) {
  PipelinePlan& plan = change();
  plan.stages.push_back({std::move(name), std::move(function), nullptr});
  plan.as_finished = plan.as_finished || order == MapOrder::kAsFinished;
  return *this;
}

Pipeline& Pipeline::cache(std::int64_t bytes) {
  expect_at_least("the cache's size in bytes", bytes, 0);
  PipelinePlan& plan = change();
  plan.stages.push_back({"cache", {}, std::make_shared<RecordCache>(plan.records(), bytes)});
  return *this;
}

Pipeline& Pipeline::decode(const ImageDecoding& decoding) {
  const PipelinePlan& plan = *plan_;
  return map("decode", [decoding, source = plan.source](Example& example) {
    try {
      decode_image(decoding, example);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{} cannot be decoded: {}", source->name(example.index),
                                            error.what()));
    }
  });
}

Pipeline& Pipeline::into(const Shape& shape, std::string name,
                         std::function<void(Example&, std::span<float>)> function) {
  PipelinePlan& plan = change();
  plan.shape = shape;
  plan.into_name = std::move(name);
  plan.into = std::move(function);
  return *this;
}

Pipeline& Pipeline::distort(const Distortion& distortion) {
  expect_at_least("the height of the distorted images", distortion.height, 1);
  expect_at_least("the width of the distorted images", distortion.width, 1);
  constexpr std::int64_t kChannels = 3;
  const Shape shape = distortion.layout == PixelLayout::kPlanar
                          ? Shape{kChannels, distortion.height, distortion.width}
                          : Shape{distortion.height, distortion.width, kChannels};
  return into(shape, "distort", [distortion](Example& example, std::span<float> values) {
    paceline::distort(distortion, example, values);
  });
}

Pipeline& Pipeline::batch(std::int64_t records, LastBatch last) {
  expect_at_least("the batch", records, 1);
  PipelinePlan& plan = change();
  plan.batch = records;
  plan.last = last;
  return *this;
}

Pipeline& Pipeline::prefetch(int batches) {
  expect_at_least("the number of batches made ahead", batches, 1);
  change().prefetch = batches;
  return *this;
}

Pipeline& Pipeline::threads(int most) {
  expect_at_least("the number of input threads", most, 0);
  change().threads = most;
  return *this;
}

Pipeline& Pipeline::max_bad(std::int64_t records) {
  expect_at_least("the number of bad records that are left out", records, 0);
  change().max_bad = records;
  return *this;
}

Pipeline& Pipeline::on_bad(std::function<void(const std::string&)> say) {
  change().on_bad = std::move(say);
  return *this;
}

std::int64_t Pipeline::examples() const { return RecordOrder(plan_->order).size(); }

std::int64_t Pipeline::batches() const {
  expect_at_least("the batch", plan_->batch, 1);
  const std::int64_t more = plan_->last != LastBatch::kDrop ? plan_->batch - 1 : 0;
  return (examples() + more) / plan_->batch;
}

Shape Pipeline::shape() const {
  if (plan_->batch == 0) refuse_stage("it makes no batches: call batch()");
  if (!plan_->into)
    refuse_stage("the values of its batches have no shape: call distort() or into()");
  std::vector<std::int64_t> dims = {plan_->batch};
  dims.insert(dims.end(), plan_->shape.dims().begin(), plan_->shape.dims().end());
  return Shape(dims);
}

bool Pipeline::is_shared_out() const { return plan_->shared_out; }

const RecordSource& Pipeline::source() const { return *plan_->source; }

}  // namespace paceline

#include "kernels/cuda/cudnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "paceline/error.h"

namespace paceline {
namespace {

using Dnn = CudnnCalls;

/// Throws the library's own message if a call failed.
void check_dnn(const Dnn& calls, Dnn::Status status, const char* what) {
  if (status == 0) return;
  std::string words(512, '\0');
  calls.last_error(words.data(), words.size());
  words.resize(words.find('\0') == std::string::npos ? words.size() : words.find('\0'));
  throw Error(ErrorCode::kUnavailable,
              fmt::format("cuDNN: {} failed: {}{}{}", what, calls.error_text(status),
                          words.empty() ? "" : ": ", words));
}

}  // namespace

/// A descriptor: its attributes define it, and `finish` completes it.
class Cudnn::Descriptor {
 public:
  Descriptor(const Dnn& calls, Dnn::Kind kind) : calls_(&calls) {
    check_dnn(calls, calls.make(kind, &descriptor_), "making a descriptor");
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) calls_->unmake(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept
      : calls_(other.calls_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(calls_, other.calls_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  Dnn::Descriptor get() const { return descriptor_; }

  template <typename T>
  Descriptor& set(Dnn::Attribute attribute, Dnn::Type type, std::span<const T> values) {
    check_dnn(*calls_,
              calls_->set(descriptor_, attribute, type, std::int64_t(values.size()), values.data()),
              "an attribute");
    return *this;
  }
  template <typename T>
  Descriptor& set(Dnn::Attribute attribute, Dnn::Type type, const T& value) {
    return set(attribute, type, std::span<const T>(&value, 1));
  }
  Descriptor& set(Dnn::Attribute attribute, std::span<const std::int64_t> values) {
    return set<std::int64_t>(attribute, Dnn::kInt64, values);
  }
  Descriptor& set(Dnn::Attribute attribute, const Descriptor& other) {
    return set(attribute, Dnn::kDescriptor, other.descriptor_);
  }
  /// Returns the number of values of the attribute.
  std::int64_t count(Dnn::Attribute attribute, Dnn::Type type) const {
    std::int64_t count = 0;
    check_dnn(*calls_, calls_->get(descriptor_, attribute, type, 0, &count, nullptr), "a question");
    return count;
  }
  template <typename T>
  std::int64_t get(Dnn::Attribute attribute, Dnn::Type type, std::span<T> values) const {
    std::int64_t count = 0;
    check_dnn(*calls_,
              calls_->get(descriptor_, attribute, type, std::int64_t(values.size()), &count,
                          values.data()),
              "a question");
    return count;
  }
  /// Completes the descriptor. Returns false if the library refuses it.
  bool try_finish() { return calls_->finish(descriptor_) == 0; }
  Descriptor& finish() {
    check_dnn(*calls_, calls_->finish(descriptor_), "completing a descriptor");
    return *this;
  }

 private:
  const Dnn* calls_;
  Dnn::Descriptor descriptor_ = nullptr;
};

namespace {

/// The ids of a plan's operands in the library.
constexpr std::array<std::int64_t, 3> kIds = {'t', 'a', 'b'};

/// The attributes by which an operation names its operands.
struct Operation {
  Dnn::Kind kind;
  Dnn::Attribute to, first, second, convolution, alpha, beta;
};
Operation operation(CudaConvolution::Kind kind) {
  switch (kind) {
    case CudaConvolution::Kind::kForward:
      return {Dnn::kForward,    Dnn::kForwardY,           Dnn::kForwardX,
              Dnn::kForwardW,   Dnn::kForwardConvolution, Dnn::kForwardAlpha,
              Dnn::kForwardBeta};
    case CudaConvolution::Kind::kInputGrad:
      return {Dnn::kBackwardData,    Dnn::kDataDx,    Dnn::kDataDy,  Dnn::kDataW,
              Dnn::kDataConvolution, Dnn::kDataAlpha, Dnn::kDataBeta};
    case CudaConvolution::Kind::kWeightsGrad:
      break;
  }
  return {Dnn::kBackwardFilter,    Dnn::kFilterDw,    Dnn::kFilterX,   Dnn::kFilterDy,
          Dnn::kFilterConvolution, Dnn::kFilterAlpha, Dnn::kFilterBeta};
}

}  // namespace

class Cudnn::ConvolutionPlan : public CudaPlan {
 public:
  /// Makes a plan for the device of `handle` or, if `device` is not null, for that described
  /// device.
  ConvolutionPlan(const Dnn& calls, Dnn::Handle* handle, const Descriptor* device,
                  const CudaConvolution& c, const CudaPlanLimits& limits)
      : calls_(calls),
        handle_(handle),
        device_(device),
        limits_(limits),
        is_tf32_(c.is_tf32 || limits.tf32),
        graph_(calls, Dnn::kGraph) {
    const Operation names = operation(c.kind);
    parts_.push_back(windows(calls, c));
    Descriptor operation(calls, names.kind);
    operation.set(names.convolution, parts_.back());
    const std::array operands = {names.to, names.first, names.second};
    for (std::size_t k = 0; k < operands.size(); ++k) {
      parts_.push_back(tensor(calls, kIds[k], c.operands[k], limits.alignment));
      operation.set(operands[k], parts_.back());
    }
    operation.set(names.alpha, Dnn::kDouble, 1.0).set(names.beta, Dnn::kDouble, 0.0).finish();
    if (device == nullptr) graph_.set(Dnn::kGraphHandle, Dnn::kHandle, handle);
    graph_.set(Dnn::kOps, operation).finish();
    parts_.push_back(std::move(operation));
  }

  /// Returns false if no engine fits the limits. In either mode the library offers engines from the
  /// fastest on.
  bool find() { return find(Dnn::kModeA) || find(Dnn::kFallback); }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void run(const CudaOperands& at, CudaCalls::Stream* stream) override {
    const std::array<CudaCalls::Address, 3> operands = {at.to, at.first, at.second};
    Descriptor pack(calls_, Dnn::kPack);
    pack.set(Dnn::kPackIds, kIds);
    pack.set<CudaCalls::Address>(Dnn::kPackPointers, Dnn::kPointer, operands);
    pack.set(Dnn::kPackWorkspace, Dnn::kPointer, at.workspace).finish();
    check_dnn(calls_, calls_.use_stream(handle_, stream), "taking a stream");
    check_dnn(calls_, calls_.execute(handle_, plan_->get(), pack.get()), "a convolution");
  }

 private:
  static Descriptor tensor(const Dnn& calls, std::int64_t id, const CudaConvolution::Tensor& tensor,
                           std::size_t alignment) {
    Descriptor made(calls, Dnn::kTensor);
    made.set(Dnn::kTensorType, Dnn::kDataType, Dnn::kFloat);
    made.set(Dnn::kTensorDimensions, tensor.dimensions).set(Dnn::kTensorStrides, tensor.strides);
    const auto bytes = std::int64_t(alignment);
    made.set(Dnn::kTensorId, {&id, 1}).set(Dnn::kTensorAlignment, {&bytes, 1});
    made.finish();
    return made;
  }

  static Descriptor windows(const Dnn& calls, const CudaConvolution& c) {
    Descriptor made(calls, Dnn::kConvolution);
    const std::int64_t dimensions = 2;
    made.set(Dnn::kComputeType, Dnn::kDataType, Dnn::kFloat);
    made.set(Dnn::kMode, Dnn::kConvolutionMode, Dnn::kCrossCorrelation);
    made.set(Dnn::kSpatialDimensions, {&dimensions, 1}).set(Dnn::kStrides, c.strides);
    made.set(Dnn::kDilations, c.dilations).set(Dnn::kPadsBefore, c.pads_before);
    made.set(Dnn::kPadsBehind, c.pads_behind).finish();
    return made;
  }

  bool find(int mode) {
    Descriptor heuristics(calls_, Dnn::kHeuristics);
    heuristics.set(Dnn::kHeuristicsGraph, graph_);
    heuristics.set(Dnn::kHeuristicsModeOf, Dnn::kHeuristicsMode, mode);
    if (device_ != nullptr) heuristics.set(Dnn::kHeuristicsDevice, *device_);
    if (!heuristics.try_finish()) return false;
    std::vector<Descriptor> configs;
    std::vector<Dnn::Descriptor> handles;
    for (std::int64_t n = heuristics.count(Dnn::kResults, Dnn::kDescriptor); n > 0; --n) {
      handles.push_back(configs.emplace_back(calls_, Dnn::kEngineConfig).get());
    }
    if (configs.empty()) return false;
    const auto found =
        std::size_t(heuristics.get<Dnn::Descriptor>(Dnn::kResults, Dnn::kDescriptor, handles));
    for (std::size_t k = 0; k < found; ++k) {
      if (may_be_used(configs[k]) && take(configs[k])) return true;
    }
    return false;
  }

  bool may_be_used(const Descriptor& config) const {
    Descriptor engine(calls_, Dnn::kEngine);
    std::array<Dnn::Descriptor, 1> handle = {engine.get()};
    config.get<Dnn::Descriptor>(Dnn::kConfigEngine, Dnn::kDescriptor, handle);
    std::array<std::int32_t, 16> notes{};
    const std::int64_t count =
        engine.get<std::int32_t>(Dnn::kNotesOfEngine, Dnn::kNumericalNote, notes);
    return std::none_of(notes.begin(), notes.begin() + count, [&](std::int32_t note) {
      return (note == Dnn::kTensorCore && !is_tf32_) || note == Dnn::kDownConverts ||
             note == Dnn::kReducedReduction ||
             (note == Dnn::kNondeterministic && limits_.deterministic);
    });
  }

  bool take(Descriptor& config) {
    Descriptor plan(calls_, Dnn::kPlan);
    if (device_ != nullptr) {
      plan.set(Dnn::kPlanDevice, *device_);
    } else {
      plan.set(Dnn::kPlanHandle, Dnn::kHandle, handle_);
    }
    plan.set(Dnn::kPlanConfig, config);
    if (!plan.try_finish()) return false;
    std::array<std::int64_t, 1> bytes{};
    plan.get<std::int64_t>(Dnn::kPlanWorkspace, Dnn::kInt64, bytes);
    if (std::uint64_t(bytes[0]) > limits_.workspace_bytes) return false;
    workspace_bytes_ = std::size_t(bytes[0]);
    plan_ = std::move(plan);
    parts_.push_back(std::move(config));
    return true;
  }

  const Dnn& calls_;
  Dnn::Handle* const handle_;
  const Descriptor* const device_;
  const CudaPlanLimits limits_;
  const bool is_tf32_;
  std::vector<Descriptor> parts_;  // the graph and the plan refer to these
  Descriptor graph_;
  std::optional<Descriptor> plan_;
  std::size_t workspace_bytes_ = 0;
};

Cudnn::Cudnn(const CudnnCalls& calls) : calls_(calls) {
  check_dnn(calls, calls.create(&handle_), "its start");
}

Cudnn::Cudnn(const CudnnCalls& calls, const std::string& description)
    : calls_(calls), device_(std::make_unique<Descriptor>(calls, Dnn::kDevice)) {
  device_->set<char>(Dnn::kDeviceJson, Dnn::kChar, description).finish();
}

Cudnn::~Cudnn() {
  if (handle_ != nullptr) calls_.destroy(handle_);
}

std::unique_ptr<CudaPlan> Cudnn::plan(const CudaConvolution& convolution,
                                      const CudaPlanLimits& limits) const {
  auto plan =
      std::make_unique<ConvolutionPlan>(calls_, handle_, device_.get(), convolution, limits);
  return plan->find() ? std::move(plan) : nullptr;
}

}  // namespace paceline

#include "kernels/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <utility>

#include "base/cache_folder.h"
#include "graph/fused_program.h"
#include "kernels/cuda/cuda_library.h"
#include "kernels/cuda/cuda_source.h"
#include "kernels/cuda/cuda_work.h"
#include "kernels/index_check.h"
#include "kernels/random_stream.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/tensor.h"

namespace paceline {
namespace {

CudaCalls::Address address_of(const void* memory) {
  return reinterpret_cast<CudaCalls::Address>(memory);
}

// Returns a node's element-wise program in float32; empty if the node has none.
std::vector<FusedStep> elementwise_program(const Node& node) {
  const auto is_float = [](const auto& value) { return value.dtype() == DType::kFloat32; };
  if (node.outputs().size() != 1 || node.outputs()[0].dtype != DType::kFloat32) return {};
  if (!std::ranges::all_of(node.inputs(), is_float)) return {};
  const std::string& name = node.op().name;
  if (name == "fused_elementwise") {
    return parse_fused_program(node.attributes().get<std::string>("program"));
  }
  const FusedOperand first{FusedOperand::Kind::kInput, 0}, second{FusedOperand::Kind::kInput, 1};
  if (name == "bias") return {{"add", {first, second}, 0}};
  if (name == "bias_activation") {
    const std::string& activation = node.attributes().get<std::string>("activation");
    FusedStep step{activation, {{FusedOperand::Kind::kStep, 0}}, 0};
    if (activation == "leaky_relu") step.number = node.attributes().get<double>("slope");
    return {{"add", {first, second}, 0}, step};
  }
  const FusableOp* const op = find_fusable_op(name);
  if (op == nullptr) return {};
  FusedStep step{name, {}, 0};
  for (int k = 0; k < op->operands; ++k) {
    step.operands.push_back({FusedOperand::Kind::kInput, k});
  }
  if (!op->number.empty()) step.number = node.attributes().get<double>(std::string(op->number));
  return {step};
}

std::vector<std::string> places_of_inputs(const Node& node) {
  std::vector<std::string> places;
  for (const Value& input : node.inputs()) {
    places.push_back(broadcast_place(input.shape(), node.outputs()[0].shape));
  }
  return places;
}

constexpr std::size_t kQuad = 16;           // the bytes of four elements
constexpr std::size_t kLeastAlignment = 4;  // the size of a float32
// Smaller copies, such as those of single rows, are not timed: two events each would cost more.
constexpr std::size_t kLeastTimed = std::size_t{64} << 10;

}  // namespace

/// Launches the kernel that is generated for an element-wise node.
class CudaDevice::ElementwiseKernel : public Kernel {
 public:
  ElementwiseKernel(CudaDevice& device, const Node& node, std::span<const FusedStep> program)
      : device_(device), places_(places_of_inputs(node)), pointers_(node.inputs().size() + 1) {
    function_ = device.compiled(elementwise_source(program, places_), ElementwiseSource::kFunction);
    for (CudaCalls::Address& pointer : pointers_) parameters_.push_back(&pointer);
    parameters_.push_back(&quads_);
    parameters_.push_back(&elements_);
  }

  void run(const KernelCall& call) override {
    elements_ = call.outputs[0].shape.elements();
    if (elements_ == 0) return;
    pointers_[0] = address_of(call.outputs[0].data);
    bool aligned = pointers_[0] % kQuad == 0;
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
      pointers_[k + 1] = address_of(call.inputs[k].data);
      aligned =
          aligned && (places_[k] == "0" || (places_[k].empty() && pointers_[k + 1] % kQuad == 0));
    }
    quads_ = aligned ? elements_ / 4 : 0;
    const long long threads = std::max(quads_, elements_ - 4 * quads_);
    const long long blocks = (threads + ElementwiseSource::kBlock - 1) / ElementwiseSource::kBlock;
    device_.launch(function_, blocks, ElementwiseSource::kBlock, parameters_);
  }

 private:
  CudaDevice& device_;
  const std::vector<std::string> places_;
  CudaCalls::Function* function_ = nullptr;
  std::vector<CudaCalls::Address> pointers_;
  std::vector<void*> parameters_;
  long long quads_ = 0, elements_ = 0;
};

/// Launches the kernels of a CudaWork. If tasks exchange a batch's statistics in the middle of a
/// step, the host computes the node.
class CudaDevice::WrittenKernel : public Kernel {
 public:
  WrittenKernel(CudaDevice& device, const Node& node, CudaWork work)
      : device_(device), node_(node), work_(std::move(work)) {
    launches_.reserve(work_.launches.size());
    bool done = false;  // whether a library's call for an earlier launch does the launch, too
    for (CudaLaunch& launch : work_.launches) {
      Launch& made = launches_.emplace_back();
      if (!launch.finishes_the_last) {
        done = prepare_library(launch, made);
        if (made.plan == nullptr) prepare(launch, made);
      } else if (!done) {
        prepare(launch, made);
      }
    }
    if (!work_.fault) return;
    on_device_ = device.allocate(sizeof(fault_));
    forget_fault();
    const std::lock_guard lock(device.mutex_);
    device.watched_.insert(this);
  }
  ~WrittenKernel() override {
    const std::lock_guard lock(device_.mutex_);
    device_.watched_.erase(this);
  }
  WrittenKernel(const WrittenKernel&) = delete;
  WrittenKernel& operator=(const WrittenKernel&) = delete;

  std::size_t scratch_bytes() const override {
    return work_.scratch_bytes +
           (workspace_bytes_ == 0 ? 0 : workspace_bytes_ + kWorkspaceAlignment);
  }

  void run(const KernelCall& call) override {
    if (work_.exchanges && call.exchange != nullptr) return run_on_host(call);
    for (std::size_t l = 0; l < launches_.size(); ++l) {
      const CudaLaunch& launch = work_.launches[l];
      if (launches_[l].plan != nullptr) {
        run_library(launches_[l], *launch.library, call);
        continue;
      }
      if (launch.blocks == 0 || launches_[l].function == nullptr) continue;
      for (std::size_t k = 0; k < launch.arguments.size(); ++k) {
        launches_[l].values[k] = value_of(launch.arguments[k], call);
      }
      device_.launch(launches_[l].function, launch.blocks, launch.threads, launches_[l].parameters);
    }
    has_run_ = true;
  }

  /// Starts to copy the fault from the device if the kernel has run since the last call. The copy
  /// is valid once the caller has waited for the device.
  void ask_for_fault() {
    if (!has_run_.exchange(false)) return;
    device_.check(device_.calls_.download(&fault_, address_of(on_device_.data()), sizeof(fault_),
                                          device_.stream_),
                  "a copy from the GPU");
  }
  /// Forgets the fault, and returns whether there was one; `refuse` then throws it.
  bool take_fault() {
    told_ = std::exchange(fault_, kNone);
    if (told_ != kNone) forget_fault();
    return told_ != kNone;
  }
  [[noreturn]] void refuse() const {
    refuse_index(node_, work_.fault->what, std::int32_t(std::uint32_t(told_)),
                 std::int64_t(told_ >> 32), work_.fault->limit);
  }
  int node() const { return node_.id(); }

 private:
  /// The launch of our kernel, or a library's call in its place. It has neither if the library call
  /// of an earlier launch did its work.
  struct Launch {
    CudaCalls::Function* function = nullptr;
    std::vector<std::uint64_t> values;
    std::vector<void*> parameters;
    std::unique_ptr<CudaPlan> plan;            // for operands aligned as allocated memory is
    std::unique_ptr<CudaPlan> unaligned_plan;  // made when an operand first is not aligned
  };
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr std::size_t kWorkspaceAlignment = 256;

  void prepare(CudaLaunch& launch, Launch& made) {
    made.function = device_.compiled(work_.source, launch.function);
    made.values.resize(launch.arguments.size());
    for (std::size_t k = 0; k < launch.arguments.size(); ++k) {
      CudaArgument& argument = launch.arguments[k];
      const bool bytes = argument.kind == CudaArgument::Kind::kBytes;
      made.parameters.push_back(bytes ? static_cast<void*>(argument.bytes.data())
                                      : &made.values[k]);
    }
  }

  /// Plans the call of a library that replaces the launch: leaves no plan if no library has one.
  /// Returns true if the call also does the work of the launches that finish this one.
  bool prepare_library(CudaLaunch& launch, Launch& made) {
    if (!launch.library || launch.blocks == 0) return false;
    made.plan = device_.plan(*launch.library, {});
    bool whole = made.plan != nullptr;
    if (launch.library->epilogue != CudaEpilogue::kNone) {
      // Operands may prove unaligned when it is too late to add the launches that finish this one.
      if (whole) {
        made.unaligned_plan =
            device_.plan(*launch.library, {kLeastAlignment, made.plan->workspace_bytes()});
      }
      whole = whole && made.unaligned_plan != nullptr;
      if (!whole) {
        launch.library->epilogue = CudaEpilogue::kNone;
        made.plan = device_.plan(*launch.library, {});
      }
    }
    if (made.plan == nullptr) {
      const std::lock_guard lock(device_.mutex_);
      device_.ops_without_library_.insert(node_.op().name);
      return false;
    }
    workspace_bytes_ = std::max(workspace_bytes_, made.plan->workspace_bytes());
    return whole;
  }

  void run_library(Launch& made, const CudaLibraryCall& library, const KernelCall& call) {
    const std::uint64_t to = value_of(library.to, call), first = value_of(library.first, call),
                        second = value_of(library.second, call),
                        bias = value_of(library.bias, call);
    CudaPlan* plan = made.plan.get();
    if ((to | first | second | bias) % CudaPlanLimits{}.alignment != 0) {
      if (made.unaligned_plan == nullptr) {
        made.unaligned_plan = device_.plan(library, {kLeastAlignment, workspace_bytes_});
      }
      plan = made.unaligned_plan.get();
      if (plan == nullptr) {
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("[{}] {} ({}): the library has no way to compute with operands "
                        "that begin in the middle of {} bytes",
                        device_.name_, node_.name(), node_.op().name, CudaPlanLimits{}.alignment));
      }
    }
    device_.enter();
    ++device_.launches_;
    const std::uint64_t behind = address_of(call.scratch.data()) + work_.scratch_bytes;
    const std::uint64_t workspace =
        (behind + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
    plan->run({to, first, second, workspace, bias}, device_.stream_);
  }

  std::uint64_t value_of(const CudaArgument& argument, const KernelCall& call) const {
    switch (argument.kind) {
      case CudaArgument::Kind::kBytes:
        return 0;  // not used: the bytes are the parameter
      case CudaArgument::Kind::kInput:
        return address_of(call.inputs[argument.index].data) + argument.offset;
      case CudaArgument::Kind::kOutput:
        return address_of(call.outputs[argument.index].data) + argument.offset;
      case CudaArgument::Kind::kScratch:
        return address_of(call.scratch.data()) + argument.offset;
      case CudaArgument::Kind::kRandomKey:
        return RandomStream(call.step, argument.name).key();
      case CudaArgument::Kind::kRandomStep:
        return RandomStream(call.step, "").high();
      case CudaArgument::Kind::kFault:
        return address_of(on_device_.data());
    }
    return 0;
  }
  void forget_fault() {
    device_.check(
        device_.calls_.fill(address_of(on_device_.data()), 0xff, sizeof(fault_), device_.stream_),
        "clearing memory");
  }
  void run_on_host(const KernelCall& call);

  CudaDevice& device_;
  const Node& node_;
  CudaWork work_;
  std::vector<Launch> launches_;
  std::size_t workspace_bytes_ = 0;
  std::unique_ptr<Kernel> on_host_;
  Buffer on_device_;  // holds the fault
  std::uint64_t fault_ = kNone, told_ = kNone;
  std::atomic<bool> has_run_ = false;
};

/// Runs the host's kernel on copies of the operands in the host's memory.
class CudaDevice::HostKernel : public Kernel {
 public:
  HostKernel(CudaDevice& device, const Node& node)
      : device_(device),
        kernel_(device.host_->make_kernel(node)),
        scratch_(kernel_->scratch_bytes()) {
    for (const Value& input : node.inputs()) inputs_.emplace_back(input.dtype(), input.shape());
    for (const ValueType& type : node.outputs()) outputs_.emplace_back(type.dtype, type.shape);
    for (const Tensor& tensor : inputs_) input_views_.push_back(tensor.view());
    for (const Tensor& tensor : outputs_) output_views_.push_back(tensor.view());
  }

  void run(const KernelCall& call) override {
    device_.synchronize();  // so that earlier work does not count as this op's time
    const auto begun = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      device_.ask_for_download(inputs_[i].raw(), call.inputs[i].data, inputs_[i].bytes());
    }
    device_.synchronize();
    KernelCall here = call;
    here.inputs = input_views_;
    here.outputs = output_views_;
    here.scratch = scratch_.span();
    kernel_->run(here);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      device_.ask_for_upload(call.outputs[i].data, outputs_[i].raw(), outputs_[i].bytes());
    }
    device_.synchronize();  // because the next run writes to the same memory
    device_.host_op_ns_ += Duration(std::chrono::steady_clock::now() - begun).count();
  }

 private:
  CudaDevice& device_;
  const std::unique_ptr<Kernel> kernel_;
  const Buffer scratch_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<TensorView> input_views_, output_views_;
};

void CudaDevice::WrittenKernel::run_on_host(const KernelCall& call) {
  if (on_host_ == nullptr) on_host_ = std::make_unique<HostKernel>(device_, node_);
  on_host_->run(call);
}

/// Runs another kernel, and then waits for it.
class CudaDevice::CheckedKernel : public Kernel {
 public:
  CheckedKernel(CudaDevice& device, const Node& node, std::unique_ptr<Kernel> kernel)
      : device_(device), node_(node), kernel_(std::move(kernel)) {}

  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  void run(const KernelCall& call) override {
    kernel_->run(call);
    const CudaCalls::Status status = device_.calls_.wait_for_stream(device_.stream_);
    if (status == 0) return;
    throw Error(ErrorCode::kUnavailable,
                fmt::format("[{}] the kernel of {} ({}) failed: {}", device_.name_, node_.name(),
                            node_.op().name, cuda_error_text(device_.calls_, status)));
  }

 private:
  CudaDevice& device_;
  const Node& node_;
  const std::unique_ptr<Kernel> kernel_;
};

CudaDevice::CudaDevice(const CudaCalls& calls, int index, std::unique_ptr<Device> host,
                       const CudaOptions& options)
    : calls_(calls),
      name_(fmt::format("cuda:{}", index)),
      host_(std::move(host)),
      options_(options) {
  int count = 0;
  check(calls_.device_count(&count), "counting the GPUs");
  if (index >= count) {
    const std::string visible = cuda_visible_in_words();
    throw Error(
        ErrorCode::kFailedPrecondition,
        fmt::format("--device {}: this machine shows {} GPU{}, of which the last is cuda:{}{}",
                    name_, count, count == 1 ? "" : "s", count - 1,
                    visible.empty() ? "" : fmt::format(" ({})", visible)));
  }
  check(calls_.device(&device_, index), "choosing the GPU");
  const std::string cache = cache_folder();
  code_.emplace(calls_, cuda_architecture(calls_, device_), cache.empty() ? "" : cache + "/cuda");
  int multiprocessors = 0;
  check(calls_.device_attribute(&multiprocessors, CudaCalls::kMultiprocessors, device_),
        "asking for the GPU's facts");
  multiprocessors_ = unsigned(std::max(1, multiprocessors));
  check(calls_.retain_context(&context_, device_), "starting on the GPU");
  enter();
  check(calls_.make_stream(&stream_, CudaCalls::kNonBlocking), "making a stream");
  timer_.emplace(calls_, stream_);
  if (calls_.cublas.multiply != nullptr) cublas_.emplace(calls_.cublas);
  if (calls_.cudnn.execute != nullptr) {
    cudnn_.emplace(calls_.cudnn);
    cudnn_is_wrong_ = !cudnn_computes();
    if (cudnn_is_wrong_) cudnn_.reset();
  }
}

// Convolves ones, whose results are known. On an H200, cuDNN 9.14 reported success for plans that
// were made for a described device, but they had computed nothing.
bool CudaDevice::cudnn_computes() {
  using Kind = CudaConvolution::Kind;
  const CudaConvolution::Tensor x{{2, 4, 8, 8}, {256, 64, 8, 1}}, w{{8, 4, 1, 1}, {4, 1, 1, 1}},
      y{{2, 8, 8, 8}, {512, 64, 8, 1}};
  const struct {
    Kind kind;
    std::array<CudaConvolution::Tensor, 3> operands;
    float sum;  // the sum of this many ones
  } known[] = {{Kind::kForward, {y, x, w}, 4},
               {Kind::kInputGrad, {x, y, w}, 8},
               {Kind::kWeightsGrad, {w, x, y}, 128}};
  constexpr std::size_t kMost = 1024;
  const std::vector<float> ones(kMost, 1.0f);
  const Buffer memory = allocate(3 * kMost * sizeof(float));
  const auto part = [&](std::size_t k) { return memory.data() + k * kMost * sizeof(float); };
  for (const auto& each : known) {
    const auto plan = cudnn_->plan({each.kind, each.operands, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, {});
    if (plan == nullptr) return false;
    const auto& extents = each.operands[0].dimensions;
    std::vector<float> sums(std::size_t(extents[0] * extents[1] * extents[2] * extents[3]));
    const Buffer workspace = allocate(plan->workspace_bytes());
    for (const std::size_t k : {1, 2}) upload(part(k), ones.data(), kMost * sizeof(float));
    plan->run({address_of(part(0)), address_of(part(1)), address_of(part(2)),
               address_of(workspace.data())},
              stream_);
    download(sums.data(), part(0), sums.size() * sizeof(float));
    check(calls_.wait_for_stream(stream_), "a convolution");
    if (std::ranges::any_of(sums, [&](float sum) { return sum != each.sum; })) return false;
  }
  return true;
}

// Ignores errors, since a destructor cannot report them.
CudaDevice::~CudaDevice() {
  calls_.use_context(context_);
  calls_.wait_for_stream(stream_);
  unpin_pages(*this);
  cublas_.reset();
  cudnn_.reset();
  timer_.reset();
  for (const auto& [ticket, event] : events_) calls_.destroy_event(event);
  for (CudaCalls::Event* const event : spare_events_) calls_.destroy_event(event);
  for (const auto& [source, module] : modules_) calls_.unload_module(module);
  calls_.destroy_stream(stream_);
  calls_.release_context(device_);
}

std::string CudaDevice::hardware() const {
  constexpr int kMostBytes = 256;
  std::array<char, kMostBytes> name{};
  check(calls_.device_name(name.data(), kMostBytes - 1, device_), "asking for the GPU's name");
  return name.data();
}

// Makes the device's context the current one of the calling thread, since a thread's calls use its
// current context.
void CudaDevice::enter() const { check(calls_.use_context(context_), "using the GPU"); }

// Throws if a call failed. The call may report an error of an earlier kernel.
void CudaDevice::check(CudaCalls::Status status, const char* what) const {
  if (status == 0) return;
  throw Error(ErrorCode::kUnavailable,
              fmt::format("[{}] {} failed, or what was asked of the GPU before: {} (--cuda-check "
                          "names the op)",
                          name_, what, cuda_error_text(calls_, status)));
}

// Starts at most kBlocksEach blocks for each multiprocessor. If there is more work, each block
// loops over several parts of it.
void CudaDevice::launch(CudaCalls::Function* function, long long blocks, unsigned threads,
                        std::vector<void*>& parameters) {
  constexpr long long kBlocksEach = 8;
  const auto grid = unsigned(std::min(blocks, kBlocksEach * multiprocessors_));
  enter();
  ++launches_;
  check(calls_.launch(function, grid, 1, 1, threads, 1, 1, 0, stream_, parameters.data(), nullptr),
        "a kernel");
}

void CudaDevice::ask_for_faults() {
  const std::lock_guard lock(mutex_);
  for (WrittenKernel* const kernel : watched_) kernel->ask_for_fault();
}

// Several kernels may have met a wrong index. All of them forget it, and the error names the first
// of these nodes in the graph.
void CudaDevice::check_faults() {
  const std::lock_guard lock(mutex_);
  const WrittenKernel* first = nullptr;
  for (WrittenKernel* const kernel : watched_) {
    if (kernel->take_fault() && (first == nullptr || kernel->node() < first->node()))
      first = kernel;
  }
  if (first != nullptr) first->refuse();
}

void CudaDevice::refuse_memory(std::size_t bytes) const {
  std::size_t left = 0, total = 0;
  calls_.memory_left(&left, &total);
  const std::lock_guard lock(mutex_);
  std::size_t held = 0;
  for (const auto& [memory, size] : held_) held += size;
  const std::size_t others = total - std::min(total, left + held);
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("[{}] {} MiB more do not fit in its memory: of {} MiB this task holds {}, "
                  "others hold {} and {} are left: a smaller --batch needs less, and "
                  "nvidia-smi lists the others",
                  name_, (bytes + (1 << 20) - 1) >> 20, total >> 20, held >> 20, others >> 20,
                  left >> 20));
}

Buffer CudaDevice::allocate(std::size_t bytes) {
  enter();
  CudaCalls::Address memory = 0;
  const CudaCalls::Status status = calls_.allocate(&memory, std::max<std::size_t>(bytes, 1));
  if (status == CudaCalls::kOutOfMemory) refuse_memory(bytes);
  check(status, "allocating memory");
  if (bytes > 0) check(calls_.fill(memory, 0, bytes, stream_), "clearing memory");
  {
    const std::lock_guard lock(mutex_);
    held_[memory] = bytes;
  }
  const auto release = [](void* device, std::byte* released) {
    static_cast<CudaDevice*>(device)->release(released);
  };
  return {std::bit_cast<std::byte*>(memory), bytes, release, this};
}

// First waits for everything that may still read or write this memory.
void CudaDevice::release(std::byte* memory) {
  calls_.use_context(context_);
  calls_.wait_for_stream(stream_);
  calls_.free(address_of(memory));
  const std::lock_guard lock(mutex_);
  held_.erase(address_of(memory));
}

bool CudaDevice::pin(void* begin, std::size_t bytes) {
  return calls_.pin(begin, bytes, CudaCalls::kForAllDevices) == 0;
}

// First waits for the copies that still use this memory.
void CudaDevice::unpin(void* begin) {
  calls_.use_context(context_);
  calls_.wait_for_stream(stream_);
  calls_.unpin(begin);
}

void CudaDevice::upload(void* to, const void* from, std::size_t bytes) {
  if (bytes < kLeastTimed) return ask_for_upload(to, from, bytes);
  enter();
  timer_->time([&] { ask_for_upload(to, from, bytes); });
}

void CudaDevice::download(void* to, const void* from, std::size_t bytes) {
  if (bytes < kLeastTimed) return ask_for_download(to, from, bytes);
  enter();
  timer_->time([&] { ask_for_download(to, from, bytes); });
}

void CudaDevice::ask_for_upload(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  enter();
  pin_pages(from, *this);
  check(calls_.upload(address_of(to), from, bytes, stream_), "a copy to the GPU");
}

void CudaDevice::ask_for_download(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  enter();
  pin_pages(to, *this);
  check(calls_.download(to, address_of(from), bytes, stream_), "a copy from the GPU");
}

// Reports call this after a failure, too, so it throws nothing.
Duration CudaDevice::copy_time() const {
  calls_.use_context(context_);
  return timer_->total();
}

void CudaDevice::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  enter();
  check(calls_.copy(address_of(to), address_of(from), bytes, stream_), "a copy on the GPU");
}

std::int64_t CudaDevice::mark() {
  enter();
  return timer_->mark();
}

std::optional<TimePoint> CudaDevice::take(std::int64_t mark) {
  enter();
  return timer_->take(mark);
}

Event CudaDevice::record() {
  enter();
  ask_for_faults();
  const std::lock_guard lock(mutex_);
  CudaCalls::Event* event = nullptr;
  if (spare_events_.empty()) {
    check(calls_.make_event(&event, CudaCalls::kNoTiming), "making an event");
  } else {
    event = spare_events_.back();
    spare_events_.pop_back();
  }
  events_[++last_ticket_] = event;
  check(calls_.record_event(event, stream_), "recording an event");
  return {*this, last_ticket_};
}

// A device's own stream runs in order, so it needs no wait.
void CudaDevice::wait(const Event& event) {
  if (event.source() != this) event.synchronize();
}

void CudaDevice::synchronize() {
  enter();
  ask_for_faults();
  std::uint64_t until = 0;
  {
    const std::lock_guard lock(mutex_);
    until = last_ticket_;
  }
  check(calls_.wait_for_stream(stream_), "the end of its work");
  check_faults();
  forget_until(until);
}

// Another thread may be about to wait for an event that is reused meanwhile. That thread then only
// waits longer.
void CudaDevice::synchronize(std::uint64_t ticket) {
  enter();
  CudaCalls::Event* event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = events_.find(ticket);
    if (found == events_.end()) return;
    event = found->second;
  }
  check(calls_.wait_for_event(event), "the end of its work");
  check_faults();
  forget_until(ticket);
}

void CudaDevice::forget_until(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  while (!events_.empty() && events_.begin()->first <= ticket) {
    spare_events_.push_back(events_.begin()->second);
    events_.erase(events_.begin());
  }
}

std::vector<std::string> CudaDevice::remarks() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> remarks;
  if (!ops_on_host_.empty()) {
    remarks.push_back(
        fmt::format("{} has no kernels of its own for {}: they run on the host, each with copies "
                    "there and back.",
                    name_, fmt::join(ops_on_host_, ", ")));
  }
  if (ops_without_library_.empty()) return remarks;
  std::vector<const char*> missing;
  if (!cublas_) missing.push_back("nvidia-cublas");
  if (!cudnn_ && !cudnn_is_wrong_) missing.push_back("nvidia-cudnn-cu13");
  remarks.push_back(fmt::format(
      "{} computes {} by Paceline's own kernels, which are slow: {}.", name_,
      fmt::join(ops_without_library_, ", "),
      cudnn_is_wrong_   ? "a convolution of ones by cuDNN was wrong"
      : missing.empty() ? "NVIDIA's libraries have no way"
                        : fmt::format("pip install {} has faster ones", fmt::join(missing, " "))));
  return remarks;
}

// Returns null if there is no library, or if it has no plan.
std::unique_ptr<CudaPlan> CudaDevice::plan(const CudaLibraryCall& call,
                                           CudaPlanLimits limits) const {
  limits.tf32 = options_.tf32;
  limits.deterministic = options_.deterministic;
  enter();
  if (const auto* const product = std::get_if<CudaProduct>(&call.what)) {
    return cublas_ ? cublas_->plan(*product, call.epilogue, limits) : nullptr;
  }
  return cudnn_ ? cudnn_->plan(std::get<CudaConvolution>(call.what), limits) : nullptr;
}

std::unique_ptr<Kernel> CudaDevice::make_kernel(const Node& node) {
  std::unique_ptr<Kernel> kernel = make_own_kernel(node);
  if (!options_.waits) return kernel;
  return std::make_unique<CheckedKernel>(*this, node, std::move(kernel));
}

std::unique_ptr<Kernel> CudaDevice::make_own_kernel(const Node& node) {
  const std::vector<FusedStep> program = elementwise_program(node);
  if (!program.empty()) return std::make_unique<ElementwiseKernel>(*this, node, program);
  if (std::optional<CudaWork> work = cuda_work(node)) {
    return std::make_unique<WrittenKernel>(*this, node, std::move(*work));
  }
  auto kernel = std::make_unique<HostKernel>(*this, node);
  const std::lock_guard lock(mutex_);
  ops_on_host_.insert(node.op().name);
  return kernel;
}

CudaCalls::Function* CudaDevice::compiled(const std::string& source, const char* function) {
  enter();
  const std::lock_guard lock(mutex_);
  auto module = modules_.find(source);
  if (module == modules_.end()) {
    bool kept = false;
    CudaCalls::Module* loaded = nullptr;
    CudaCalls::Status status = calls_.load_module(&loaded, code_->code(source, kept).data());
    if (status != 0 && kept) {
      status = calls_.load_module(&loaded, code_->code_anew(source).data());
    }
    check(status, "loading a kernel");
    module = modules_.emplace(source, loaded).first;
  }
  CudaCalls::Function* found = nullptr;
  check(calls_.find_function(&found, module->second, function), "finding a kernel");
  return found;
}

}  // namespace paceline

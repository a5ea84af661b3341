// libcudnn.so.9 for tests. It computes the convolutions and gradients that descriptors describe on
// the fake driver's device. It offers one engine for each of kNotes, and all compute in float32.
// With $FAKE_CUDNN_IDLE it computes nothing but reports success.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "kernels/cuda/cuda_calls.h"
#include "tests/fakes/fake_library.h"

namespace {

using Calls = paceline::CudnnCalls;

enum Status : int { kSuccess = 0, kBadParameter = 2000, kNotSupported = 3000, kFailed = 5000 };
constexpr std::int64_t kWorkspace = 512;  // bytes that a convolution overwrites
constexpr std::array kNotes = {Calls::kDownConverts, Calls::kTensorCore, Calls::kNondeterministic,
                               -1};  // the last one has none
std::size_t last_engine = 0;

struct Descriptor {
  int kind = 0;
  bool finished = false;
  std::map<int, std::vector<std::byte>> attributes;
  // For an engine, and for its configuration: its index in kNotes.
  std::size_t engine = 0;

  template <typename T>
  std::vector<T> values(int attribute) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), found->second.size());
    return values;
  }
  const Descriptor* part(int attribute) const {
    const auto parts = values<Descriptor*>(attribute);
    return parts.size() == 1 && parts[0]->finished ? parts[0] : nullptr;
  }
};

std::size_t size_of(int type) {
  switch (type) {
    case Calls::kHandle:
    case Calls::kInt64:
    case Calls::kDouble:
    case Calls::kPointer:
    case Calls::kDescriptor:
      return 8;
    case Calls::kChar:
      return 1;
    default:
      return 4;
  }
}

struct Tensor {
  std::array<std::int64_t, 4> dimensions, strides;
  float* data = nullptr;

  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
  }
  std::size_t bytes() const {
    return std::size_t(
               at(dimensions[0] - 1, dimensions[1] - 1, dimensions[2] - 1, dimensions[3] - 1) + 1) *
           sizeof(float);
  }
};

/// y = x · w, of which one tensor is computed from the other two.
struct Convolution {
  int kind = 0;
  Tensor y, x, w;
  std::array<std::int64_t, 2> strides, dilations, before, behind;

  void run() const {
    const Tensor& to = result();
    std::vector<double> sums(to.bytes() / sizeof(float));
    const std::int64_t per_group = y.dimensions[1] / (x.dimensions[1] / w.dimensions[1]);
    each({y.dimensions[0], y.dimensions[1], w.dimensions[1], w.dimensions[2]},
         [&](auto n, auto o, auto c, auto i) {
           for (std::int64_t j = 0; j < w.dimensions[3]; ++j) {
             add_tap(sums, {n, o, o / per_group * w.dimensions[1] + c}, w.at(o, c, i, j), i, j);
           }
         });
    each(to.dimensions, [&](auto a, auto b, auto c, auto d) {
      to.data[to.at(a, b, c, d)] = float(sums[std::size_t(to.at(a, b, c, d))]);
    });
  }
  /// Adds the contribution of one weight to the sums, over all windows of an image. The weight lies
  /// at `of_w`, in row i and column j of its filter. `which` has the image, its output channel and
  /// its input channel.
  void add_tap(std::vector<double>& sums, const std::array<std::int64_t, 3>& which,
               std::int64_t of_w, std::int64_t i, std::int64_t j) const {
    const auto [n, o, channel] = which;
    // The range of windows in a row for which this weight lies inside the image.
    const std::int64_t at = j * dilations[1] - before[1];
    const std::int64_t first = at >= 0 ? 0 : (-at + strides[1] - 1) / strides[1];
    const std::int64_t end = std::min(
        y.dimensions[3], at >= x.dimensions[3] ? 0 : (x.dimensions[3] - 1 - at) / strides[1] + 1);
    for (std::int64_t h = 0; h < y.dimensions[2]; ++h) {
      const std::int64_t row = h * strides[0] - before[0] + i * dilations[0];
      if (row < 0 || row >= x.dimensions[2]) continue;
      const std::int64_t of_y = y.at(n, o, h, 0), of_x = x.at(n, channel, row, at);
      const std::int64_t y_step = y.strides[3], x_step = x.strides[3] * strides[1];
      double sum = 0;
      for (std::int64_t v = first; v < end; ++v) {
        const std::int64_t in_y = of_y + v * y_step, in_x = of_x + v * x_step;
        if (kind == Calls::kForward) {
          sums[std::size_t(in_y)] += double(x.data[in_x]) * w.data[of_w];
        } else if (kind == Calls::kBackwardData) {
          sums[std::size_t(in_x)] += double(y.data[in_y]) * w.data[of_w];
        } else {
          sum += double(y.data[in_y]) * x.data[in_x];
        }
      }
      if (kind == Calls::kBackwardFilter) sums[std::size_t(of_w)] += sum;
    }
  }
  const Tensor& result() const {
    return kind == Calls::kForward ? y : kind == Calls::kBackwardData ? x : w;
  }
  bool fits() const {
    for (std::size_t d = 0; d < 2; ++d) {
      const std::int64_t reach = (w.dimensions[d + 2] - 1) * dilations[d] + 1;
      const std::int64_t room = x.dimensions[d + 2] + before[d] + behind[d] - reach;
      if (room < 0 || room / strides[d] + 1 != y.dimensions[d + 2]) return false;
    }
    return x.dimensions[0] == y.dimensions[0] && w.dimensions[0] == y.dimensions[1] &&
           x.dimensions[1] % w.dimensions[1] == 0;
  }

 private:
  template <typename F>
  static void each(const std::array<std::int64_t, 4>& extents, F visit) {
    for (std::int64_t a = 0; a < extents[0]; ++a) {
      for (std::int64_t b = 0; b < extents[1]; ++b) {
        for (std::int64_t c = 0; c < extents[2]; ++c) {
          for (std::int64_t d = 0; d < extents[3]; ++d) visit(a, b, c, d);
        }
      }
    }
  }
};

template <std::size_t n>
bool read(const Descriptor& from, int attribute, std::array<std::int64_t, n>& to) {
  const auto values = from.values<std::int64_t>(attribute);
  if (values.size() != n) return false;
  std::ranges::copy(values, to.begin());
  return true;
}

/// Reads the tensor's shape and strides into `tensor`, and its number into `id`. Returns false if a
/// part is missing.
bool read_tensor(const Descriptor* from, Tensor& tensor, std::int64_t& id) {
  std::array<std::int64_t, 1> ids{};
  if (from == nullptr || !read(*from, Calls::kTensorDimensions, tensor.dimensions) ||
      !read(*from, Calls::kTensorStrides, tensor.strides) || !read(*from, Calls::kTensorId, ids)) {
    return false;
  }
  id = ids[0];
  return true;
}

bool read_graph(const Descriptor* graph, Convolution& c, std::array<std::int64_t, 3>& ids) {
  const Descriptor* const op = graph == nullptr ? nullptr : graph->part(Calls::kOps);
  if (op == nullptr) return false;
  c.kind = op->kind;
  const bool forward = c.kind == Calls::kForward, data = c.kind == Calls::kBackwardData;
  const auto part = [&](int a, int b, int filter) {
    return op->part(forward ? a : data ? b : filter);
  };
  const Descriptor* const windows =
      part(Calls::kForwardConvolution, Calls::kDataConvolution, Calls::kFilterConvolution);
  return windows != nullptr &&
         read_tensor(part(Calls::kForwardY, Calls::kDataDy, Calls::kFilterDy), c.y, ids[0]) &&
         read_tensor(part(Calls::kForwardX, Calls::kDataDx, Calls::kFilterX), c.x, ids[1]) &&
         read_tensor(part(Calls::kForwardW, Calls::kDataW, Calls::kFilterDw), c.w, ids[2]) &&
         read(*windows, Calls::kStrides, c.strides) &&
         read(*windows, Calls::kDilations, c.dilations) &&
         read(*windows, Calls::kPadsBefore, c.before) &&
         read(*windows, Calls::kPadsBehind, c.behind) && c.fits();
}

/// An engine's configuration keeps the graph that it belongs to as this attribute.
constexpr int kGraphOfConfig = -1;

}  // namespace

extern "C" {

// Returns the note of the engine that computed the last convolution.
int note_of_fake_cudnn() { return kNotes[last_engine]; }

const char* cudnnGetErrorString(int status) {
  return status == kBadParameter   ? "CUDNN_STATUS_BAD_PARAM"
         : status == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED"
                                   : "CUDNN_STATUS_EXECUTION_FAILED";
}
void cudnnGetLastErrorString(char* text, std::size_t bytes) {
  if (bytes > 0) *text = '\0';
}
namespace {
void* used_stream = nullptr;
}
int cudnnCreate(void** handle) {
  *handle = &used_stream;
  return kSuccess;
}
int cudnnDestroy(void*) { return kSuccess; }
int cudnnSetStream(void*, void* stream) {
  used_stream = stream;
  return kSuccess;
}

int cudnnBackendCreateDescriptor(int kind, Descriptor** descriptor) {
  *descriptor = new Descriptor;
  (*descriptor)->kind = kind;
  return kSuccess;
}
int cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
  delete descriptor;
  return kSuccess;
}
int cudnnBackendSetAttribute(Descriptor* descriptor, int attribute, int type, std::int64_t count,
                             const void* values) {
  if (descriptor->finished) return kBadParameter;
  const auto* const bytes = static_cast<const std::byte*>(values);
  descriptor->attributes[attribute] = {bytes, bytes + std::size_t(count) * size_of(type)};
  return kSuccess;
}

int cudnnBackendFinalize(Descriptor* descriptor) {
  descriptor->finished = true;
  Convolution c;
  std::array<std::int64_t, 3> ids{};
  if (descriptor->kind == Calls::kGraph && !read_graph(descriptor, c, ids)) return kNotSupported;
  // Refuses to run a plan that was made for a described device: no hardware could run it, although
  // cuDNN reports success.
  const bool names_handle = descriptor->attributes.contains(
      descriptor->kind == Calls::kGraph ? Calls::kGraphHandle : Calls::kPlanHandle);
  if ((descriptor->kind == Calls::kGraph || descriptor->kind == Calls::kPlan) && !names_handle) {
    return kBadParameter;
  }
  return kSuccess;
}

int cudnnBackendGetAttribute(Descriptor* descriptor, int attribute, int, std::int64_t most,
                             std::int64_t* count, void* values) {
  *count = 0;
  if (!descriptor->finished) return kBadParameter;
  if (attribute == Calls::kResults) {
    *count = std::int64_t(kNotes.size());
    if (most < *count) return kSuccess;
    for (std::size_t k = 0; k < kNotes.size(); ++k) {
      Descriptor& config = *static_cast<Descriptor**>(values)[k];
      config.engine = k;
      config.attributes[kGraphOfConfig] = descriptor->attributes[Calls::kHeuristicsGraph];
      config.finished = true;
    }
  } else if (attribute == Calls::kConfigEngine) {
    Descriptor& engine = **static_cast<Descriptor**>(values);
    engine.engine = descriptor->engine;
    engine.finished = true;
    *count = 1;
  } else if (attribute == Calls::kNotesOfEngine) {
    if (kNotes[descriptor->engine] < 0) return kSuccess;
    *static_cast<std::int32_t*>(values) = kNotes[descriptor->engine];
    *count = 1;
  } else if (attribute == Calls::kPlanWorkspace) {
    *static_cast<std::int64_t*>(values) = kWorkspace;
    *count = 1;
  } else {
    return kNotSupported;
  }
  return kSuccess;
}

int cudnnBackendExecute(void*, Descriptor* plan, Descriptor* pack) {
  const Descriptor* const config = plan->part(Calls::kPlanConfig);
  Convolution c;
  std::array<std::int64_t, 3> ids{};
  if (config == nullptr || !pack->finished || !read_graph(config->part(kGraphOfConfig), c, ids)) {
    return kBadParameter;
  }
  const auto named = pack->values<std::int64_t>(Calls::kPackIds);
  const auto pointers = pack->values<float*>(Calls::kPackPointers);
  const auto workspace = pack->values<void*>(Calls::kPackWorkspace);
  Tensor* const tensors[] = {&c.y, &c.x, &c.w};
  for (std::size_t k = 0; k < ids.size(); ++k) {
    const auto at = std::size_t(std::ranges::find(named, ids[k]) - named.begin());
    if (at >= pointers.size()) return kBadParameter;
    tensors[k]->data = pointers[at];
    if (!paceline::testing::fake_gpu_holds(tensors[k]->data, tensors[k]->bytes())) return kFailed;
  }
  if (workspace.size() != 1 || !paceline::testing::fake_gpu_holds(workspace[0], kWorkspace)) {
    return kFailed;
  }
  last_engine = config->engine;
  if (std::getenv("FAKE_CUDNN_IDLE") != nullptr) return kSuccess;
  const auto work = [c, memory = workspace[0]] {
    std::memset(memory, 0xff, std::size_t(kWorkspace));
    c.run();
  };
  return paceline::testing::push_on_fake_gpu(used_stream, work) == 0 ? kSuccess : kFailed;
}

}  // extern "C"

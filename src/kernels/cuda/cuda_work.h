// A node's work on a GPU: launches of kernels that are written as CUDA source.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ops/image.h"
#include "paceline/graph.h"

namespace paceline {

/// A parameter of a kernel: its value, or where to find it when the kernel runs. Integers have 64
/// bits, numbers are float32, and null is the pointer to an input that a node lacks.
struct CudaArgument {
  enum class Kind : std::uint8_t {
    kBytes,       // `bytes`
    kInput,       // the address of byte `offset` of input `index`
    kOutput,      // the address of byte `offset` of output `index`
    kScratch,     // the address of byte `offset` of the scratch memory
    kRandomKey,   // the key of the random stream `name`
    kRandomStep,  // the high half of the random stream's counter: the task and the step
    kFault,       // the address of the node's CudaFault
  };

  static CudaArgument input(std::size_t index, std::size_t offset = 0) {
    return {Kind::kInput, index, offset, {}, {}};
  }
  static CudaArgument output(std::size_t index, std::size_t offset = 0) {
    return {Kind::kOutput, index, offset, {}, {}};
  }
  static CudaArgument scratch(std::size_t offset) { return {Kind::kScratch, 0, offset, {}, {}}; }
  static CudaArgument integer(std::int64_t value) { return of(value); }
  static CudaArgument number(double value) { return of(float(value)); }
  static CudaArgument null() { return of(std::int64_t{0}); }
  static CudaArgument fault() { return {Kind::kFault, 0, 0, {}, {}}; }
  static CudaArgument random_key(std::string name) {
    return {Kind::kRandomKey, 0, 0, {}, std::move(name)};
  }
  static CudaArgument random_step() { return {Kind::kRandomStep, 0, 0, {}, {}}; }
  /// Passes a struct that kernel and host declare alike.
  template <typename T>
  static CudaArgument of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return {Kind::kBytes, 0, 0, std::move(bytes), {}};
  }

  Kind kind = Kind::kBytes;
  std::size_t index = 0, offset = 0;
  std::vector<std::byte> bytes;
  std::string name;
};

/// `count` products c (m,n) = a (m,k) · b (k,n), each written to c or, if `adds` is 1, added to c.
/// Strides count elements from one row, column or matrix to the next. The kernels' source declares
/// the same struct.
struct CudaProduct {
  std::int64_t count = 1, m = 0, n = 0, k = 0, a_next = 0, a_row = 0, a_column = 0, b_next = 0,
               b_row = 0, b_column = 0, c_next = 0;
  std::int64_t adds = 0;
  std::int64_t of_bfloat16 = 0;  // a and b are bfloat16
};

/// A convolution in float32, or one of its gradients. `operands` are y, x, w, or dx, dy, w, or dw,
/// x, dy.
struct CudaConvolution {
  enum class Kind : std::uint8_t { kForward, kInputGrad, kWeightsGrad };
  struct Tensor {
    // Ordered by n, c, h, w; for weights by o, c, h, w.
    std::array<std::int64_t, 4> dimensions, strides;
  };

  Kind kind;
  std::array<Tensor, 3> operands;
  std::array<std::int64_t, 2> strides, dilations, pads_before, pads_behind;
  /// True if the operands are exact in TF32, so that tensor cores may multiply them.
  bool is_tf32 = false;
};

/// The last part of a product. kBias adds an element of the bias to each row of the result;
/// kReluBias then also applies a relu.
enum class CudaEpilogue : std::uint8_t { kNone, kBias, kReluBias };

/// A call of an NVIDIA library that can replace launches. No extent is 0.
struct CudaLibraryCall {
  std::variant<CudaProduct, CudaConvolution> what;
  CudaArgument to, first, second;  // addresses
  /// If the library has no plan with the epilogue, launches with `finishes_the_last` do it.
  CudaEpilogue epilogue = CudaEpilogue::kNone;
  CudaArgument bias = {};  // an address, if there is an epilogue
};

struct CudaLaunch {
  const char* function;
  /// The number of blocks that the work would fill. If it is large, the device starts fewer, and
  /// each must also do the work of the missing ones.
  std::int64_t blocks;
  std::vector<CudaArgument> arguments;
  unsigned threads = 128;  // per block
  /// A library call that does the work of this launch and of the launches with `finishes_the_last`
  /// that follow.
  std::optional<CudaLibraryCall> library = {};
  bool finishes_the_last = false;
};

/// What an index in a node's input stands for, and its limit. On the GPU a word of 64 bits reports
/// the first index outside this range: (position << 32 | index), or all ones if there is none.
struct CudaFault {
  const char* what;  // "label" or "id"
  std::int64_t limit;
};

/// The work of a node. Its launches run one after another.
struct CudaWork {
  std::string source;
  std::vector<CudaLaunch> launches;
  std::size_t scratch_bytes = 0;
  std::optional<CudaFault> fault;
  // Whether the node adds up sums with the other parts of the batch, if there are any.
  bool exchanges = false;

  /// Adds `bytes` bytes to the scratch memory, and returns the offset at which they begin.
  std::size_t add_scratch(std::size_t bytes) {
    constexpr std::size_t kLine = 256;
    const std::size_t begin = (scratch_bytes + kLine - 1) / kLine * kLine;
    scratch_bytes = begin + bytes;
    return begin;
  }
};

/// Returns the work of a node; nothing if no kernel is written for it. Kernels compute in float32.
/// Those that only move or cast elements, and those of users' ops, take any type.
std::optional<CudaWork> cuda_work(const Node& node);

/// Parts that the families of kernels share.
namespace cuda {

constexpr unsigned kThreads = 128;         // per block, unless a launch says otherwise
constexpr std::int64_t kMostParts = 1024;  // for the sums over one tensor

/// Returns how many neighbouring threads of a block take one column each: a power of two.
inline std::int64_t lanes_for(std::int64_t columns) {
  return std::int64_t(std::bit_ceil(std::uint64_t(std::clamp<std::int64_t>(columns, 1, kThreads))));
}
/// Returns the number of parts, of one block each, into which each of `others` sums of n elements
/// is cut: as many as leave every thread at least eight elements, with at most kMostParts for all
/// sums.
inline std::int64_t parts_of(std::int64_t n, std::int64_t others) {
  const std::int64_t most =
      std::max<std::int64_t>(1, kMostParts / std::max<std::int64_t>(1, others));
  return std::clamp<std::int64_t>(n / (8 * kThreads), 1, most);
}

/// Returns the number of blocks with a thread for each of n elements.
inline std::int64_t blocks_for(std::int64_t n) { return (n + kThreads - 1) / kThreads; }

/// The source that precedes every family's: `EACH(i, n)`, and sums and maxima over a block.
extern const char* const kPrelude;

/// Matches the struct in kImageSource.
struct Image {
  std::int64_t n, c, h, w;
  std::int64_t of_n, of_c, of_w;  // strides in elements; rows are contiguous
};
Image image_of(const Shape& shape, const Attributes& attributes);
extern const char* const kImageSource;
/// Adds launches that sum columns: `to`[j] = factor · Σ over `rows` of `from`[row·columns + j].
void sum_columns(CudaWork& work, const CudaArgument& to, const CudaArgument& from,
                 std::int64_t rows, std::int64_t columns, double factor = 1);
/// The source of the kernels that sum_columns launches, and of `sum_of_lanes(x, width)`. That
/// function adds x over the threads of a block (128) whose numbers are equal modulo `width`, a
/// power of 2; the first `width` threads get the sums.
extern const char* const kSumColumns;

/// Each of these functions returns the work of a node whose op belongs to its family, else nothing.
std::optional<CudaWork> layout_work(const Node& node);
std::optional<CudaWork> cast_work(const Node& node);
std::optional<CudaWork> reduce_work(const Node& node);
std::optional<CudaWork> row_work(const Node& node);
std::optional<CudaWork> loss_work(const Node& node);
std::optional<CudaWork> table_work(const Node& node);
std::optional<CudaWork> random_work(const Node& node);
std::optional<CudaWork> image_work(const Node& node);
std::optional<CudaWork> batch_norm_work(const Node& node);
std::optional<CudaWork> product_work(const Node& node);

}  // namespace cuda
}  // namespace paceline

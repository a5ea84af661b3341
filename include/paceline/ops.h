// The library's ops as functions that add nodes. Each function throws kInvalidArgument, naming the
// op and the shapes, when the inputs do not fit. In comments on shapes, N is the batch, T the
// number of unrolled steps, H the number of hidden units and V the size of the vocabulary. Unless a
// comment says otherwise, all inputs of an op have one type, float32 or float64.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "paceline/graph.h"

namespace paceline {

// Linear algebra.
/// (m,k) × (k,n) → (m,n); a transposed operand is given as (k,m) or (n,k). With more dimensions,
/// the last two are those of the matrices, and the others are broadcast: (…,m,k) × (…,k,n) →
/// (…,m,n). A product of two such batches stays float32 with --precision bfloat16.
Value matmul(Value a, Value b, bool transpose_a = false, bool transpose_b = false);
/// (…,n) + (n) → (…,n).
Value bias(Value x, Value b);
/// A dense layer: x (…,in), of two dimensions or more, times the variable "name/w" (in,units), plus
/// the variable "name/b" (units) → (…,units). The variables have the type of x, float32 or float64.
Value dense(Value x, std::int64_t units, std::string_view name,
            Initializer weights = Initializer::glorot_uniform(),
            Initializer biases = Initializer::zeros());

/// (x − mean) / √(variance + epsilon) · gains + offsets, with the mean and the biased variance of
/// each row along the last dimension (Ba, Kiros & Hinton, arXiv 1607.06450): x (…,n), gains (n),
/// offsets (n) → (…,n).
Value layer_norm(Value x, Value gains, Value offsets, double epsilon = 1e-5);
/// Layer norm whose variables "name/gains" (n) and "name/offsets" (n) begin as ones and as zeros.
Value layer_norm(Value x, std::string_view name, double epsilon = 1e-5);
/// e^x / Σ e^x over dimension `axis` (a negative one is counted from the end), which may not be
/// empty. The largest element is subtracted from x first, so that nothing overflows.
Value softmax(Value x, int axis = -1);

// Element-wise, with NumPy broadcasting for two operands.
Value add(Value a, Value b);                                    // a + b
Value sub(Value a, Value b);                                    // a − b
Value mul(Value a, Value b);                                    // a · b, by element
Value div(Value a, Value b);                                    // a / b, by element
inline Value operator+(Value a, Value b) { return add(a, b); }  // add
inline Value operator-(Value a, Value b) { return sub(a, b); }  // sub
inline Value operator*(Value a, Value b) { return mul(a, b); }  // mul
inline Value operator/(Value a, Value b) { return div(a, b); }  // div
// A number in an operator with a value acts as a scalar of the value's type.
Value operator+(Value x, double number);  // x + number
Value operator+(double number, Value x);  // number + x
Value operator-(Value x, double number);  // x − number
Value operator-(double number, Value x);  // number − x
Value operator/(Value x, double number);  // x / number
Value operator/(double number, Value x);  // number / x
/// The larger of a and b; NaN where one of them is NaN. Where both are equal, the gradient goes to
/// a.
Value maximum(Value a, Value b);
/// The larger of x and a number.
Value maximum(Value x, double number);
/// The smaller of a and b; NaN where one of them is NaN. Where both are equal, the gradient goes to
/// a.
Value minimum(Value a, Value b);
/// The smaller of x and a number.
Value minimum(Value x, double number);
/// x where x lies in [low, high], else the nearer end; the gradient is 0 beyond the ends. Throws
/// kInvalidArgument when low is above high.
Value clip(Value x, double low, double high);
/// a to the power b; NaN where a is below 0 and b is not an integer. The gradient by b is 0 where a
/// is 0 or less.
Value pow(Value a, Value b);
/// x to a power.
Value pow(Value x, double exponent);
// A comparison gives 1 where it holds, else 0 (also if an operand is NaN). The result has the
// operands' type, so that graphs can fuse the comparison with the ops that read the result. The
// gradient is 0.
Value greater(Value a, Value b);        // a > b
Value greater(Value x, double number);  // x > number
Value greater_equal(Value a, Value b);  // a ≥ b
Value less(Value a, Value b);           // a < b
Value less(Value x, double number);     // x < number
Value less_equal(Value a, Value b);     // a ≤ b
/// a = b. For integers the result is float32; those of 64 bits are compared as float64, which is
/// exact up to 2⁵³.
Value equal(Value a, Value b);
/// a where the condition is not zero, else b. The condition has any type and no gradient.
/// Condition, a and b are broadcast to one shape.
Value where(Value condition, Value a, Value b);
/// x (…) · factor → (…). The factor may be an open dimension, a product with open dimensions, or 1
/// divided by one of these.
Value scale(Value x, double factor);
inline Value operator*(Value x, double number) { return scale(x, number); }  // scale
inline Value operator*(double number, Value x) { return scale(x, number); }  // scale
inline Value operator-(Value x) { return scale(x, -1); }                     // −x
Value relu(Value x);                                                         // max(x, 0)
/// max(x, 0) + slope · min(x, 0) (Maas, Hannun & Ng, ICML 2013).
Value leaky_relu(Value x, double slope);
Value sigmoid(Value x);  // 1 / (1 + e^−x)
Value tanh(Value x);     // hyperbolic tangent
Value exp(Value x);      // e^x
Value log(Value x);      // natural; −∞ at 0, NaN below
Value sqrt(Value x);     // √x; NaN below 0
Value square(Value x);   // x²
Value abs(Value x);      // |x|; its gradient at 0 is 0
Value sign(Value x);     // −1, 0 or 1; its gradient is 0
Value erf(Value x);      // 2/√π ∫₀ˣ e^−t² dt
/// x·Φ(x), with the normal distribution function Φ (Hendrycks & Gimpel, arXiv 1606.08415). If
/// `approximate` is true: ½x·(1 + tanh(√(2/π)·(x + 0.044715x³))).
Value gelu(Value x, bool approximate = false);
/// x itself, but no gradient goes through. The op takes no memory and no time.
Value stop_gradient(Value x);
/// x with another element type; every type can become every other. To bool: whether the element is
/// not zero. Float to integer truncates; a number beyond the range of the integer becomes the
/// nearest end of the range, and NaN becomes 0.
Value cast(Value x, DType dtype);

// Shape.
/// The elements of x in their order, in another shape. One dimension may be −1: its size follows
/// from the others.
Value reshape(Value x, std::span<const std::int64_t> dims);
/// The same, with the dimensions written out.
Value reshape(Value x, std::initializer_list<std::int64_t> dims);
/// Output dimension i is input dimension permutation[i]; an empty permutation reverses all
/// dimensions.
Value transpose(Value x, std::vector<std::int64_t> permutation = {});
/// Joins values whose shapes differ in dimension `axis` only, one after the other along that
/// dimension.
Value concat(std::span<const Value> parts, int axis);
/// Cuts x along dimension `axis` into `parts` pieces of equal size.
std::vector<Value> split(Value x, int parts, int axis);
/// Takes indices [begin, begin + size) in each dimension of x.
Value slice(Value x, std::vector<std::int64_t> begin, std::vector<std::int64_t> size);
/// 1 at [ids[…]], else 0: ids int32 (…) → float32 or float64 (…,depth). An id outside [0,depth)
/// throws kInvalidArgument when the step runs.
Value one_hot(Value ids, std::int64_t depth, DType dtype = DType::kFloat32);
/// Adds zeros around x: before[i] at the beginning and after[i] at the end of dimension i.
Value pad(Value x, std::vector<std::int64_t> before, std::vector<std::int64_t> after);

// Reductions of x over the dimensions `axes`: all of them when `axes` is empty; negative ones are
// counted from the end. Reduced dimensions are dropped, or kept with size 1 if `keep` is true:
// (M,N) over {1} → (M) or (M,1). The sum of no elements is 0; mean and maximum of no elements are
// refused.
/// Σ x.
Value reduce_sum(Value x, std::vector<std::int64_t> axes = {}, bool keep = false);
/// Σ x divided by the number of elements in the sum.
Value reduce_mean(Value x, std::vector<std::int64_t> axes = {}, bool keep = false);
/// The largest element; NaN where one of the elements is NaN.
Value reduce_max(Value x, std::vector<std::int64_t> axes = {}, bool keep = false);
/// Element i along `axis` (a negative one is counted from the end) is the sum of elements 0 … i of
/// x. `exclusive` leaves element i out of the sum; `reverse` sums from the last element backwards.
Value cumulative_sum(Value x, int axis = -1, bool exclusive = false, bool reverse = false);
/// √(Σ x²) over the elements of all inputs together, a scalar. Gradients are clipped by this norm
/// (Pascanu, Mikolov & Bengio, ICML 2013).
Value global_norm(std::span<const Value> values);

// Losses and metrics.
/// −Σ p·log softmax(logits) per row, with p = 1 for the label and 0 else, or, with label smoothing
/// s, p = 1 − s + s/V and s/V (Szegedy et al., arXiv 1512.00567, section 7): logits (N,V), labels
/// int32 (N) → (N). A label outside [0,V) throws kInvalidArgument when the step runs.
Value softmax_cross_entropy(Value logits, Value labels, double smoothing = 0);
/// mean((a − b)²), a scalar.
Value mean_squared_error(Value a, Value b);
/// The index of the largest element in each row, or of the first among equal ones: (N,V) → int32
/// (N).
Value arg_max(Value x);
/// The share of rows in which the logit of the label is among the k largest: logits (N,V), labels
/// int32 (N) → scalar.
Value top_k_accuracy(Value logits, Value labels, int k);

// Images. Shapes in comments: C channels, H height, W width, O output channels, h and w height and
// width of the output.
/// The margin around an image, into which windows may reach.
struct Padding {
  /// How wide the margin is.
  enum class Kind : std::uint8_t {
    /// So wide that each extent of the output is ⌈extent / stride⌉. If the margin is odd, the
    /// bottom or the right has one row or column more.
    kSame,
    kValid,     // none: windows lie within the image
    kExplicit,  // `amounts`
  };
  Kind kind = Kind::kSame;                   // how wide the margin is
  std::array<std::int64_t, 4> amounts = {};  // of kExplicit: top, left, bottom, right
  /// Returns the margin of TensorFlow's "SAME".
  static Padding same() { return {}; }
  /// Returns no margin.
  static Padding valid() { return {Kind::kValid, {}}; }
  /// Returns a margin of these numbers of rows and columns.
  static Padding of(std::int64_t top, std::int64_t left, std::int64_t bottom, std::int64_t right) {
    return {Kind::kExplicit, {top, left, bottom, right}};
  }
};
/// How the windows of a convolution lie. In each pair, the first number is for height, the second
/// for width.
struct Conv2dOptions {
  std::array<std::int64_t, 2> strides = {1, 1};  // from one window to the next
  Padding padding = Padding::same();             // filled with zeros
  /// The distance from one element of a window to the next.
  std::array<std::int64_t, 2> dilations = {1, 1};
  /// The number of groups of input channels. Each group alone makes its part of the output channels
  /// (Krizhevsky et al., NIPS 2012).
  std::int64_t groups = 1;
};
/// Multiplies the weights (O,C/groups,height,width) with each window of x (N,C,H,W) and adds up the
/// products → (N,O,h,w) (LeCun et al., Neural Computation 1, 1989). Windows are not mirrored.
/// Extent h is ⌊(H + padding − dilation·(height − 1) − 1) / stride⌋ + 1.
Value conv2d(Value x, Value weights, const Conv2dOptions& options = {});
/// conv2d plus biases (O), one for each output channel.
Value conv2d(Value x, Value weights, Value biases, const Conv2dOptions& options = {});
/// A convolution layer with windows of size × size and its own variables: conv2d of x (N,C,H,W) by
/// the variable "name/w" (channels,C/groups,size,size), plus the variable "name/b" (channels) →
/// (N,channels,h,w). The variables have the type of x. Without `biases` there is no "name/b"; a
/// layer before batch_norm needs none.
Value conv2d(Value x, std::int64_t channels, std::int64_t size, std::string_view name,
             const Conv2dOptions& options = {},
             const Initializer& weights = Initializer::glorot_uniform(),
             const std::optional<Initializer>& biases = Initializer::zeros());
/// How the windows of a pool lie. In each pair, the first number is for height, the second for
/// width.
struct Pool2dOptions {
  std::array<std::int64_t, 2> size = {2, 2};     // of a window, at most 256 elements
  std::array<std::int64_t, 2> strides = {2, 2};  // from one window to the next
  /// The margin. It must be narrower than a window, and its elements are never counted.
  Padding padding = Padding::valid();
};
/// The largest element in each window of each channel: x (N,C,H,W) → (N,C,h,w); NaN where the
/// window has a NaN. The gradient goes to the first of equal elements.
Value max_pool2d(Value x, const Pool2dOptions& options = {});
/// The mean of each window of each channel, over the elements of the window that lie in the image:
/// x (N,C,H,W) → (N,C,h,w).
Value avg_pool2d(Value x, const Pool2dOptions& options = {});
/// The numbers of local_response_norm.
struct LocalResponseNormOptions {
  std::int64_t radius = 5;  // in channels
  double bias = 1;          // above 0
  double alpha = 1;         // not negative
  double beta = 0.5;        // the exponent, not negative
};
/// x / (bias + alpha · Σ x²)^beta, the sum over the channel itself and `radius` channels on either
/// side: x (N,C,H,W) → (N,C,H,W). Krizhevsky et al., NIPS 2012, section 3.3, in TensorFlow's form,
/// whose alpha is not divided by the number of channels.
Value local_response_norm(Value x, const LocalResponseNormOptions& options = {});
/// The results of batch_norm().
struct BatchNormOutput {
  Value y;          // (N,C,H,W)
  Value means;      // (C), of the batch
  Value variances;  // (C), the biased variances of the batch: divided by N·H·W
};
/// (x − mean) / √(variance + epsilon) · gains + offsets with mean and biased variance of each
/// channel over the batch (Ioffe & Szegedy, arXiv 1502.03167): x (N,C,H,W), gains (C), offsets (C).
/// The outputs `means` and `variances` have no gradient.
BatchNormOutput batch_norm(Value x, Value gains, Value offsets, double epsilon = 1e-3);
/// The options of batch_norm with its own variables.
struct BatchNormOptions {
  bool training = true;   // true: statistics of the batch; false: the moving statistics
  double momentum = 0.9;  // the share of a moving statistic that a step keeps
  double epsilon = 1e-3;  // is added to variances
  bool gains = true;      // false: all gains are 1, and there is no variable "name/gains"
};
/// batch_norm of x (N,C,H,W) or (N,C) with the variables "name/gains" (C), which begin as ones,
/// "name/offsets" (C), zeros, "name/moving_mean" (C), zeros, and "name/moving_variance" (C), ones.
/// A training contributes each step's statistics to the moving statistics, which the rule Ema
/// updates (Graph::contribute). With parameter servers, all workers contribute to the moving
/// statistics. An evaluation uses the moving statistics (Mode::kInfer), and so does a graph that is
/// built without `training`.
Value batch_norm(Value x, std::string_view name, const BatchNormOptions& options = {});
/// batch_norm with given means (C) and variances (C), which have no gradient.
Value batch_norm_inference(Value x, Value gains, Value offsets, Value means, Value variances,
                           double epsilon = 1e-3);

// Sequence models.
/// Row ids[i] of table (V,H): ids int32 of any shape (…) → (…,H). The gradient by the table is
/// sparse. An id outside [0,V) throws kInvalidArgument when the step runs.
Value embedding_lookup(Value table, Value ids);
/// The results of lstm().
struct LstmOutput {
  Value outputs;  // (T,N,H)
  Value h;        // the final output, (N,H)
  Value c;        // the final cell state, (N,H)
};
/// One LSTM layer (Hochreiter & Schmidhuber, Neural Computation 9, 1997, with the forget gate of
/// Gers et al. 2000; laid out as in Zaremba et al., arXiv 1409.2329) over T steps. x (T,N,I),
/// state_h and state_c (N,H), weights (I+H,4H) with gate blocks i, j, f, o (input rows first),
/// biases (4H):
///   c' = c · σ(f + forget_bias) + σ(i) · tanh(j),  h' = tanh(c') · σ(o).
LstmOutput lstm(Value x, Value state_h, Value state_c, Value weights, Value biases,
                double forget_bias = 0.0);
/// Keeps each element of x (…) with probability `keep` in (0,1], divided by `keep`; other elements
/// become 0 (Srivastava et al., JMLR 15, 2014). The result is x itself when `keep` is 1, and in
/// Mode::kInfer.
Value dropout(Value x, double keep);

// Random values of the given shape, new in each step. They are a function of (seed, node name,
// task, step) by Philox 4×32-10 (Salmon et al., SC 2011). Normal and uniform values are float32.
/// Normally distributed float32 values.
Value random_normal(Graph& graph, const Shape& shape, double mean = 0, double stddev = 1);
/// Uniformly distributed float32 values in [low, high).
Value random_uniform(Graph& graph, const Shape& shape, double low = 0, double high = 1);
/// Uniformly distributed int32 values in [low, high).
Value random_integers(Graph& graph, const Shape& shape, std::int64_t low, std::int64_t high);

}  // namespace paceline

#include "kernels/cuda/cuda_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"

namespace paceline {
namespace {

// Returns a float32 literal with the number's exact bits, including infinities and NaN.
std::string literal(double number) {
  const auto value = float(number);
  if (value != value) return "nanf(\"\")";
  if (value - value != 0) return value > 0 ? "(1.0f / 0.0f)" : "(-1.0f / 0.0f)";
  return fmt::format("{:#.9g}f", value);
}

struct Term {
  std::string_view op, source;  // {0}, {1} and {2} stand for the operands, {3} for the number
};

// The arithmetic of kernels/fused_step.h.
constexpr Term kTerms[] = {
    {"add", "{0} + {1}"},
    {"sub", "{0} - {1}"},
    {"mul", "{0} * {1}"},
    {"div", "{0} / {1}"},
    {"scale", "{0} * {3}"},
    {"relu", "{0} < 0.0f ? 0.0f : {0}"},
    {"leaky_relu", "{0} < 0.0f ? {3} * {0} : {0}"},
    {"sigmoid", "1.0f / (1.0f + expf(-{0}))"},
    {"tanh", "tanhf({0})"},
    {"exp", "expf({0})"},
    {"log", "logf({0})"},
    {"sqrt", "sqrtf({0})"},
    {"square", "{0} * {0}"},
    {"abs", "fabsf({0})"},
    {"sign", "{0} > 0.0f ? 1.0f : {0} < 0.0f ? -1.0f : {0}"},
    {"erf", "erff({0})"},
    {"maximum", "{0} > {1} || {0} != {0} ? {0} : {1}"},
    {"minimum", "{0} < {1} || {0} != {0} ? {0} : {1}"},
    {"pow", "powf({0}, {1})"},
    {"greater", "{0} > {1} ? 1.0f : 0.0f"},
    {"greater_equal", "{0} >= {1} ? 1.0f : 0.0f"},
    {"equal", "{0} == {1} ? 1.0f : 0.0f"},
    {"where", "{0} != 0.0f ? {1} : {2}"},
    {"relu_grad", "{1} > 0.0f ? {0} : 0.0f"},
    {"leaky_relu_grad", "{1} < 0.0f ? {3} * {0} : {0}"},
    {"sigmoid_grad", "{0} * {1} * (1.0f - {1})"},
    {"tanh_grad", "{0} * (1.0f - {1} * {1})"},
};

class ElementwiseWriter {
 public:
  ElementwiseWriter(std::span<const FusedStep> program, const std::vector<std::string>& places)
      : program_(program), places_(places) {}

  std::string text() {
    line(0, fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(", kBlock,
                        ElementwiseSource::kFunction));
    line(2, "float* out,");
    for (std::size_t k = 0; k < places_.size(); ++k) line(2, fmt::format("const float* i{},", k));
    line(2, "long long quads, long long n) {");
    line(1, "const long long stride = (long long)gridDim.x * blockDim.x;");
    line(1, "const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;");
    each_input("0", 1, "const float s{0} = i{0}[0];");
    if (!moved()) quads();
    line(1, "for (long long i = 4 * quads + first; i < n; i += stride) {");
    for (std::size_t k = 0; k < places_.size(); ++k) {
      if (places_[k] == "0") continue;
      line(2,
           fmt::format("const float x{0} = i{0}[{1}];", k, places_[k].empty() ? "i" : places_[k]));
    }
    steps(2, "");
    line(2, fmt::format("out[i] = t{};", program_.size() - 1));
    line(1, "}");
    line(0, "}");
    return std::move(text_);
  }

 private:
  static constexpr unsigned kBlock = ElementwiseSource::kBlock;

  bool moved() const {
    return std::ranges::any_of(places_, [](const auto& p) { return !p.empty() && p != "0"; });
  }
  void quads() {
    line(1, "for (long long i = first; i < quads; i += stride) {");
    each_input("", 2, "const float4 x{0} = ((const float4*)i{0})[i];");
    line(2, "float4 y;");
    for (const char* const part : {".x", ".y", ".z", ".w"}) {
      line(2, "{");
      steps(3, part);
      line(3, fmt::format("y{} = t{};", part, program_.size() - 1));
      line(2, "}");
    }
    line(2, "((float4*)out)[i] = y;");
    line(1, "}");
  }
  void line(int depth, std::string_view words) {
    text_ += std::string(std::size_t(2 * depth), ' ');
    text_ += words;
    text_ += '\n';
  }
  void each_input(std::string_view place, int depth, std::string_view words) {
    for (std::size_t k = 0; k < places_.size(); ++k) {
      if (places_[k] == place) line(depth, fmt::format(fmt::runtime(words), k));
    }
  }
  std::string operand(const FusedOperand& operand, std::string_view part) const {
    if (operand.kind == FusedOperand::Kind::kStep) return fmt::format("t{}", operand.index);
    if (places_[std::size_t(operand.index)] == "0") return fmt::format("s{}", operand.index);
    return fmt::format("x{}{}", operand.index, part);
  }
  void steps(int depth, std::string_view part) {
    for (std::size_t j = 0; j < program_.size(); ++j) {
      const FusedStep& step = program_[j];
      std::array<std::string, 3> of;
      for (std::size_t k = 0; k < step.operands.size(); ++k)
        of[k] = operand(step.operands[k], part);
      line(depth, fmt::format("const float t{} = {};", j, step_expression(step, of)));
    }
  }

  const std::span<const FusedStep> program_;
  const std::vector<std::string>& places_;
  std::string text_;
};

}  // namespace

std::string elementwise_source(std::span<const FusedStep> program,
                               const std::vector<std::string>& places) {
  return ElementwiseWriter(program, places).text();
}

std::string step_expression(const FusedStep& step, const std::array<std::string, 3>& operands) {
  const auto* const term = std::ranges::find(kTerms, step.op, &Term::op);
  PACELINE_CHECK(term != std::end(kTerms));
  return fmt::format(fmt::runtime(term->source), operands[0], operands[1], operands[2],
                     literal(step.number));
}

std::string broadcast_place(const Shape& from, const Shape& to) {
  if (from == to) return "";
  if (from.elements() == 1) return "0";
  std::string place;
  std::int64_t behind = 1, stride = 1;  // elements of `to` and of `from` behind dimension −d
  for (int d = 1; d <= from.rank(); ++d) {
    if (from[-d] != 1) {
      place +=
          fmt::format("{}i / {} % {} * {}", place.empty() ? "" : " + ", behind, to[-d], stride);
    }
    behind *= to[-d];
    stride *= from[-d];
  }
  return place;
}

}  // namespace paceline

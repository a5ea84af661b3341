#include "train/step_details.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "data/picture.h"
#include "paceline/op.h"

namespace paceline {
namespace {

constexpr std::int64_t kMostImages = 3;
constexpr std::string_view kGradients = "gradients/";  // the scope of what minimize() adds

bool is_gradient(const Node& node) {
  const std::size_t at = node.name().find(kGradients);
  return at == 0 || (at != std::string::npos && node.name()[at - 1] == '/');
}

std::span<const float> floats(const TensorView& value) {
  return {value.as<float>(), std::size_t(value.shape.elements())};
}

// Returns the sum of squares; NaN when one of the values is not finite.
double sum_of_squares(const Histogram& histogram, const TensorView& value) {
  return std::int64_t(histogram.count) == value.shape.elements()
             ? histogram.sum_squares
             : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::optional<std::vector<SummaryValue>> StepDetails::take() {
  if (!std::exchange(shown_, false)) return {};
  if (std::exchange(has_gradients_, false)) {
    values_.push_back({"gradient_norm", float(std::sqrt(squares_))});
  }
  return std::exchange(values_, {});
}

void StepDetails::begin_step() {
  depend_.clear();  // the graphs of other steps may be destroyed
  asked_ = false;
  shown_ = true;
  values_.clear();
  squares_ = 0;
  has_gradients_ = false;
}

void StepDetails::input(std::string_view name, const TensorView& value) {
  if (!of_.images) return;
  const auto form = image_form(value.dtype, value.shape);
  if (!form) return;
  const auto [height, width, channels] = form->size;
  const auto image = std::size_t(height * width * channels);
  for (std::int64_t i = 0; i < std::min(kMostImages, value.shape[0]); ++i) {
    std::vector<std::uint8_t> pixels(std::size_t(3 * height * width));
    draw_image(floats(value).subspan(std::size_t(i) * image, image), form->size, form->layout,
               pixels.data(), width);
    values_.push_back({fmt::format("images/{}/{}", name, i),
                       SummaryImage{height, width, png_of(pixels, height, width)}});
  }
}

bool has_image_input(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) {
    const ValueType& type = node->outputs()[0];
    return node->op().name == "input" && image_form(type.dtype, type.shape);
  });
}

bool StepDetails::depends_on_input(const Node& node) const {
  std::vector<bool>& depends = depend_[&node.graph()];
  if (depends.empty()) {
    for (const auto& each : node.graph().nodes()) {
      bool on_input = each->op().name == "input";
      for (const Value& input : each->inputs()) {
        on_input = on_input || depends[std::size_t(input.node().id())];
      }
      depends.push_back(on_input);
    }
  }
  return depends[std::size_t(node.id())];
}

bool StepDetails::wants(const Node& node) const {
  if (!of_.activations || is_gradient(node)) return false;
  const ValueType& type = node.outputs()[0];
  return type.dtype == DType::kFloat32 && type.shape.elements() > 1 && depends_on_input(node);
}

void StepDetails::computed(const Node& node, const TensorView& value) {
  values_.push_back({"activations/" + node.name(), Histogram::of(floats(value))});
}

void StepDetails::contributed(int variable, const TensorView& value) {
  if (value.dtype != DType::kFloat32) return;
  const std::string& name = variables_.at(std::size_t(variable));
  Histogram histogram = Histogram::of(floats(value));
  const double squares = sum_of_squares(histogram, value);
  squares_ += squares;
  has_gradients_ = true;
  values_.push_back({"gradient_norm/" + name, float(std::sqrt(squares))});
  values_.push_back({"gradients/" + name, std::move(histogram)});
}

}  // namespace paceline

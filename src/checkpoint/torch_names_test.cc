#include "checkpoint/torch_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace paceline {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(std::span<const TorchTensor> tensors) {
  std::vector<std::string> all;
  for (const TorchTensor& each : tensors) all.push_back(each.name + " " + each.shape.str());
  return all;
}

Tensor counted(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  float next = 0;
  for (float& value : tensor.data<float>()) value = ++next;
  return tensor;
}

TEST(TorchNames, FollowFromScopesAndLeaves) {
  const TensorInfo variables[] = {{"layer1/w", DType::kFloat32, {2, 3}},
                                  {"layer1/b", DType::kFloat32, {3}},
                                  {"stage1/unit2/conv1/w", DType::kFloat32, {4, 3, 5, 5}},
                                  {"stage1/unit2/norm1/gains", DType::kFloat32, {4}},
                                  {"stage1/unit2/norm1/offsets", DType::kFloat32, {4}},
                                  {"stage1/unit2/norm1/moving_mean", DType::kFloat32, {4}},
                                  {"stage1/unit2/norm1/moving_variance", DType::kFloat32, {4}},
                                  {"norm/offsets", DType::kFloat32, {4}},
                                  {"norm/moving_mean", DType::kFloat32, {4}},
                                  {"table", DType::kFloat32, {9, 4}},
                                  {"embedding", DType::kFloat32, {9, 4}},
                                  {"a/scale", DType::kFloat32, {2, 2}}};
  const ModuleNames modules = {
      {"layer1", "layers.0"}, {"stage1/unit2", "units.1"}, {"embedding", "words"}};
  EXPECT_THAT(
      names(torch_tensors(variables, modules)),
      ElementsAre("layers.0.weight (3,2)", "layers.0.bias (3)", "units.1.conv1.weight (4,3,5,5)",
                  "units.1.norm1.weight (4)", "units.1.norm1.bias (4)",
                  "units.1.norm1.running_mean (4)", "units.1.norm1.running_var (4)",
                  "norm.bias (4)", "norm.weight (4)", "norm.running_mean (4)", "table (9,4)",
                  "words.weight (9,4)", "a.scale (2,2)"));
}

TEST(TorchNames, AnLstmHasItsGatesInAnotherOrderAndTwoBiases) {
  const TensorInfo variables[] = {{"lstm1/w", DType::kFloat32, {3, 4}},
                                  {"lstm1/b", DType::kFloat32, {4}}};
  const auto tensors = torch_tensors(variables, {{"lstm1", "lstm.*_l0"}});
  EXPECT_THAT(names(tensors), ElementsAre("lstm.weight_ih_l0 (4,2)", "lstm.weight_hh_l0 (4,1)",
                                          "lstm.bias_ih_l0 (4)", "lstm.bias_hh_l0 (4)"));
  const auto values = [&](std::size_t i, const Tensor& of) {
    const Tensor made = to_torch(tensors[i], of);
    return std::vector<float>(made.data<float>().begin(), made.data<float>().end());
  };
  EXPECT_THAT(values(0, counted({3, 4})), ElementsAre(1, 5, 3, 7, 2, 6, 4, 8));
  EXPECT_THAT(values(1, counted({3, 4})), ElementsAre(9, 11, 10, 12));
  EXPECT_THAT(values(2, counted({4})), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(values(3, counted({4})), ElementsAre(0, 0, 0, 0));
}

TEST(TorchNames, ValuesComeBack) {
  const TensorInfo variables[] = {{"lstm/w", DType::kFloat32, {5, 8}},
                                  {"lstm/b", DType::kFloat32, {8}},
                                  {"dense/w", DType::kFloat32, {3, 2}},
                                  {"conv/w", DType::kFloat32, {2, 1, 3, 3}}};
  const auto tensors = torch_tensors(variables, {{"lstm", "rnn.*_l3"}});
  for (const TensorInfo& variable : variables) {
    const Tensor value = counted(variable.shape);
    const Tensor back(DType::kFloat32, variable.shape);
    for (const TorchTensor& tensor : tensors) {
      if (tensor.variable != variable.name) continue;
      EXPECT_TRUE(from_torch(tensor, to_torch(tensor, value), back));
    }
    EXPECT_TRUE(std::ranges::equal(back.data<float>(), value.data<float>())) << variable.name;
  }
}

TEST(TorchNames, ABatchNormWithoutGainsTakesNoOtherWeights) {
  const TensorInfo variables[] = {{"n/offsets", DType::kFloat32, {2}},
                                  {"n/moving_mean", DType::kFloat32, {2}}};
  const auto tensors = torch_tensors(variables, {});
  ASSERT_EQ(tensors[1].name, "n.weight");
  const Tensor offsets = counted({2});
  EXPECT_TRUE(from_torch(tensors[1], to_torch(tensors[1], offsets), offsets));
  EXPECT_FALSE(from_torch(tensors[1], counted({2}), offsets));
}

}  // namespace
}  // namespace paceline

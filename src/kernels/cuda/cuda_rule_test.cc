// Tests the kernels of update rules under the fake driver.
#include "kernels/cuda/cuda_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/philox.h"
#include "kernels/cuda/cuda_compiler.h"
#include "kernels/cuda/testing/cuda_test.h"
#include "kernels/testing/all_rules.h"

namespace paceline {
namespace {

std::vector<float> random_values(std::size_t size, std::uint64_t key) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = to_unit_float(philox(key, i, 0)[0]) * 2 - 1;
  return values;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

/// Applies a rule's kernel to arrays of the host: the values, the slots and the average.
class CudaRule : public CudaTest {
 protected:
  using Arrays = std::vector<std::vector<float>>;

  void load(const Rule& rule) {
    const std::vector<char> code = cuda_code(calls_, rule_source(rule), "sm_90");
    CudaCalls::Module* module = nullptr;
    ASSERT_EQ(calls_.load_module(&module, code.data()), 0);
    ASSERT_EQ(calls_.find_function(&function_, module, "apply_rule"), 0);
    if (stream_ == nullptr) {
      ASSERT_EQ(calls_.make_stream(&stream_, 0), 0);
    }
  }

  void apply(const Rule& rule, const RuleStep& step, Arrays& arrays,
             const std::vector<float>& gradient) {
    const std::size_t bytes = gradient.size() * sizeof(float);
    std::vector<CudaCalls::Address> memory(arrays.size() + 2);  // and the gradient, and null
    const auto upload = [&](std::size_t at, const std::vector<float>& from) {
      ASSERT_EQ(calls_.allocate(&memory[at], bytes), 0);
      ASSERT_EQ(calls_.upload(memory[at], from.data(), bytes, stream_), 0);
    };
    for (std::size_t k = 0; k < arrays.size(); ++k) upload(k, arrays[k]);
    upload(arrays.size(), gradient);
    std::vector<void*> parameters = {&memory[0], &memory[arrays.size()]};
    for (std::size_t k = 1; k < arrays.size(); ++k) parameters.push_back(&memory[k]);
    if (step.average_decay == 0) parameters.push_back(&memory.back());
    CudaRuleNumbers numbers = cuda_rule_numbers(rule, step);
    std::int64_t elements = std::int64_t(gradient.size());
    parameters.insert(parameters.end(), {&numbers, &elements});
    ASSERT_EQ(calls_.launch(function_, 2, 1, 1, 128, 1, 1, 0, stream_, parameters.data(), nullptr),
              0);
    ASSERT_EQ(calls_.wait_for_stream(stream_), 0);  // the arrays must not change before
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      ASSERT_EQ(calls_.download(arrays[k].data(), memory[k], bytes, stream_), 0);
    }
    ASSERT_EQ(calls_.wait_for_stream(stream_), 0);
    for (const CudaCalls::Address each : memory) {
      if (each != 0) calls_.free(each);
    }
  }

  // Compares four contributions with those of the host's rule.
  void expect_as_on_the_host(const NamedRule& named, std::size_t size, float average_decay) {
    const Rule& rule = named.rule;
    Arrays host = {random_values(size, 1)};
    for (const SlotSpec& slot : rule.slots()) {
      if (!slot.scalar) host.emplace_back(size, slot.initial);
    }
    if (average_decay > 0) host.emplace_back(size, 0.25f);
    Arrays gpu = host;
    std::vector<float*> slots;
    for (std::size_t k = 1; k < host.size(); ++k) slots.push_back(host[k].data());
    for (int t = 1; t <= 4; ++t) {
      const float rate = t == 3 ? 0 : rule.learning_rate();  // a schedule may reach 0
      RuleStep step{rate, 0.7f, 0.01f, t};
      step.average_decay = average_decay;
      const std::vector<float> gradient = random_values(size, std::uint64_t(t) + 10);
      apply_rule(rule, step, {host[0], slots, gradient});
      apply(rule, step, gpu, gradient);
    }
    for (std::size_t k = 0; k < host.size(); ++k) {
      EXPECT_LT(distance(gpu[k], host[k]), 2e-6) << named.name << ", " << size << ", array " << k;
    }
  }

  CudaCalls::Stream* stream_ = nullptr;
  CudaCalls::Function* function_ = nullptr;
};

TEST_F(CudaRule, EachRuleIsThatOfTheHost) {
  for (const NamedRule& named : all_rules()) {
    load(named.rule);
    for (int schedule = 0; schedule < 6; ++schedule) {
      const EnvironmentVariable set("FAKE_CUDA_SCHEDULE", std::to_string(schedule));
      for (const std::size_t size : {1, 33, 1001}) {
        expect_as_on_the_host(named, size, 0);
        expect_as_on_the_host(named, size, 0.75f);
      }
    }
  }
}

// Needs no driver.
TEST(CudaSource, EachRuleIsCompiledForEachArchitecture) {
  std::string why;
  const CudaPlugin* const plugin = cuda_plugin(why);
  if (plugin == nullptr) GTEST_SKIP() << why;
  if (plugin->no_compiler != nullptr) GTEST_SKIP() << "NVRTC: " << plugin->no_compiler;
  for (const NamedRule& named : all_rules()) {
    for (const char* const architecture : {"sm_80", "sm_90", "sm_100"}) {
      const std::vector<char> code =
          cuda_code(plugin->calls, rule_source(named.rule), architecture);
      if (std::string_view(code.data(), 4) !=
          "\x7f"
          "ELF") {
        GTEST_SKIP() << "the compiler of this process is the fake one";
      }
      EXPECT_GT(code.size(), 1000u) << architecture << " " << named.name;
    }
  }
}

}  // namespace
}  // namespace paceline

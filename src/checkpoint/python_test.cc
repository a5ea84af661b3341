// Tests that the format's own Python library reads what we write, and that we read what it writes.
// $PACELINE_PYTHON names the interpreter; the default is python3.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "checkpoint/safetensors_file.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/testing/folder.h"

namespace paceline::testing {
namespace {

std::string python() {
  const char* chosen = std::getenv("PACELINE_PYTHON");
  return chosen != nullptr ? chosen : "python3";
}

struct Ran {
  int status;
  std::string output;
};

Ran run_python(const Folder& folder, const std::string& script) {
  const std::string path = folder.write("script.py", script);
  std::FILE* pipe = popen(fmt::format("'{}' '{}' 2>&1", python(), path).c_str(), "r");
  std::string output;
  std::array<char, 4096> piece;
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe)) {
    output.append(piece.data(), count);
  }
  return {pclose(pipe), output};
}

class Python : public ::testing::Test {
 protected:
  void SetUp() override {
    const Ran ran = run_python(folder_, "import safetensors\n");
    if (ran.status != 0) GTEST_SKIP() << python() << " has no package safetensors: " << ran.output;
  }
  const Folder folder_{};
};

TEST_F(Python, ReadsWhatWeWrite) {
  const std::vector<NamedTensor> tensors = {{"a/u8", Tensor::of<std::uint8_t>({3}, {1, 2, 255})},
                                            {"b:bf16", Tensor::of<BFloat16>({1}, {BFloat16(1)})},
                                            {"c[0:2]", Tensor::of<float>({2, 1}, {1, -1})},
                                            {"ü\n", Tensor::of<bool>({1}, {true})},
                                            {"e", Tensor::scalar<std::int64_t>(-1)},
                                            {"empty", Tensor(DType::kFloat64, {0, 3})},
                                            {"f", Tensor::of<Float16>({1}, {Float16(1)})},
                                            {"g", Tensor::scalar<std::int32_t>(2)}};
  write_safetensors(folder_.path("ours"), tensors, {{"step", "3"}});
  const Ran ran = run_python(folder_, fmt::format(R"(import safetensors
data = open('{}', 'rb').read()
for name, t in sorted(safetensors.deserialize(data)):
  print(repr(name), t['dtype'], t['shape'], bytes(t['data']).hex())
)",
                                                  folder_.path("ours")));
  EXPECT_EQ(ran.output, R"('a/u8' U8 [3] 0102ff
'b:bf16' BF16 [1] 803f
'c[0:2]' F32 [2, 1] 0000803f000080bf
'e' I64 [] ffffffffffffffff
'empty' F64 [0, 3] 
'f' F16 [1] 003c
'g' I32 [] 02000000
'ü\n' BOOL [1] 01
)");
}

TEST_F(Python, WritesWhatWeRead) {
  if (run_python(folder_, "import numpy\n").status != 0) GTEST_SKIP() << "Python has no numpy";
  const Ran ran = run_python(folder_, fmt::format(R"(import numpy
from safetensors.numpy import save_file
save_file({{'x': numpy.array([[1, -1]], numpy.float32), 'y': numpy.array(-1, numpy.int64)}},
          '{}', {{'by': 'python'}})
)",
                                                  folder_.path("theirs")));
  ASSERT_EQ(ran.status, 0) << ran.output;
  const SafetensorsFile file(folder_.path("theirs"));
  EXPECT_EQ(file.metadata().at("by"), "python");
  EXPECT_EQ(file.read(file.tensor("x")).data<float>()[1], -1);
  EXPECT_EQ(file.read(file.tensor("x")).shape(), Shape({1, 2}));
  EXPECT_EQ(file.read(file.tensor("y")).item<std::int64_t>(), -1);
}

}  // namespace
}  // namespace paceline::testing

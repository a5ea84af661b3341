#include "checkpoint/checkpoint_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "base/testing/error_of.h"
#include "checkpoint/testing/folder.h"
#include "checkpoint/testing/sample_checkpoint.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CheckpointIndex, IsReadAsItWasWritten) {
  const CheckpointIndex index = sample_index(12, 3);
  EXPECT_EQ(CheckpointIndex::from_json(index.to_json(), "i"), index);
  EXPECT_EQ(CheckpointIndex::from_json(CheckpointIndex{0, {}, {}, {}, {}}.to_json(), "i").variables,
            std::vector<SavedVariable>{});
}

TEST(CheckpointIndex, IsRefusedWhenAnyByteWasChanged) {
  const std::string json = sample_index(12, 2).to_json();
  for (std::size_t i = 0; i < json.size(); ++i) {
    for (const char change : {1, 32}) {
      std::string changed = json;
      changed[i] = char(changed[i] ^ change);
      EXPECT_THAT(error_of([&] { CheckpointIndex::from_json(changed, "PATH"); }),
                  StartsWith("PATH"))
          << "byte " << i << " of\n"
          << changed;
    }
  }
}

TEST(CheckpointIndex, IsRefusedWhenALineIsMissingOrItsChecksumIs) {
  const std::string json = sample_index(12, 2).to_json();
  const std::size_t notes = json.find(" \"notes\""), files = json.find(" \"files\"");
  const std::string other = std::string(json).replace(notes, files - notes, " \"notes\": {},\n");
  EXPECT_THAT(error_of([&] { CheckpointIndex::from_json(other, "PATH"); }),
              HasSubstr("PATH: it was changed since it was written"));
  const std::string none = json.substr(0, json.rfind(",\n")) + "\n}\n";
  EXPECT_THAT(error_of([&] { CheckpointIndex::from_json(none, "PATH"); }),
              HasSubstr("it was changed since it was written"));
}

/// Returns the index in the form that Paceline 0.1.0 wrote.
std::string without_checksum(std::string json) {
  json.replace(json.find("\"version\": 2"), 12, "\"version\": 1");
  return json.substr(0, json.rfind(",\n")) + "\n}\n";
}

TEST(CheckpointIndex, OfTheVersionWithoutAChecksumIsRead) {
  const CheckpointIndex index = sample_index(12, 3);
  EXPECT_EQ(CheckpointIndex::from_json(without_checksum(index.to_json()), "i"), index);
}

TEST(CheckpointIndex, HasOneLineAVariable) {
  EXPECT_THAT(sample_index(12, 1).to_json(), HasSubstr(R"(
  {"name":"half","dtype":"bfloat16","shape":[2],"rule":"sgd","slots":[],"pieces":[{"file":"shard-0-of-1.safetensors","first_row":0,"rows":2}]},
)"));
}

TEST(CheckpointIndex, NamesTensorsAfterVariableRowsAndSlot) {
  const std::vector<SavedVariable> variables = sample_variables(2);
  const SavedVariable& split = variables[0];
  EXPECT_EQ(piece_tensor(split, split.pieces[1], 0),
            (TensorInfo{"embedding[5:10]", DType::kFloat32, {5, 3}}));
  EXPECT_EQ(piece_tensor(split, split.pieces[1], 2),
            (TensorInfo{"embedding[5:10]:v", DType::kFloat32, {5, 3}}));
  EXPECT_EQ(piece_tensor(variables[1], variables[1].pieces[0], 3),
            (TensorInfo{"bias:t", DType::kInt64, {1}}));
  EXPECT_EQ(piece_tensor(variables[3], variables[3].pieces[0], 0),
            (TensorInfo{"scale", DType::kFloat32, {}}));
}

TEST(CheckpointIndex, NamesTheNearestVariable) {
  EXPECT_THAT(error_of([] { sample_index(1, 1).variable("embeding"); }),
              HasSubstr("no variable 'embeding'; did you mean 'embedding'"));
}

struct BadIndex {
  std::string name, from, to;  // `from` is the text of a good index that `to` replaces
  std::string says;
};

void PrintTo(const BadIndex& bad, std::ostream* out) { *out << bad.name; }

class BadCheckpointIndex : public ::testing::TestWithParam<BadIndex> {};

TEST_P(BadCheckpointIndex, IsRefusedNamingWhatCannotBe) {
  std::string json = without_checksum(sample_index(12, 2).to_json());
  const std::size_t at = json.find(GetParam().from);
  ASSERT_NE(at, std::string::npos);
  json.replace(at, GetParam().from.size(), GetParam().to);
  EXPECT_THAT(error_of([&] { CheckpointIndex::from_json(json, "PATH"); }),
              AllOf(StartsWith("PATH"), HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    Texts, BadCheckpointIndex,
    ::testing::Values(
        BadIndex{"no_json", "\"version\"", "version", "line 3, column 2"},
        BadIndex{"twice", "\"version\"", "\"format\"", "\"format\" is there twice"},
        BadIndex{"other_format", "paceline checkpoint", "a report", "no checkpoint's index"},
        BadIndex{"newer", "\"version\": 1", "\"version\": 3", "version 3 of the index"},
        BadIndex{"no_step", "\"global_step\": 12", "\"step\": 12", "no \"global_step\""},
        BadIndex{"negative_step", "\"global_step\": 12", "\"global_step\": -12", "global_step"},
        BadIndex{"no_text", "\"sample\"", "1", "notes model: a text"},
        BadIndex{"no_list", "\"slots\":[]", "\"slots\":{}", "'half': \"slots\" is no list"},
        BadIndex{"dtype", "bfloat16", "bfloat17", "'half': dtype 'bfloat17'"},
        BadIndex{"shape", "[10,3]", "[10,-3]", "'embedding', shape"},
        BadIndex{"deep", "[10,3]", "[[[[[3]]]]]", "deep"},
        BadIndex{"checksum", "\"00000000\"", "\"0000000g\"", "crc32c '0000000g'"},
        BadIndex{"scalar", "\"scalar\":true", "\"scalar\":1", "\"scalar\" is neither"},
        BadIndex{"count_in_float", "\"int64\",\"scalar\"", "\"float32\",\"scalar\"",
                 "slot 't' is a count in float32"},
        BadIndex{"slot_twice", "\"name\":\"v\"", "\"name\":\"m\"", "slot 'm' is there twice"},
        BadIndex{"variable_twice", "\"half\"", "\"bias\"", "variable 'bias' is there twice"},
        BadIndex{"no_name", "\"half\"", "\"\"", "a variable without a name"},
        BadIndex{"rows_missing", "\"first_row\":5,\"rows\":5", "\"first_row\":6,\"rows\":4",
                 "'embedding': the piece of 4 rows from 6 does not follow row 5 of 10"},
        BadIndex{"rows_twice", "\"first_row\":5,\"rows\":5", "\"first_row\":4,\"rows\":6",
                 "'embedding': the piece of 6 rows from 4"},
        BadIndex{"rows_too_many", "\"first_row\":5,\"rows\":5", "\"first_row\":5,\"rows\":6",
                 "'embedding': the piece of 6 rows from 5"},
        BadIndex{"rows_too_few", "\"first_row\":5,\"rows\":5", "\"first_row\":5,\"rows\":4",
                 "'embedding': its pieces hold 9 of 10 rows"},
        BadIndex{"no_rows_of_a_scalar", "\"first_row\":0,\"rows\":1", "\"first_row\":0,\"rows\":0",
                 "'scale': the piece of 0 rows"},
        BadIndex{"unlisted_file", "\"pieces\":[{\"file\":\"shard-0", "\"pieces\":[{\"file\":\"s",
                 "'embedding': its file 's-of-2.safetensors' is not among"},
        BadIndex{"file_elsewhere", "\"file\":\"shard-0", "\"file\":\"../shard-0", "folder"},
        BadIndex{"unlisted_local", "\"file\":\"\"", "\"file\":\"x\"", "'worker:1': its file 'x'"},
        BadIndex{"task_twice", "worker:1", "worker:0", "task 'worker:0' is there twice"},
        BadIndex{"position", "\"epoch\":2", "\"epoch\":2.5", "'worker:0', position epoch"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace paceline::testing

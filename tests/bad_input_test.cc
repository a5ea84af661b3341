// Tests that mistakes in a user's input are refused with a message that says what is wrong and
// where, and mostly what to do; nothing else is printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kFailed = 1, kUsage = 2;

class BadInput : public ::testing::Test {
 protected:
  BadInput() {
    std::filesystem::create_directory(path("text"));
    for (const char* part : {"train", "valid", "test"}) write_text(part, sentences(50));
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  void write_text(const std::string& part, const std::string& text) const {
    write("text/ptb." + part + ".txt", text);
  }
  /// Returns `count` sentences of five words and an <eos>.
  static std::string sentences(int count, const std::string& unknown = "<unk>") {
    std::string text;
    for (int i = 0; i < count; ++i) text += "a b c " + unknown + " d\n";
    return text;
  }
  /// Trains the smallest ptb on the fixture's text.
  Finished train_ptb(std::vector<std::string> more) const {
    more.insert(more.begin(), {"train", "ptb", "--size", "test", "--data", path("text")});
    return run_paceline(more, std::chrono::seconds(120));
  }
  static void expect_refused(const Finished& run, int status,
                             const std::vector<std::string>& says) {
    EXPECT_EQ(run.status, status) << run.output;
    for (const std::string& text : says) EXPECT_THAT(run.output, HasSubstr(text));
    EXPECT_THAT(run.output, Not(HasSubstr("terminate called")));
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(BadInput, ATextThatIsEmptyIsNamed) {
  write_text("train", "");
  expect_refused(train_ptb({"--steps", "3"}), kFailed, {"ptb.train.txt holds no words"});
}

TEST_F(BadInput, ATextThatIsNoTextIsNamed) {
  write_text("valid", std::string("a b \0 c", 7));
  expect_refused(train_ptb({"--steps", "3"}), kFailed, {"ptb.valid.txt is not text", "zero byte"});
}

TEST_F(BadInput, AFolderInTheTextsPlaceIsNamed) {
  std::filesystem::remove(path("text/ptb.valid.txt"));
  std::filesystem::create_directory(path("text/ptb.valid.txt"));
  expect_refused(train_ptb({"--steps", "3"}), kFailed, {"ptb.valid.txt: Is a directory"});
}

TEST_F(BadInput, ATextThatIsMissingIsNamedWithTheCommandThatMakesOne) {
  std::filesystem::remove(path("text/ptb.test.txt"));
  expect_refused(train_ptb({"--steps", "3"}), kUsage,
                 {"holds no ptb.test.txt", "paceline data corpus --out DIR"});
  expect_refused(run_paceline({"train", "ptb", "--data", path("nowhere")}), kUsage,
                 {"nowhere: there is no such folder", "paceline data corpus --out DIR"});
}

TEST_F(BadInput, UnknownTokensAreCountedAndReadAsUnk) {
  write_text("valid", sentences(50) + "a zebra and a yak\n");
  const Finished run = train_ptb({"--batch", "2", "--epochs", "1"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.output, HasSubstr("ptb.valid.txt: 3 of 306 tokens are not among the 6 words of "
                                    "the vocabulary and are read as <unk>"));
}

TEST_F(BadInput, AnUnknownTokenIsRefusedWhereTheVocabularyHasNoUnk) {
  for (const char* part : {"train", "valid", "test"}) write_text(part, sentences(50, "e"));
  write_text("valid", sentences(50, "e") + "a zebra\n");
  expect_refused(train_ptb({"--steps", "3"}), kFailed,
                 {"ptb.valid.txt:51: 'zebra' is not among the 6 words", "neither is <unk>"});
}

TEST_F(BadInput, ATextShorterThanOneBatchIsNamedWithWhatWouldHelp) {
  expect_refused(train_ptb({"--batch", "200"}), kFailed,
                 {"ptb.train.txt: a text of 300 words gives no batch of 200 rows of 2", "--batch"});
  expect_refused(train_ptb({"--batch", "100", "--ps", "1", "--workers", "2", "--steps", "3"}),
                 kFailed, {"a text of 150 words gives no batch of 100 rows of 2", "--workers"});
}

TEST_F(BadInput, AnEpochOfFewerThanTenBatchesIsTrained) {
  const Finished run = train_ptb({"--batch", "25", "--epochs", "3"});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, AllOf(HasSubstr("Epoch: 3 Valid Perplexity: "),
                                HasSubstr("Test Perplexity: "), HasSubstr("15 global steps")));
}

TEST_F(BadInput, AnEpochOfOneBatchIsTrained) {
  const Finished run = train_ptb({"--batch", "100", "--epochs", "2"});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("Epoch: 2 Train Perplexity: "));
}

TEST_F(BadInput, AReportThatCannotBeWrittenIsRefusedBeforeTheFirstStep) {
  const std::vector<std::string> train = {"train",   "mlp", "--hidden", "8",
                                          "--steps", "3",   "--report"};
  for (const std::string& place : {path("nowhere/report.json"), path("text")}) {
    std::vector<std::string> words = train;
    words.push_back(place);
    const Finished run = run_paceline(words);
    expect_refused(run, kUsage, {"--report " + place});
    EXPECT_THAT(run.output, Not(HasSubstr("global steps")));
  }
}

TEST_F(BadInput, AReportThatIsNoneIsNamed) {
  write("empty.json", "");
  write("torn.json", R"({"paceline": "0.1.0", "model": "ml)");
  write("other.json", "[1, 2]");
  for (const char* file : {"empty.json", "torn.json", "other.json"}) {
    expect_refused(run_paceline({"compare", path(file), path(file)}), kFailed,
                   {path(file), "not a report: "});
  }
  for (const char* file : {"empty.json", "torn.json"}) {
    expect_refused(run_paceline({"compare", path(file), path(file)}), kFailed,
                   {"not a report: no JSON at line "});
  }
  expect_refused(run_paceline({"compare", path("text"), path("text")}), kFailed,
                 {"no report at " + path("text") + "/report.json"});
  expect_refused(run_paceline({"compare", path("no.json"), path("no.json")}), kFailed,
                 {"no report at " + path("no.json")});
}

// A file from a stranger must not clear the screen or type commands when its text is printed.
TEST_F(BadInput, NoCommandTakesATerminalsCommandsFromAFile) {
  const std::string use = R"("use": {"cores": 1, "network_bytes_per_s": {"sent": 1, "received": 1},
    "disk_bytes_per_s": {"read": 0, "written": 0}, "peak_memory_bytes": 1})";
  const std::string task = R"({"task": "worker:0\u001b[2J", "steps": 100, "seconds": 5,
    "steps_per_s": 20, "examples_per_s": 20, "unit": "\u001b[2J", "share": {"\u001b[2J": 1},
    "step_ms": {"p50": 1, "p99": 1}, "hidden_ms": 0, )" +
                           use + "}";
  const std::string report = R"({"model": "\u001b[2J", "strategy": "\u009b2J", "tasks": [)" + task +
                             R"(], "loss": {"first": 2, "last": 1}, "command": "\u001b[2J")";
  write("report.json", report + "}");
  write("failed.json", report + R"(, "error": "\u001b[2J"})");
  const std::string header =
      R"({"a\u001b[2J": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})";
  write("a.safetensors",
        std::string({char(header.size()), 0, 0, 0, 0, 0, 0, 0}) + header + std::string(4, '\0'));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"explain", path("report.json")},
           {"explain", path("failed.json")},
           {"explain", path("report.json"), "--what-if", "workers=2"},
           {"compare", path("report.json"), path("report.json")},
           {"compare", path("report.json"), path("failed.json")},
           {"top", path("report.json")},
           {"top", path("failed.json")},
           {"inspect", path("a.safetensors")},
           {"inspect", path("a.safetensors"), "--only", "nothing"}}) {
    const Finished run = run_paceline(words);
    EXPECT_FALSE(run.output.empty()) << words[0];
    EXPECT_THAT(run.output, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b")))) << words[0];
    EXPECT_THAT(run.output, Not(HasSubstr("cannot use"))) << words[0];
  }
}

TEST_F(BadInput, ACorpusIsNotWrittenOverAFile) {
  write("file", "mine");
  expect_refused(run_paceline({"data", "corpus", "--out", path("file")}), kUsage,
                 {"--out " + path("file")});
  std::ifstream file(path("file"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
}

TEST_F(BadInput, ACorpusDoesNotReplaceATextThatIsThere) {
  std::filesystem::create_directory(path("texts"));
  write("texts/ptb.valid.txt", "mine");
  expect_refused(run_paceline({"data", "corpus", "--out", path("texts")}), kUsage,
                 {"--out " + path("texts"), "ptb.valid.txt is there already"});
  EXPECT_FALSE(std::filesystem::exists(path("texts/ptb.train.txt")));
}

TEST_F(BadInput, EmulatedHostsWithoutAWorkerAreRefused) {
  expect_refused(
      run_paceline({"train", "mlp", "--ps", "1", "--workers", "1", "--lab-place", "ps/ps"}), kUsage,
      {"--lab-place ps/ps: has no worker: a host with one is 1, as in ps/1"});
}

/// Returns the bytes of a file with this header, and 16 bytes of data.
std::string safetensors(const std::string& header) {
  std::string bytes(8, '\0');
  bytes[0] = char(header.size());
  return bytes + header + std::string(16, '\0');
}

TEST_F(BadInput, ASafetensorsFileThatLiesIsRefusedNamingTheTensor) {
  const std::string a = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)";
  struct Lie {
    std::string tensor, says;
  };
  for (const Lie& lie : {Lie{R"("b":{"dtype":"F32","shape":[3],"data_offsets":[4,16]}})", "b"},
                         Lie{R"("b":{"dtype":"F32","shape":[3],"data_offsets":[8,16]}})", "b"},
                         Lie{R"("b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}})", "b"},
                         Lie{R"("b":{"dtype":"F32","shape":[2],"data_offsets":[16,8]}})", "b"}}) {
    write("lie.safetensors", safetensors(a + lie.tensor));
    expect_refused(run_paceline({"inspect", path("lie.safetensors")}), kFailed,
                   {path("lie.safetensors"), "'" + lie.says + "'"});
  }
}

TEST_F(BadInput, ACheckpointThatIsTruncatedEmptyOrMissingIsNamed) {
  const std::string whole =
      safetensors(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})");
  write("whole.safetensors", whole);
  EXPECT_EQ(run_paceline({"inspect", path("whole.safetensors")}).status, 0);
  for (const std::size_t bytes :
       {std::size_t(0), std::size_t(7), whole.size() / 2, whole.size() - 1}) {
    write("cut.safetensors", whole.substr(0, bytes));
    expect_refused(run_paceline({"inspect", path("cut.safetensors")}), kFailed,
                   {path("cut.safetensors")});
  }
  expect_refused(run_paceline({"inspect", path("text")}), kFailed, {"no checkpoint in"});
  expect_refused(run_paceline({"inspect", path("nowhere")}), kFailed, {path("nowhere")});
}

}  // namespace
}  // namespace paceline::testing

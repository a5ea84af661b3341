// Tests bench/compare with programs that only print, in place of Paceline and the peer.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;

class ComparePeers : public ::testing::Test {
 protected:
  /// Writes a shell script, and returns its path.
  std::string script(const std::string& name, const std::string& text) const {
    std::string path = folder_.path(name);
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), S_IRWXU);
    return path;
  }

  // Returns a program that reports 200 examples/s in its first run, 400 in its second and 600 in
  // its third.
  std::string growing_paceline() const {
    return script("paceline",
                  "[ \"$1\" = train ] || exit 1\n"
                  "echo \"$@\" >> " +
                      folder_.path("calls") +
                      "\n"
                      "n=$(wc -l < " +
                      folder_.path("calls") +
                      ")\n"
                      "for report; do :; done\n"
                      "echo '{\"total\": {\"examples_per_s\": '$((n * 200))'}}' > $report");
  }

  Finished compare(std::vector<std::string> arguments) const {
    std::vector<std::string> words = {std::string(PACELINE_SOURCE) + "/bench/compare"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Process process(words);
    const int status = process.wait_exit(std::chrono::seconds(120));
    return {status, process.output()};
  }

  TemporaryFolder folder_;
};

TEST_F(ComparePeers, PrintsTheMedianOfTheRatiosOfPairs) {
  const std::string peer =
      script("peer", R"(echo '{"version": "9", "total_examples_per_s": 100}')");
  const Finished run =
      compare({"mlp", "--peer", "torch", "--pairs", "3", "--no-roof", "--workers", "2", "--ps", "1",
               "--paceline", growing_paceline(), "--peer-program", peer, "--json",
               folder_.path("out.json"), "--no-fused-update"});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("mlp, examples/s: Paceline 400.0 (300.0–500.0), torch 9 100.0 "
                                    "(100.0–100.0); ratio 4.000 (3.000–5.000)"));
  const auto json = nlohmann::json::parse(std::ifstream(folder_.path("out.json")));
  EXPECT_EQ(json["results"]["examples/s"]["ratio"]["median"], 4);
  EXPECT_EQ(json["results"]["examples/s"]["pairs"].size(), 3u);
  std::string call;
  std::ifstream calls(folder_.path("calls"));
  std::getline(calls, call);
  EXPECT_THAT(call, HasSubstr("train mlp --ps 1 --workers 2 --seconds 8 --no-fused-update"));
}

TEST_F(ComparePeers, CollectivesAreComparedSizeBySizeOverSharedMemory) {
  const std::string paceline = script(
      "paceline",
      "for file; do :; done\n"
      "echo '{\"figures\": [{\"name\": \"4 KB between 2, shm\", \"unit\": \"us\", \"value\": "
      "{\"median\": 30}}, {\"name\": \"4 KB between 2, tcp\", \"unit\": \"us\", \"value\": "
      "{\"median\": 90}}]}' > $file");
  const std::string peer =
      script("peer", R"(echo '{"version": "9", "collectives": {"4 KB between 2": {"us": 120}}}')");
  const Finished run = compare({"collectives", "--peer", "torch", "--pairs", "1", "--no-roof",
                                "--paceline", paceline, "--peer-program", peer});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("collectives, us, 4 KB between 2: Paceline 30.0 (30.0–30.0), "
                                    "torch 9 120.0 (120.0–120.0); ratio 0.250"));
  EXPECT_THAT(compare({"collectives", "--peer", "jax", "--paceline", paceline}).output,
              HasSubstr("--peer jax has no all-reduce alone"));
}

// With the peer "alone", the comparison shows what a cluster, or a flag, costs or gains.
TEST_F(ComparePeers, AloneIsPacelineItselfInOneProcess) {
  const std::string flag = "--no-fused-update";
  const Finished run = compare({"mlp", "--peer", "alone", "--pairs", "1", "--no-roof", "--workers",
                                "4", "--ps", "1", "--threads", "2", "--peer-threads", "1", "--link",
                                "tcp", "--peer-flags=" + flag, "--paceline", growing_paceline()});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("mlp, examples/s: Paceline 200.0 (200.0–200.0), alone 400.0 "
                                    "(400.0–400.0); ratio 0.500"));
  std::string ours, alone;
  std::ifstream calls(folder_.path("calls"));
  std::getline(calls, ours);
  std::getline(calls, alone);
  EXPECT_THAT(ours, HasSubstr("train mlp --ps 1 --workers 4 --threads 2 --seconds 8 --link tcp "
                              "--report"));
  EXPECT_THAT(alone,
              HasSubstr("train mlp --threads 2 --seconds 8 --threads 1 " + flag + " --report"));
}

// Work that only one side would do, such as evaluations, is left out.
TEST_F(ComparePeers, OfImagesTrainsWithoutEvaluations) {
  const std::string peer = script("peer", "echo \"$@\" > " + folder_.path("peer_call") +
                                              R"(; echo '{"total_examples_per_s": 100}')");
  const Finished run =
      compare({"resnet", "--depth", "32", "--peer", "torch", "--pairs", "1", "--no-roof", "--data",
               "some/images", "--paceline", growing_paceline(), "--peer-program", peer});
  ASSERT_EQ(run.status, 0) << run.output;
  std::string ours, theirs;
  std::ifstream calls(folder_.path("calls")), peer_call(folder_.path("peer_call"));
  std::getline(calls, ours);
  std::getline(peer_call, theirs);
  EXPECT_THAT(ours, HasSubstr("train resnet --depth 32 --seconds 8 --data some/images --set "
                              "evaluate_every=0 --report"));
  EXPECT_EQ(theirs, "resnet --depth 32 --seconds 8");
}

// The two programs take turns at being first, since the second finds the machine as the first has
// left it.
TEST_F(ComparePeers, TakesTurnsAtBeingFirst) {
  const std::string order = folder_.path("order");
  const std::string paceline = script("paceline", "echo ours >> " + order + R"(
for report; do :; done
echo '{"total": {"examples_per_s": 1}}' > $report)");
  const std::string peer = script("peer", "echo theirs >> " + order + R"(
echo '{"total_examples_per_s": 1}')");
  const Finished run = compare({"mlp", "--peer", "torch", "--pairs", "2", "--no-roof", "--paceline",
                                paceline, "--peer-program", peer});
  ASSERT_EQ(run.status, 0) << run.output;
  std::ifstream lines(order);
  std::string first, second, third, fourth;
  lines >> first >> second >> third >> fourth;
  EXPECT_EQ(first + " " + second + " " + third + " " + fourth, "ours theirs theirs ours");
}

TEST_F(ComparePeers, OfFetchComparesWhatIsAddedShapeByShape) {
  const std::string paceline = script("paceline", R"(for report; do :; done
echo '{"fetch": [{"shape": "1,2,3", "added_us": 5}, {"shape": "4,5,6", "added_us": 3}]}' > $report)");
  const std::string peer = script(
      "peer",
      R"(echo '{"fetch": [{"shape": "4,5,6", "added_us": 30}, {"shape": "1,2,3", "added_us": 10}]}')");
  const Finished run = compare({"fetch", "--peer", "tensorflow", "--pairs", "1", "--no-roof",
                                "--paceline", paceline, "--peer-program", peer});
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("added us, 1,2,3: Paceline 5.0"));
  EXPECT_THAT(run.output, HasSubstr("ratio 0.500"));
  EXPECT_THAT(run.output, HasSubstr("ratio 0.100"));
}

TEST_F(ComparePeers, SaysWhatFailed) {
  const std::string failing = script("peer", "echo no library >&2; exit 3");
  const Finished run = compare({"mlp", "--peer", "jax", "--no-roof", "--paceline",
                                growing_paceline(), "--peer-program", failing});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("no library"));
}

TEST_F(ComparePeers, RefusesWhatAPeerCannot) {
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& why) {
    const Finished run = compare(arguments);
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(run.output, HasSubstr(why));
  };
  refused({"mlp", "--peer", "mxnet"}, "mxnet");
  refused({"mlp", "--peer", "jax", "--ps", "1"}, "--peer jax runs in one process");
  refused({"cifar10", "--peer", "jax"}, "--peer jax has no cifar10");
  refused({"fetch", "--peer", "torch"}, "has no fetch");
  refused({"fetch", "--peer", "alone"}, "has no fetch");
  refused({"mlp", "--peer", "alone", "--peer-program", "x"}, "not one of --peer-program");
  refused({"mlp", "--peer", "torch", "--pairs", "0"}, "--pairs");
  refused({"mlp", "--peer", "torch", "--paceline", "/nowhere"}, "--paceline /nowhere: there is no");
}

}  // namespace
}  // namespace paceline::testing

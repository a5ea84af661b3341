// Tests checkpoints as users meet them: resumed bit for bit, refused, on a full disk, after Ctrl-C
// and after kill -9.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

const Words kMlp = {"train", "mlp",       "--hidden", "48",    "--batch",
                    "16",    "--threads", "1",        "--set", "print_every=10"};
const Words kOnePs = {"--ps", "1", "--workers", "1"}, kTwoPs = {"--ps", "2", "--workers", "1"};

void flip_last_byte(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const int byte = file.get();
  file.seekp(-1, std::ios::end);
  file.put(char(byte ^ 0xff));
}

class Saving : public ::testing::Test {
 protected:
  std::string out() const { return folder_.path("out"); }
  std::string checkpoint(int step) const {
    return out() + "/checkpoints/step-" + std::to_string(step);
  }
  std::string run(const Words& words, int status = 0) {
    const Finished finished = run_paceline(words);
    EXPECT_EQ(finished.status, status) << finished.output;
    return finished.output;
  }
  /// Returns the report of an uninterrupted run of `steps` steps.
  json unbroken(const Words& words, int steps) {
    run(join({words, {"--steps", std::to_string(steps), "--report", folder_.path("whole")}}));
    return json::parse(std::ifstream(folder_.path("whole")));
  }
  /// Returns the report of the same run, interrupted at a step and resumed, perhaps as another
  /// cluster.
  json cut(const Words& words, int at, int steps, const Words& before, const Words& after) {
    std::filesystem::remove_all(out());
    const std::string saved =
        run(join({words, before, {"--steps", std::to_string(at), "--out", out()}}));
    EXPECT_THAT(saved, HasSubstr("Saving model to " + checkpoint(at)));
    const std::string resumed =
        run(join({words, after, {"--steps", std::to_string(steps), "--out", out(), "--resume"}}));
    EXPECT_THAT(resumed, HasSubstr("Goes on from step " + std::to_string(at)));
    return json::parse(std::ifstream(out() + "/report.json"));
  }
  /// Generates a corpus that has some hundred steps of the size "test" in an epoch. Returns the
  /// words that train on it.
  Words ptb() {
    run({"data", "corpus", "--out", folder_.path("corpus"), "--words", "20000"});
    return {
        "train",          "ptb",       "--size", "test", "--data", folder_.path("corpus"), "--set",
        "vocabulary=500", "--threads", "1"};
  }
  TemporaryFolder folder_;
};

/// Returns the words quoted for a shell, with a space before each.
std::string quoted(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += " '" + word + "'";
  return text;
}

Words to_step_40(const std::string& out) {
  return join({kMlp, {"--steps", "40", "--out", out, "--resume", "--save-every", "5"}});
}

TEST_F(Saving, MlpGoesOnBitForBitInEveryCluster) {
  const json whole = unbroken(kMlp, 60);
  const std::vector<std::pair<Words, Words>> shapes = {
      {{}, {}}, {kOnePs, kOnePs}, {kTwoPs, kOnePs}};
  for (const auto& [before, after] : shapes) {
    EXPECT_EQ(cut(kMlp, 25, 60, before, after)["loss"]["last"], whole["loss"]["last"]);
  }
}

TEST_F(Saving, PtbGoesOnAfterAsManyWordsWithOtherBatches) {
  const Words words = ptb();
  run(join({words, {"--steps", "100", "--out", out()}}));
  const std::string resumed =
      run(join({words, {"--steps", "110", "--out", out(), "--resume", "--batch", "10"}}));
  EXPECT_THAT(resumed, HasSubstr("saved with batch 20 and unroll 2, this run has 10 and 2: it goes "
                                 "on after as many words, at batch 200 of epoch 1"));
  EXPECT_THAT(resumed, HasSubstr("begins anew: it is float32 (20,2) in the checkpoint and float32 "
                                 "(10,2) here"));
}

// The checkpoint has the state of the LSTM and, in the middle of an epoch, the sums of the
// perplexity.
TEST_F(Saving, PtbGoesOnBitForBitInEveryCluster) {
  const Words words = ptb();
  const json whole = unbroken(words, 700);
  const std::vector<std::pair<Words, Words>> shapes = {{{}, {}}, {kOnePs, kOnePs}};
  for (const auto& [before, after] : shapes) {
    for (const int at : {130, 650}) {
      const json resumed = cut(words, at, 700, before, after);
      EXPECT_EQ(resumed["loss"]["last"], whole["loss"]["last"]) << at;
      EXPECT_EQ(resumed["perplexity"]["train"], whole["perplexity"]["train"]) << at;
    }
  }
}

TEST_F(Saving, WhileTrainingGoesOnEveryCheckpointIsOfOneStep) {
  const json whole = unbroken(kMlp, 80);
  run(join(
      {kMlp, kOnePs, {"--steps", "60", "--out", out(), "--save-every", "7", "--keep", "100"}}));
  int resumed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(out() + "/checkpoints")) {
    const std::string other = folder_.path("other");
    std::filesystem::remove_all(other);
    std::filesystem::create_directories(other + "/checkpoints");
    std::filesystem::copy(entry.path(), other + "/checkpoints/" + entry.path().filename().string());
    run(join({kMlp, {"--steps", "80", "--out", other, "--resume"}}));
    const json report = json::parse(std::ifstream(other + "/report.json"));
    EXPECT_EQ(report["loss"]["last"], whole["loss"]["last"]) << entry.path();
    ++resumed;
  }
  EXPECT_GT(resumed, 1);
}

TEST_F(Saving, KeepsTheLastOnesAndRefusesThemWithoutAWord) {
  run(join({kMlp, {"--steps", "40", "--out", out(), "--keep", "1", "--save-every", "5"}}));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(40)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out() + "/checkpoints"), {}), 1);
  const Words again = join({kMlp, {"--steps", "50", "--out", out()}});
  EXPECT_THAT(run(again, 2), HasSubstr("checkpoint of step 40"));
  EXPECT_THAT(run(join({again, {"--overwrite"}})), HasSubstr("deleted the checkpoint of step 40"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(50)));
}

TEST_F(Saving, OverwritesOnlyOnceItIsSureToBegin) {
  run(join({kMlp, {"--steps", "5", "--out", out()}}));
  const Words anew = join({kMlp, {"--steps", "3", "--out", out(), "--overwrite"}});
  const Words from_it = join({anew, {"--init-from", out()}});
  run(join({from_it, {"--init-only", "layr*"}}), 2);
  EXPECT_TRUE(std::filesystem::exists(checkpoint(5)));
  EXPECT_THAT(run(from_it), HasSubstr("variables begin with the values in " + checkpoint(5)));
  EXPECT_FALSE(std::filesystem::exists(checkpoint(5)));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(3)));
}

TEST_F(Saving, AResumedRunSaysHowFarItIsAndWhetherThereWasAnythingToDo) {
  run(join({kMlp, kOnePs, {"--steps", "10", "--out", out()}}));
  const Words on = join({kMlp, {"--steps", "15", "--out", out(), "--resume"}});
  EXPECT_THAT(run(join({on, kOnePs})), HasSubstr("\n15 global steps, 5 of them in this run\n"));
  for (const Words& cluster : {Words(), kOnePs}) {
    const std::string output = run(join({on, cluster}));
    EXPECT_THAT(output,
                HasSubstr("Global step 15 is reached (--steps 15): there is no step to make"));
    EXPECT_THAT(output, Not(HasSubstr("Saving model")));
  }
}

TEST_F(Saving, ARunThatDoesNotBeginLeavesTheReportAsItIs) {
  run(join({kMlp, {"--steps", "10", "--out", out()}}));
  const json report = json::parse(std::ifstream(out() + "/report.json"));
  const Words other = {"train", "mlp", "--hidden", "32", "--steps", "20", "--out", out()};
  for (const Words& cluster : {Words(), kOnePs}) {
    run(join({other, {"--resume"}, cluster}), 1);
    run(join({other, {"--overwrite", "--init-from", out()}, cluster}), 1);
    EXPECT_EQ(json::parse(std::ifstream(out() + "/report.json")), report);
  }
}

TEST_F(Saving, PassesOverATornOne) {
  run(join({kMlp, {"--steps", "20", "--out", out()}}));
  run(join({kMlp, {"--steps", "30", "--out", out(), "--resume"}}));
  std::filesystem::resize_file(checkpoint(30) + "/shard-0-of-1.safetensors", 1000);
  const std::string output = run(join({kMlp, {"--steps", "40", "--out", out(), "--resume"}}));
  EXPECT_THAT(output, HasSubstr("not whole: " + checkpoint(30)));
  EXPECT_THAT(output, HasSubstr("Goes on from step 20"));
}

// The corrupt checkpoint has the right size, and only a resume reads all its bytes.
TEST_F(Saving, ACorruptOneIsNotTakenForTheNewestLater) {
  run(join({kMlp, {"--steps", "20", "--out", out()}}));
  run(join({kMlp, {"--steps", "30", "--out", out(), "--resume"}}));
  flip_last_byte(checkpoint(30) + "/shard-0-of-1.safetensors");
  const Words resumed = join({kMlp, {"--out", out(), "--resume", "--keep", "1"}});
  EXPECT_THAT(run(join({resumed, {"--steps", "25"}})), HasSubstr("Goes on from step 20"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(25)));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(30) + ".torn"));
  EXPECT_THAT(run(join({resumed, {"--steps", "30"}})), HasSubstr("Goes on from step 25"));
  EXPECT_THAT(run(join({resumed, {"--steps", "31"}})), HasSubstr("Goes on from step 30"));
}

TEST_F(Saving, InitialValuesPassOverACorruptOneAndSayIt) {
  run(join({kMlp, {"--steps", "20", "--out", out()}}));
  run(join({kMlp, {"--steps", "30", "--out", out(), "--resume"}}));
  flip_last_byte(checkpoint(30) + "/shard-0-of-1.safetensors");
  const Words from = join({kMlp, {"--steps", "1", "--init-from"}});
  EXPECT_THAT(run(join({from, {out()}})),
              AllOf(HasSubstr("passes over a checkpoint that is not whole: " + checkpoint(30)),
                    HasSubstr("begin with the values in " + checkpoint(20))));
  EXPECT_THAT(run(join({from, {checkpoint(30)}}), 1), HasSubstr("CRC-32C"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(30)));
}

TEST_F(Saving, OfAnotherModelIsRefusedNamingWhatDiffers) {
  run(join({kMlp, {"--steps", "5", "--out", out()}}));
  const std::string output =
      run(join({kMlp, {"--hidden", "40", "--steps", "9", "--out", out(), "--resume"}}), 1);
  EXPECT_THAT(output, HasSubstr("layer1/w: (256,48) float32, adam"));
  EXPECT_THAT(output, HasSubstr("(256,40) float32, adam"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint(5)));
}

TEST_F(Saving, InitialValuesComeFromPartOfACheckpoint) {
  run(join({kMlp, {"--steps", "5", "--out", out()}}));
  const Words deeper = join({kMlp, {"--set", "layers=3", "--steps", "3", "--init-from", out()}});
  EXPECT_THAT(run(deeper, 1), HasSubstr("layer4/b: only in the model"));
  EXPECT_THAT(run(join({deeper, {"--init-only", "layer1/*", "--init-only", "layer2/*"}})),
              HasSubstr("4 of 8 variables begin with the values in " + checkpoint(5)));
  EXPECT_THAT(run(join({deeper, {"--init-only", "layr*"}}), 2), HasSubstr("layer1/w"));
  EXPECT_THAT(run(join({kMlp, {"--init-from", folder_.path("no")}}), 2),
              HasSubstr(folder_.path("no") + ": there is no such file or folder"));
}

TEST_F(Saving, WithoutAFolderItSaysThatNothingIsWritten) {
  EXPECT_THAT(run(join({kMlp, {"--steps", "2"}})), HasSubstr("No --out: nothing is written."));
}

TEST_F(Saving, CtrlCSavesAndSaysHowToGoOn) {
  for (const Words& cluster : {Words{}, kOnePs}) {
    std::filesystem::remove_all(out());
    Process training(paceline_words(
        join({kMlp, cluster, {"--steps", "1000000000", "--out", out(), "--overwrite"}})));
    ASSERT_TRUE(training.wait_for("Step: 20 ", seconds(60))) << training.output();
    training.signal(SIGINT);
    EXPECT_EQ(training.wait_exit(seconds(60)), 130) << training.output();
    std::smatch go_on;
    const std::regex pattern("to go on from step (\\d+): (\\S+) train mlp .* --resume");
    ASSERT_TRUE(std::regex_search(training.output(), go_on, pattern)) << training.output();
    const std::string step = go_on[1];
    EXPECT_THAT(training.output(),
                HasSubstr("Saving model to " + out() + "/checkpoints/step-" + step));
    EXPECT_THAT(go_on[0].str(), Not(HasSubstr("--overwrite")));
    EXPECT_THAT(run(join({kMlp, cluster, {"--steps", "1", "--out", out(), "--resume"}})),
                HasSubstr("Goes on from step " + step));
  }
}

TEST_F(Saving, TheStopOfAPsMakesTheChiefSave) {
  const std::string spec = "ps=" + free_address() + ";worker=" + free_address();
  const auto words = [&](const std::string& task) {
    return paceline_words(
        join({kMlp, {"--cluster", spec, "--task", task, "--steps", "1000000000", "--out", out()}}));
  };
  Process ps(words("ps:0")), chief(words("worker:0"));
  ASSERT_TRUE(chief.wait_for("Step: 20 ", seconds(60))) << chief.output();
  ps.signal(SIGTERM);
  EXPECT_EQ(chief.wait_exit(seconds(60)), 130) << chief.output();
  EXPECT_THAT(chief.output(), HasSubstr("Saving model to"));
  EXPECT_EQ(ps.wait_exit(seconds(60)), 130) << ps.output();
}

// A limit on the size of files stands in for a full disk: the checkpoint of this one process
// exceeds the limit.
TEST_F(Saving, AFullDiskLeavesTheOldCheckpointAndTrainingGoesOn) {
  run(join({kMlp, {"--steps", "10", "--out", out()}}));
  Process training(
      {"/bin/bash", "-c",
       "trap '' XFSZ; ulimit -f 20; exec" + quoted(paceline_words(to_step_40(out())))});
  EXPECT_EQ(training.wait_exit(seconds(120)), 1) << training.output();
  EXPECT_THAT(training.output(), HasSubstr("File too large"));
  EXPECT_THAT(training.output(), HasSubstr("the newest is " + checkpoint(10)));
  EXPECT_THAT(training.output(), HasSubstr("Step: 40 "));
  EXPECT_THAT(run(join({kMlp, {"--steps", "12", "--out", out(), "--resume"}})),
              HasSubstr("Goes on from step 10"));
}

TEST_F(Saving, WhatCannotBeWrittenAtTheEndFailsTheRun) {
  const auto on_full_disk = [&](const Words& words) {
    Process training(
        {"/bin/bash", "-c", "trap '' XFSZ; ulimit -f 0; exec" + quoted(paceline_words(words))});
    EXPECT_EQ(training.wait_exit(seconds(120)), 1) << training.output();
    return training.output();
  };
  for (const char* const flag : {"--report", "--timeline"}) {
    const std::string file = folder_.path("file.json");
    const std::string output = on_full_disk(join({kMlp, {"--steps", "15", flag, file}}));
    EXPECT_THAT(output, HasSubstr("15 global steps"));
    EXPECT_THAT(output, HasSubstr(file + " cannot be written: File too large"));
  }
  // Training of ptb ends where its data ends, and not at a number of steps.
  run({"data", "corpus", "--out", folder_.path("text"), "--words", "20000"});
  const Words ptb = {"train",    "ptb", "--size",  "test",  "--data", folder_.path("text"),
                     "--epochs", "1",   "--quiet", "--out", out()};
  EXPECT_THAT(on_full_disk(ptb), HasSubstr("paceline: error: "));
}

// Tasks share memory through files, to which a limit on the size of files would also apply. So
// these tasks get a small disk, of which all but 20 KB are used.
TEST_F(Saving, AFullDiskOfPsTasksLeavesTheOldCheckpointToo) {
  if (Process({"unshare", "-m", "true"}).wait_exit(seconds(20)) != 0) {
    GTEST_SKIP() << "needs root, to mount a disk of its own";
  }
  std::filesystem::create_directories(out());
  const std::string first = quoted(paceline_words(join({kMlp, {"--steps", "10", "--out", out()}})));
  const std::string second = quoted(paceline_words(join({to_step_40(out()), kOnePs})));
  const std::string third =
      quoted(paceline_words(join({kMlp, {"--steps", "12", "--out", out(), "--resume"}})));
  Process disk({"unshare", "-m", "/bin/bash", "-c",
                "mount -t tmpfs -o size=4m none " + out() + " && " + first + " && head -c 20000 " +
                    "/dev/zero > " + out() + "/small && ! cat /dev/zero > " + out() + "/filler " +
                    "&& rm " + out() + "/small; " + second + "; echo ended $?; rm " + out() +
                    "/filler; " + third});
  EXPECT_EQ(disk.wait_exit(seconds(120)), 0) << disk.output();
  EXPECT_THAT(disk.output(), HasSubstr("No space left on device"));
  EXPECT_THAT(disk.output(), HasSubstr("the newest is " + checkpoint(10)));
  EXPECT_THAT(disk.output(), HasSubstr("Step: 40 "));
  EXPECT_THAT(disk.output(), HasSubstr("ended 1"));
  EXPECT_THAT(disk.output(), HasSubstr("Goes on from step 10"));
}

// A restarted worker's own steps continue from the number that the ps has kept.
TEST_F(Saving, ARestartedWorkerGoesOnAtItsNextStep) {
  const std::string spec =
      "ps=" + free_address() + ";worker=" + free_address() + "," + free_address();
  const auto start = [&](const std::string& task) {
    return std::make_unique<Process>(
        paceline_words(join({kMlp, {"--cluster", spec, "--task", task, "--steps", "1000000000"}})));
  };
  const auto ps = start("ps:0");
  std::unique_ptr<Process> workers[] = {start("worker:0"), start("worker:1")};
  for (const int restarted : {1, 0}) {
    const std::string task = "worker:" + std::to_string(restarted);
    std::unique_ptr<Process>& worker = workers[restarted];
    ASSERT_TRUE(worker->wait_for("Step: 200 ", seconds(60))) << worker->output();
    worker->signal(SIGKILL);
    worker->wait_exit(seconds(60));
    ASSERT_TRUE(ps->wait_for("lost " + task, seconds(60))) << ps->output();
    worker = start(task);
    ASSERT_TRUE(worker->wait_for("Step: ", seconds(60))) << worker->output();
    ASSERT_TRUE(worker->wait_for_more("steps/sec", seconds(60)));
    std::smatch step;
    const std::string& output = worker->output();
    ASSERT_TRUE(std::regex_search(output, step, std::regex("Step: (\\d+) ")));
    EXPECT_GT(std::stoll(step[1]), 200) << output;
  }
}

TEST_F(Saving, TenRandomKillsLoseNothingThatWasAnnounced) {
  const std::string script = PACELINE_SOURCE "/scripts/kill_anything";
  Process killer(
      {script, "--times", "10", "--seed", "7", "--paceline", paceline_words({}).front()});
  EXPECT_EQ(killer.wait_exit(seconds(280)), 0) << killer.output();
}

}  // namespace
}  // namespace paceline::testing

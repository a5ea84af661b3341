// Tests scripts/make_reports_page and scripts/make_curves, with a gnuplot that only keeps its
// input, and a Paceline that only prints.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Pages : public ::testing::Test {
 protected:
  Pages() {
    script("gnuplot", "cat >> " + folder_.path("plots"));
    const char* path = getenv("PATH");
    setenv("PATH", (folder_.path() + ":" + path).c_str(), 1);
    path_ = path;
  }
  ~Pages() override { setenv("PATH", path_.c_str(), 1); }

  std::string script(const std::string& name, const std::string& text) const {
    std::string path = folder_.path(name);
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), S_IRWXU);
    return path;
  }

  static Finished run(const std::string& name, const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {std::string(PACELINE_SOURCE) + "/scripts/" + name};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Process process(words);
    const int status = process.wait_exit(std::chrono::seconds(120));
    return {status, process.output()};
  }

  std::string text_of_file(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(name)).rdbuf();
    return text.str();
  }

  TemporaryFolder folder_;
  std::string path_;
};

nlohmann::json figure(const std::string& name, double value, double bound, const std::string& limit,
                      const std::string& unit = "steps/s") {
  return {{"case", "reports"},
          {"name", name},
          {"unit", unit},
          {"value", {{"median", value}}},
          {"beside",
           {{"what", "bound (" + limit + ")"},
            {"value", {{"median", bound}}},
            {"ratio", {{"median", value / bound}}}}}};
}

std::string file_text(const nlohmann::json& figures) {
  return nlohmann::json{{"date", "2026-01-02"},
                        {"paceline", "0.1.0"},
                        {"machine", {{"processor", "a processor"}, {"cores", 2}}},
                        {"figures", figures}}
      .dump();
}

TEST_F(Pages, TheReportsHaveATableByClusterAndOneByShape) {
  nlohmann::json joining = figure("resnet, the slowest of 8 workers that start 5 s apart, 1 Gbit/s",
                                  2, 2.5, "the link of host 0");
  joining["series"] = {{{"name", "worker:0"}, {"points", {{0, 3}, {7, 2}}}},
                       {{"name", "bound"}, {"points", {{0, 3}, {5, 2.5}}}}};
  std::ofstream(folder_.path("some.json")) << file_text(
      {figure("mlp, one process", 60, 64, "the devices and their rules"),
       figure("ptb, one process", 26, 27, "the devices and their rules"),
       figure("fetch, 1 worker, 1600 us of computing a step", 620, 625, "the device", "batches/s"),
       figure("fetch, 2 workers, 800 us of computing a step", 900, 1250, "the device", "batches/s"),
       figure("cifar10, 1 device", 46, 47, "the devices and their rules"),
       figure("resnet, shape 4, 1 Gbit/s", 11, 23.1, "the link of host 0"), joining});
  std::ofstream(folder_.path("more.json"))
      << file_text({figure("resnet, shape 4, 1 Gbit/s", 22, 23.1, "the link of host 0"),
                    figure("resnet, shape 4, 1 Gbit/s, sync", 18, 24, "the device")});
  const Finished made =
      run("make_reports_page",
          {"--into", folder_.path(), folder_.path("some.json"), folder_.path("more.json")});
  ASSERT_EQ(made.status, 0) << made.output;
  const std::string page = text_of_file("reports.md");
  EXPECT_THAT(page, HasSubstr("| one process | 175 | 47 | 60 | 64 | 0.94 | the devices"));
  // If two files have the same row, the last file's counts.
  EXPECT_THAT(page, HasSubstr("| shape 4 | 3 | 23.1 | 22 (0.95) | 18 (0.75) |"));
  EXPECT_THAT(page, HasSubstr("up to 1 worker, 1600 µs of computing a step; not with 2 workers"));
  EXPECT_THAT(page, HasSubstr("reports-joining.svg"));
  EXPECT_THAT(text_of_file("plots"), HasSubstr("7 2\n"));
}

TEST_F(Pages, AReportWithoutRowsIsNamed) {
  std::ofstream(folder_.path("some.json")) << file_text(
      nlohmann::json::array({figure("mlp, one process", 60, 64, "the devices and their rules")}));
  const Finished made =
      run("make_reports_page", {"--into", folder_.path(), folder_.path("some.json")});
  EXPECT_EQ(made.status, 1);
  EXPECT_THAT(made.output, HasSubstr("there are no rows of ptb"));
}

class Curves : public Pages {
 protected:
  // A script that prints the perplexities 100 and 121 of two workers. Its report has one worker,
  // which made 100 million steps, and sent 10 bytes and received 5 in each.
  std::string paceline() const {
    return script("paceline", "echo \"$@\" >> " + folder_.path("calls") + R"(
for report; do :; done
echo 'worker:0 | Epoch: 1 Valid Perplexity: 100.0'
echo 'worker:1 | Epoch: 1 Valid Perplexity: 121.0'
echo '{"version": "0.1.0", "total": {"examples_per_s": 9000}, "perplexity": {"test": 111.5}, "tasks": [
  {"task": "worker:0", "steps": 100000000, "links": [{"to": "ps:0", "bytes_per_step": {"sent": 10, "received": 5}}]},
  {"task": "ps:0", "steps": 1}]}' > $report)");
  }
  Finished make(const std::string& paceline, const std::string& part) const {
    return run("make_curves", {"--data", folder_.path(), "--epochs", "1", "--part", part,
                               "--results", folder_.path("results"), "--into", folder_.path(),
                               "--paceline", paceline, "--", "--seed", "7"});
  }
  std::size_t calls() const {
    const std::string text = text_of_file("calls");
    return std::size_t(std::ranges::count(text, '\n'));
  }
};

TEST_F(Curves, HaveATableAndGoOnWhereTheyWere) {
  std::ofstream(folder_.path("strategies.md")) << "# Strategies\n\n<!-- curves -->\nolder\n";
  const Finished made = make(paceline(), "wires");
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, HasSubstr("0 runs are there, 7 to make"));
  EXPECT_EQ(calls(), 7u);
  EXPECT_THAT(text_of_file("calls"),
              AllOf(HasSubstr("--wire int8 --seed 7"), HasSubstr("--epochs 1")));
  EXPECT_THAT(
      text_of_file("strategies.md"),
      AllOf(HasSubstr("# Strategies\n\n<!-- curves -->\n## What is learnt"),
            Not(HasSubstr("older")), HasSubstr("| int8 | 110.00 | 1.0000 | 111.50 | 1.5 GB |")));
  EXPECT_THAT(text_of_file("curves.csv"), HasSubstr("wires,int8,2,1,110.000,111.500,,1.500,9000"));

  EXPECT_THAT(make(paceline(), "curves").output, HasSubstr("0 runs are there, 15 to make"));
  EXPECT_THAT(make(paceline(), "wires").output, HasSubstr("7 runs are there, 0 to make"));
  EXPECT_EQ(calls(), 7u + 15u);
  EXPECT_THAT(text_of_file("strategies.md"),
              AllOf(HasSubstr("| local_sgd, H = 20 | 4 | 110.00 | 111.50 |"),
                    HasSubstr("| int8 | 110.00 |")));
  EXPECT_THAT(text_of_file("plots"), HasSubstr("title '4 workers'"));
}

TEST_F(Curves, ARunThatFailsIsNamedAndMadeAgain) {
  std::ofstream(folder_.path("strategies.md")) << "# Strategies\n";
  const std::string failing = script("failing", "echo no room; exit 1");
  const Finished failed = make(failing, "wires");
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.output,
              AllOf(HasSubstr("wires: float32, 2 workers failed"), HasSubstr("no room")));
  EXPECT_EQ(make(paceline(), "wires").status, 0);
  EXPECT_EQ(calls(), 7u);
}

}  // namespace
}  // namespace paceline::testing

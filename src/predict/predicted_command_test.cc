// A command and its copies are this program again. Each has its part in $PACELINE_PREDICT.
#include "predict/predicted_command.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

#include "base/temporary_folder.h"
#include "base/text_file.h"
#include "checkpoint/input_file.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kCommandStatus = 7;

// As the command: asks for copies, and writes the answer to a file.
[[noreturn]] void be_the_command(const std::string& name, int copies, const std::string& file) {
  const CopiesAnswer answer = run_copies(name, copies);
  std::string text = answer.why;
  for (const StepPace& pace : answer.paces) {
    text += fmt::format("{} {};", pace.seconds, pace.busy_cores);
  }
  write_text_file("the answer", file, text);
  std::_Exit(kCommandStatus);
}

// As copy I: makes steps of I seconds.
[[noreturn]] void be_a_copy(const std::string& gate, const std::string& how) {
  const int number = std::atoi(gate.c_str() + gate.rfind('/') + 1);
  CopyAmongOthers among(gate);
  if (how == "fails" && number == 2) {
    for (int line = 1; line <= 9; ++line) fmt::print(stderr, "line {}\n", line);
    std::_Exit(3);
  }
  if (how == "ends" && number == 2) std::_Exit(0);
  if (!among.wait_for_others()) std::_Exit(1);
  if (how == "interrupts" && number == 2) kill(getppid(), SIGTERM);
  if (how != "interrupts") among.tell({.seconds = double(number), .busy_cores = 1});
  while (!among.is_over()) {
  }
  std::_Exit(0);
}

TEST(PredictedCommandPart, DISABLED_Play) {
  const char* const told = std::getenv("PACELINE_PREDICT");
  if (told == nullptr)
    GTEST_SKIP() << "only the tests below run this part, in a process of its own";
  std::istringstream words(told);
  std::string part, name, last;
  words >> part >> name >> last;
  if (part == "copy") be_a_copy(name, last);
  std::string file;
  words >> file;
  be_the_command(name, std::atoi(last.c_str()), file);
}

class PredictedCommandTest : public ::testing::Test {
 protected:
  ~PredictedCommandTest() override { ::unsetenv("PACELINE_PREDICT"); }

  ExitStatus run(int copies, const std::string& how = "paces") {
    const std::string name = std::filesystem::path(folder_.path()).filename();
    PredictedCommandOptions options;
    options.command = {"/proc/self/exe", "--gtest_filter=PredictedCommandPart.*",
                       "--gtest_also_run_disabled_tests"};
    options.name = name;
    options.predict = fmt::format("command {} {} {}", name, copies, file_);
    options.predict_of_copy = [=](int copy, int) {
      return fmt::format("copy {}/{} {}", name, copy, how);
    };
    options.within = within_;
    options.say = [&](const std::string& line) { said_ += line + "\n"; };
    return PredictedCommand(options).run();
  }
  std::string answer() const {
    return std::filesystem::exists(file_) ? read_text(file_, 1 << 20) : "no answer";
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.path("answer");
  std::optional<Duration> within_ = std::chrono::minutes(5);
  std::string said_;
};

TEST_F(PredictedCommandTest, TheCommandGetsThePaceOfEachCopy) {
  EXPECT_EQ(run(3).code, kCommandStatus);
  EXPECT_EQ(answer(), "1 1;2 1;3 1;");
  EXPECT_EQ(said_, "Runs 3 copies of the command at once, which slow each other\n");
}

TEST_F(PredictedCommandTest, ACopyThatFailsIsNamedWithItsLastLinesAndTheOthersAreStopped) {
  EXPECT_EQ(run(2, "fails").code, kCommandStatus);
  EXPECT_THAT(answer(), AllOf(HasSubstr("copy 2 of 2 that ran at once failed (exit status 3)"),
                              HasSubstr("\n  line 5\n  line 6"), HasSubstr("\n  line 9"),
                              Not(HasSubstr("line 4"))));
}

TEST_F(PredictedCommandTest, ACopyThatEndsBeforeItsStepsIsNamed) {
  EXPECT_EQ(run(2, "ends").code, kCommandStatus);
  EXPECT_THAT(answer(), HasSubstr("copy 2 of 2 ended before it had made its ten steps"));
}

TEST_F(PredictedCommandTest, CopiesThatTakeTooLongAreStopped) {
  within_ = Duration(0);
  EXPECT_EQ(run(2).code, kCommandStatus);
  EXPECT_THAT(answer(), HasSubstr("2 copies at once did not make their ten steps in time"));
}

// The signal also reaches the command, as it is not one of a terminal.
TEST_F(PredictedCommandTest, ASignalEndsTheCommandAndItsCopies) {
  EXPECT_EQ(run(2, "interrupts").signal, SIGTERM);
  EXPECT_EQ(answer(), "no answer");
}

TEST_F(PredictedCommandTest, ACommandThatCannotBeRunIsNamed) {
  PredictedCommandOptions options;
  options.command = {"no-such-program"};
  options.name = std::filesystem::path(folder_.path()).filename();
  EXPECT_THROW(PredictedCommand(options).run(), Error);
}

}  // namespace
}  // namespace paceline

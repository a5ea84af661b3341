// Tests `paceline server`, which serves one job after another, of any model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class Server : public ::testing::Test {
 protected:
  // The server waits for a dead worker for a second, and not for 30.
  Server()
      : process_(paceline_words(
            {"server", "--bind", address_, "--jobs", "3", "--reconnect-timeout", "1"})) {}

  Words job(const Words& model, const Words& more) const {
    Words words = {"train"};
    words.insert(words.end(), model.begin(), model.end());
    words.insert(words.end(), {"--threads", "1", "--ps-hosts", address_, "--existing-servers"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  const std::string address_ = free_address();
  Process process_;
  const Words mlp_ = {"mlp", "--hidden", "16", "--batch", "8"};
};

TEST_F(Server, ServesOneModelAfterTheOther) {
  const Finished mlp = run_paceline(job(mlp_, {"--workers", "2", "--steps", "40"}), seconds(60));
  EXPECT_EQ(mlp.status, 0) << mlp.output;
  EXPECT_THAT(mlp.output, HasSubstr("with existing servers, which stay: " + address_));
  const Words fetch_words = {"--workers", "1", "--steps", "5"};
  const Finished changing = run_paceline(job({"fetch"}, fetch_words), seconds(60));
  EXPECT_EQ(changing.status, 2) << changing.output;
  EXPECT_THAT(changing.output, HasSubstr("fetch needs --constant with --existing-servers"));
  const Finished fetch = run_paceline(job({"fetch", "--constant"}, fetch_words), seconds(60));
  EXPECT_EQ(fetch.status, 0) << fetch.output;
  const Finished again = run_paceline(job(mlp_, {"--workers", "1", "--steps", "12"}), seconds(60));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("12 global steps"));  // counted from 0
  EXPECT_EQ(process_.wait_exit(seconds(20)), 0) << process_.output();
  EXPECT_THAT(process_.output(), HasSubstr("its variables are forgotten"));
}

TEST(IdleServer, EndsWellWhenItIsToldTo) {
  Process server(paceline_words({"server", "--bind", free_address()}));
  ASSERT_TRUE(server.wait_for("listening on", seconds(20))) << server.output();
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait_exit(seconds(20)), 0) << server.output();
}

TEST_F(Server, AJobWaitsForTheOneThatIsServed) {
  Process first(paceline_words(job(mlp_, {"--workers", "1", "--cluster-id", "first"})));
  ASSERT_TRUE(first.wait_for("Step: ", seconds(60))) << first.output();
  Process second(
      paceline_words(job(mlp_, {"--workers", "1", "--cluster-id", "second", "--steps", "5"})));
  ASSERT_TRUE(second.wait_for("it serves job first", seconds(60))) << second.output();
  // When the workers of the first job die, the server begins to serve the second job.
  first.signal(SIGKILL);
  EXPECT_EQ(second.wait_exit(seconds(60)), 0) << second.output();
}

TEST_F(Server, WorkersCanBeProcessesOfTheirOwn) {
  const std::string workers = free_address() + "," + free_address();
  const auto worker = [&](const char* task) {
    return paceline_words(job(mlp_, {"--worker-hosts", workers, "--task", task, "--steps", "20"}));
  };
  Process other(worker("worker:1")), chief(worker("worker:0"));
  EXPECT_EQ(chief.wait_exit(seconds(60)), 0) << chief.output();
  EXPECT_EQ(other.wait_exit(seconds(60)), 0) << other.output();
  EXPECT_THAT(chief.output(), HasSubstr("uses existing servers, which stay: " + address_));
}

TEST(ServerUsage, SaysWhatIsMissing) {
  const Finished run = run_paceline({"server"}, seconds(20));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.output, HasSubstr("--bind is missing"));
  const Finished port = run_paceline({"server", "--bind", "0.0.0.0"}, seconds(20));
  EXPECT_EQ(port.status, 2);
  EXPECT_THAT(port.output, HasSubstr("the port is missing"));
}

}  // namespace
}  // namespace paceline::testing

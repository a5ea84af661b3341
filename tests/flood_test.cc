// Tests useless connections: hundreds that say nothing, a thousand a second that end at once, and a
// thousand a second that offer an unknown key. Training goes on, and the memory of the task that
// gets them stays bounded.
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "net/tls/secret_key.h"
#include "tests/memory_of.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;

constexpr int kSilent = 200, kPerBurst = 1000, kBursts = 3;
constexpr double kMostFloodMb = 64;

class Flood : public ::testing::TestWithParam<const char*> {
 protected:
  ~Flood() override {
    for (const int socket : silent_) close(socket);
  }
  std::unique_ptr<Process> start(const std::string& task) const {
    return std::make_unique<Process>(
        paceline_words({"train",   "mlp",       "--hidden",   "32",       "--batch",   "4",
                        "--steps", "100000000", "--strategy", GetParam(), "--cluster", spec_,
                        "--task",  task,        "--threads",  "1",        "--link",    "tcp",
                        "--tls",   "on",        "--key-file", key_file_}));
  }
  void connect_silently() {
    for (int i = 0; i < kSilent; ++i) silent_.push_back(connect_to(flooded_));
  }
  void connect_and_close() const {
    for (int i = 0; i < kPerBurst; ++i) close(connect_to(flooded_));
  }
  void offer_a_key() const {
    for (int i = 0; i < kPerBurst; ++i) {
      const int socket = connect_to(flooded_);
      EXPECT_EQ(::send(socket, hello_.data(), hello_.size(), MSG_NOSIGNAL), ssize_t(hello_.size()));
      close(socket);
    }
  }

  const TemporaryFolder folder_;
  const std::string key_file_ = write_key();
  const std::string hello_ = content_of(PACELINE_SOURCE "/tests/fuzz/corpus/tls/hello_with_a_key");
  std::string spec_, flooded_;

 private:
  std::string write_key() const {
    std::string path = folder_.path("key");
    std::ofstream(path) << SecretKey::make().text();
    ::chmod(path.c_str(), 0600);
    return path;
  }
  static std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::vector<int> silent_;
};

INSTANTIATE_TEST_SUITE_P(Strategies, Flood, ::testing::Values("async", "sync", "allreduce"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(Flood, OfConnectionsHoldsNobodyUpAndTakesLittleMemory) {
  const bool has_ps = GetParam() != std::string("allreduce");
  flooded_ = free_address();
  spec_ = has_ps ? "ps=" + flooded_ + ";worker=" + free_address() + "," + free_address()
                 : "worker=" + flooded_ + "," + free_address();
  std::vector<std::unique_ptr<Process>> tasks;
  if (has_ps) tasks.push_back(start("ps:0"));
  tasks.push_back(start("worker:0"));
  tasks.push_back(start("worker:1"));
  Process &flooded = *tasks.front(), &trains = *tasks.back();
  ASSERT_TRUE(trains.wait_for("Step: ", seconds(60))) << trains.output();
  const double before = memory_mb(flooded.pid());
  connect_silently();
  for (int burst = 0; burst < kBursts; ++burst) {
    connect_and_close();
    offer_a_key();
    ASSERT_TRUE(trains.wait_for_more("Step: ", seconds(60))) << trains.output();
  }
  EXPECT_LT(memory_mb(flooded.pid()), before + kMostFloodMb);
}

}  // namespace
}  // namespace paceline::testing

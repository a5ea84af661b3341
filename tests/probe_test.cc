// Tests `paceline probe`, which measures hosts and writes all that a prediction needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/temporary_folder.h"
#include "base/text_file.h"
#include "predict/hosts_file.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class Probe : public ::testing::Test {
 protected:
  /// Starts a server, and returns its address.
  std::string serve(const Words& more = {}) {
    std::string address = free_address();
    servers_.push_back(
        std::make_unique<Process>(join({paceline_words({"probe", "--listen", address}), more})));
    EXPECT_TRUE(servers_.back()->wait_for("serves at " + address, seconds(60)))
        << servers_.back()->output();
    return address;
  }
  Words words(const Words& hosts, const Words& more = {}) const {
    return join({{"probe"}, hosts, {"--out", out_, "--seconds", "0.2"}, more});
  }
  Finished probe(const Words& hosts, const Words& more = {}) const {
    return run_paceline(words(hosts, more), seconds(120));
  }

  const TemporaryFolder folder_;
  const std::string out_ = folder_.path("hosts.toml");
  std::vector<std::unique_ptr<Process>> servers_;
};

TEST_F(Probe, WritesAllThatAPredictionNeeds) {
  const std::string a = serve(), b = serve();
  const Finished made = probe({a, b});
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output,
              AllOf(HasSubstr("measures 2 hosts and what lies between them, which takes about"),
                    HasSubstr(" at most"), HasSubstr("1 stream"), HasSubstr(a), HasSubstr(b)));
  const DescribedHosts read = read_hosts(out_);
  ASSERT_THAT(read.hosts, SizeIs(2));
  for (const PredictedHost& host : read.hosts) {
    for (const double rate : {host.cores, host.flops_per_s, host.bytes_per_s, host.link_bytes_per_s,
                              host.receive_bytes_per_s, host.latency_s, host.cipher_bytes_per_s})
      EXPECT_THAT(rate, Gt(0)) << host.name;
  }
  ASSERT_THAT(read.pairs, SizeIs(2));
  EXPECT_THAT(read.pairs[0].link.stream_bytes_per_s, Gt(0));
  const Finished predicted =
      run_paceline({"predict", "mlp", "--hidden", "32", "--device", "sim", "--sim-step-ms", "20",
                    "--hosts", out_, "--ps", "1", "--workers", "1"},
                   seconds(120));
  EXPECT_EQ(predicted.status, 0) << predicted.output;
  EXPECT_THAT(predicted.output, HasSubstr("1 ps + 1 worker"));
}

TEST_F(Probe, SaysWhatTheNetworkMeansForATraining) {
  const std::string a = serve();
  const Words model = {"--for", "mlp", "--hidden", "32", "--device", "sim", "--sim-step-ms", "20"};
  const Finished made = probe({a}, model);
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output,
              AllOf(HasSubstr("What this network means for mlp:"), HasSubstr("Its values are "),
                    HasSubstr("The slowest way, from ")));
  std::filesystem::remove(out_);
  const Finished wrong = probe({a}, {"--for", "mlp", "--hiden", "32"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.output, AllOf(HasSubstr("--hiden"), Not(HasSubstr("takes about"))));
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(Probe, ItsMistakesAreNamedBeforeAnythingIsMeasured) {
  const std::string address = free_address();
  const auto refusal = [](const Words& words) {
    const Finished refused = run_paceline(join({{"probe"}, words}), seconds(60));
    EXPECT_EQ(refused.status, 2) << refused.output;
    EXPECT_THAT(refused.output, Not(HasSubstr("takes about")));
    return refused.output;
  };
  EXPECT_THAT(refusal({"--seconds", "2"}), HasSubstr("--seconds is for measuring"));
  EXPECT_THAT(refusal({address, "--listen", address}), HasSubstr("--listen is for serving"));
  EXPECT_THAT(refusal({"--for", "mlp"}), HasSubstr("name the hosts"));
  EXPECT_THAT(refusal({address, "--for"}), HasSubstr("--for needs a model"));
  EXPECT_THAT(refusal({address, "--for", "mpl"}), HasSubstr("mlp"));
  EXPECT_THAT(refusal({address, "--for", "mlp", "--hosts", "x"}), HasSubstr("--hosts"));
  EXPECT_THAT(refusal({address, address}), HasSubstr("is named twice"));
  EXPECT_THAT(refusal({address, "--remote-only"}), HasSubstr("--remote-only leaves one host"));
  EXPECT_THAT(refusal({address, "192.0.2.1", "--insecure"}), HasSubstr("do not reach it"));
  EXPECT_THAT(refusal({"a:b:c:1x"}), HasSubstr("HOST"));
  EXPECT_THAT(refusal({address, "--seconds", "0.01"}), HasSubstr("--seconds 0.01"));
  EXPECT_THAT(refusal({address, "--out", folder_.path("no/such")}), HasSubstr("--out"));
  EXPECT_THAT(refusal({"--listen", "nowhere"}), HasSubstr("--listen"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  write_text_file("a file", "hosts.toml", "of my own\n");
  EXPECT_THAT(refusal({address}), HasSubstr("hosts.toml is there already: --out hosts.toml"));
  std::filesystem::current_path(before);
}

TEST_F(Probe, BeyondTheLoopbackNeedsTheKey) {
  setenv("HOME", folder_.path().c_str(), 1);
  unsetenv("PACELINE_KEY_FILE");
  const Finished server = run_paceline({"probe"}, seconds(60));
  const Finished asker = run_paceline({"probe", "192.0.2.1"}, seconds(60));
  for (const Finished& refused : {server, asker}) {
    EXPECT_EQ(refused.status, 2) << refused.output;
    EXPECT_THAT(refused.output, AllOf(HasSubstr("`paceline key`"), HasSubstr("--insecure")));
  }
  EXPECT_THAT(server.output, HasSubstr("--listen 0.0.0.0:2220: askers of other hosts may come"));
  EXPECT_THAT(asker.output, HasSubstr("192.0.2.1:2220 is on another host"));
}

TEST_F(Probe, AStrangersKeyIsRefusedAndTheServerServesOn) {
  const Words key = with_key(folder_);
  const TemporaryFolder elsewhere;
  const std::string a = serve(join({{"--tls", "on"}, key}));
  const Finished stranger = probe({a}, join({{"--tls", "on"}, with_key(elsewhere)}));
  EXPECT_EQ(stranger.status, 1);
  EXPECT_THAT(stranger.output, HasSubstr("with the same key"));
  EXPECT_FALSE(std::filesystem::exists(out_));
  const Finished friendly = probe({a}, join({{"--tls", "on"}, key}));
  EXPECT_EQ(friendly.status, 0) << friendly.output;
  EXPECT_THAT(friendly.output, HasSubstr(", encrypted."));
}

TEST_F(Probe, WhatIsMissingIsToldAndWrittenOnlyIfAsked) {
  // The second server dies while the pair is measured.
  const auto output_of = [&](const Words& more) {
    const std::string a = serve(), b = serve();
    Process asker(paceline_words(words({a, b}, join({{"--seconds", "30"}, more}))));
    EXPECT_TRUE(asker.wait_for(b + ": ", seconds(60))) << asker.output();
    servers_.back()->signal(SIGKILL);
    EXPECT_EQ(asker.wait_exit(seconds(120)), 1) << asker.output();
    return asker.output();
  };
  EXPECT_THAT(output_of({}), AllOf(HasSubstr("not measured: "), HasSubstr("nothing was written")));
  EXPECT_FALSE(std::filesystem::exists(out_));
  EXPECT_THAT(output_of({"--partial"}), HasSubstr(out_ + " says what is missing"));
  const DescribedHosts read = read_hosts(out_);
  EXPECT_THAT(read.hosts, SizeIs(2));
  ASSERT_THAT(read.pairs, SizeIs(2));
  EXPECT_NE(read.pairs[0].missing, "");
  const Finished predicted =
      run_paceline({"predict", "mlp", "--hidden", "32", "--device", "sim", "--sim-step-ms", "20",
                    "--hosts", out_, "--ps", "1", "--workers", "1"},
                   seconds(120));
  EXPECT_EQ(predicted.status, 0) << predicted.output;
  EXPECT_THAT(predicted.output, HasSubstr("Not measured from " + read.hosts[0].name));
}

TEST_F(Probe, EndsAtOnceWhenItIsInterruptedAndWritesNothing) {
  const std::string a = serve();
  Process asker(paceline_words(words({a}, {"--seconds", "60"})));
  ASSERT_TRUE(servers_[0]->wait_for("measures this host", seconds(60)));
  asker.signal(SIGINT);
  EXPECT_NE(asker.wait_exit(seconds(20)), 0);
  EXPECT_FALSE(std::filesystem::exists(out_));
  ASSERT_TRUE(servers_[0]->wait_for("has left", seconds(60))) << servers_[0]->output();
  EXPECT_EQ(probe({a}).status, 0) << "the server serves the next";
  servers_[0]->signal(SIGTERM);
  EXPECT_EQ(servers_[0]->wait_exit(seconds(20)), 0) << servers_[0]->output();
}

}  // namespace
}  // namespace paceline::testing

#include "probe/prober.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/testing/error_of.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"
#include "probe/probe_meaning.h"
#include "probe/probe_server.h"
#include "run/network_rate.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr Duration kShort = std::chrono::milliseconds(200);

PredictedHost small_roof() {
  return {.name = "somewhere", .cores = 2, .flops_per_s = 200e9, .bytes_per_s = 50e9};
}

std::shared_ptr<const LinkSecurity> secured(const SecretKey& key) {
  LinkSecurity security;
  security.tls = Tls::kAlways;
  security.key = key;
  return std::make_shared<LinkSecurity>(security);
}

/// Servers and an asker in one process, over loopback.
class ProberTest : public ::testing::Test {
 protected:
  std::unique_ptr<ProbeServer> serve() {
    return std::make_unique<ProbeServer>(
        ProbeServing{"127.0.0.1:0", security_, small_roof, [this](const std::string& line) {
                       const std::lock_guard lock(mutex_);
                       said_ += line + "\n";
                     }});
  }
  Probing probing(const std::vector<std::string>& addresses) const {
    Probing probing{.hosts = {{"here", ""}},
                    .each = kShort,
                    .security = security_,
                    .roof = small_roof,
                    .say = [](const std::string&) {}};
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      probing.hosts.push_back({"host " + std::to_string(i), addresses[i]});
    }
    return probing;
  }

  std::shared_ptr<const LinkSecurity> security_;
  std::mutex mutex_;
  std::string said_;
};

TEST_F(ProberTest, MeasuresEachPairBothWaysAndWritesWhatIsRead) {
  const auto a = serve(), b = serve();
  Prober prober(probing({a->address(), b->address()}));
  EXPECT_EQ(prober.subject(), "3 hosts and the 3 pairs of them");
  EXPECT_THAT(prober.longest().count(), Gt(prober.usual().count()));
  const Probed probed = prober.measure();
  EXPECT_TRUE(probed.is_whole());
  ASSERT_THAT(probed.pairs, SizeIs(3));
  for (const ProbedPair& pair : probed.pairs) {
    ASSERT_TRUE(pair.figures) << pair.missing;
    const PairFigures& it = *pair.figures;
    for (const double rate : {it.one_out, it.all_out, it.one_in, it.all_in})
      EXPECT_THAT(rate, Gt(1e3));
    EXPECT_THAT(it.usual_round_trip_s, ::testing::Ge(it.best_round_trip_s));
    EXPECT_THAT(it.best_round_trip_s, Gt(0));
    EXPECT_THAT(std::abs(it.clock_ahead_s), ::testing::Le(it.clock_doubt_s)) << "one clock";
    EXPECT_FALSE(it.encrypted);
  }
  const DescribedHosts read = parse_hosts(hosts_file_text(described(probed), {}), "hosts.toml");
  ASSERT_THAT(read.hosts, SizeIs(3));
  EXPECT_THAT(read.pairs, SizeIs(6));
  EXPECT_EQ(read.hosts[1].name, "host 0");
  EXPECT_THAT(read.hosts[1].flops_per_s, DoubleNear(200e9, 1e6));
  EXPECT_THAT(probed_text(probed), AllOf(HasSubstr("host 0"), HasSubstr("not encrypted")));
}

TEST_F(ProberTest, EncryptsAndRefusesWhoHasAnotherKey) {
  security_ = secured(SecretKey::make());
  const auto server = serve();
  const Probed probed = Prober(probing({server->address()})).measure();
  ASSERT_TRUE(probed.is_whole()) << probed_text(probed);
  EXPECT_TRUE(probed.pairs[0].figures->encrypted);
  EXPECT_THAT(probed_text(probed), HasSubstr("encrypted"));
  security_ = secured(SecretKey::make());
  EXPECT_THAT(
      error_of(ErrorCode::kUnavailable, [&] { Prober(probing({server->address()})).measure(); }),
      AllOf(HasSubstr("host 0: "), HasSubstr("with the same key")));
}

TEST_F(ProberTest, NamesAllHostsThatCannotBeCalledBeforeAnythingIsMeasured) {
  const auto server = serve();
  std::string dead = serve()->address(), dead_too = serve()->address();
  std::atomic<int> measured{0};
  Probing those = probing({dead, server->address(), dead_too});
  those.roof = [&] {
    ++measured;
    return small_roof();
  };
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, [&] { Prober(those).measure(); }),
              AllOf(HasSubstr("host 0: "), HasSubstr("host 2: "), Not(HasSubstr("host 1: "))));
  EXPECT_EQ(measured, 0);
}

TEST_F(ProberTest, ASecondAskerIsToldThatTheHostIsBusy) {
  const auto server = serve();
  Probing first = probing({server->address()});
  std::string busy;
  first.roof = [&] {  // the first session has begun
    busy = error_of([&] { Prober(probing({server->address()})).measure(); });
    return small_roof();
  };
  EXPECT_TRUE(Prober(first).measure().is_whole());
  EXPECT_THAT(busy, AllOf(HasSubstr("this host is being measured by pid"), HasSubstr("ask again")));
}

TEST_F(ProberTest, OfAServerThatDiesThePairsAreMissingAndNoOther) {
  const auto a = serve();
  auto b = serve();
  Probing those = probing({a->address(), b->address()});
  those.say = [&](const std::string& line) {
    if (line.starts_with("pair 1")) b.reset();
  };
  const Probed probed = Prober(those).measure();
  EXPECT_FALSE(probed.is_whole());
  ASSERT_THAT(probed.pairs, SizeIs(3));
  EXPECT_TRUE(probed.pairs[0].figures);
  for (const std::size_t pair : {1u, 2u}) {
    EXPECT_FALSE(probed.pairs[pair].figures);
    EXPECT_NE(probed.pairs[pair].missing, "");
  }
  EXPECT_THAT(probed_text(probed), HasSubstr("not measured: "));
  const DescribedHosts read = parse_hosts(hosts_file_text(described(probed), {}), "hosts.toml");
  EXPECT_THAT(read.hosts, SizeIs(3));
  ASSERT_THAT(read.pairs, SizeIs(6));
  EXPECT_EQ(read.pairs[2].missing, probed.pairs[1].missing);
}

TEST_F(ProberTest, ARoofThatCannotBeMeasuredIsMissing) {
  const auto server = serve();
  Probing those = probing({server->address()});
  those.roof = []() -> PredictedHost { throw Error(ErrorCode::kUnavailable, "no memory"); };
  const Probed probed = Prober(those).measure();
  EXPECT_FALSE(probed.is_whole());
  EXPECT_EQ(probed.missing[0], "no memory");
  EXPECT_EQ(probed.pairs[0].missing, "no memory");
  EXPECT_THAT(probed_text(probed), Not(HasSubstr("encrypted"))) << "nothing has a rate";
  EXPECT_THAT(described(probed).hosts, SizeIs(1));
}

TEST_F(ProberTest, FramesThatMakeNoSenseEndTheirConnectionAlone) {
  const auto server = serve();
  const std::unique_ptr<Link> link = probe_link(nullptr, [](const std::string&) {});
  const Deadline soon = Deadline::after(std::chrono::seconds(20));
  ProbeHello hello{.session = 5, .seconds = 60, .process = "a stranger"};
  // Makes each call in a new session. The server refuses it until it knows that the last session
  // has ended.
  const auto called = [&] {
    for (++hello.session;;) {
      try {
        return std::make_unique<ProbeCall>(*link, server->address(), hello, ProbeCalling{soon});
      } catch (const Error& error) {
        const bool busy =
            std::string_view(error.what()).find("is being measured") != std::string_view::npos;
        if (!busy || soon.passed()) throw;
      }
    }
  };
  const auto ends = [&](ProbeType type, std::size_t bytes) {
    const auto call = called();
    call->send(type, std::vector<std::byte>(bytes));
    return error_of([&] { call->wait(ProbeType::kCount, soon); });
  };
  EXPECT_NE(ends(ProbeType::kBytes, 8), "");
  EXPECT_NE(ends(ProbeType{4711}, 0), "");
  EXPECT_NE(ends(ProbeType::kMeasure, 3), "");
  EXPECT_NE(ends(ProbeType::kPing, kMostProbeBytes + 1), "");
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition,
                       [&] {
                         ProbeHello stranger = hello;
                         ++stranger.session;
                         stranger.role = ProbeRole::kStream;
                         ProbeCall(*link, server->address(), stranger, {soon});
                       }),
              HasSubstr("nobody measures here in that session"));
  EXPECT_TRUE(Prober(probing({server->address()})).measure().is_whole()) << "it serves on";
}

/// Links of 1 Gbit/s join a and b, a link of a tenth of that joins c to them, and the direction
/// from c to a carries even less.
Probed three_hosts() {
  Probed probed;
  for (const char* const name : {"a", "b", "c"}) {
    probed.hosts.push_back(small_roof());
    probed.hosts.back().name = name;
  }
  probed.missing.resize(3);
  const double full = kPayloadOfGigabit, tenth = full / 10;
  probed.pairs = {{0, 1, PairFigures{full, full, 0.9 * full, full, 2e-3, 3e-3, 0.5, 1e-3, true}},
                  {0, 2, PairFigures{tenth, tenth, tenth / 2, tenth / 2, 40e-3, 41e-3, 0, 0, true}},
                  {1, 2, PairFigures{tenth, tenth, tenth, tenth, 40e-3, 41e-3, 0, 0, true}}};
  return probed;
}

TEST(DescribedNetwork, TheLinkOfAHostIsItsFastestPairAndPairsKeepTheirOwn) {
  const DescribedHosts all = described(three_hosts());
  ASSERT_THAT(all.hosts, SizeIs(3));
  EXPECT_THAT(all.hosts[0].link_bytes_per_s / kPayloadOfGigabit, DoubleNear(1, 1e-9));
  EXPECT_THAT(all.hosts[2].link_bytes_per_s / kPayloadOfGigabit, DoubleNear(0.1, 1e-9));
  EXPECT_THAT(all.hosts[0].latency_s, DoubleNear(0.5e-3, 1e-9)) << "a quarter of the round trip";
  ASSERT_THAT(all.pairs, SizeIs(6));
  EXPECT_EQ(all.pairs[3].link.from, 2);
  EXPECT_EQ(all.pairs[3].link.to, 0);
  EXPECT_THAT(all.pairs[3].link.bytes_per_s / kPayloadOfGigabit, DoubleNear(0.05, 1e-9));
  EXPECT_THAT(all.pairs[3].link.latency_s, DoubleNear(20e-3, 1e-9));
  EXPECT_THAT(all.pairs[1].link.stream_bytes_per_s / kPayloadOfGigabit, DoubleNear(0.9, 1e-9));
  EXPECT_THAT(all.pairs[0].clock_ahead_s, DoubleNear(0.5, 1e-9));
  EXPECT_THAT(all.pairs[1].clock_ahead_s, DoubleNear(-0.5, 1e-9));
}

TEST(DescribedNetwork, ItsMeaningNamesTheSlowestWayAndTheFastestStrategy) {
  DescribedHosts hosts = described(three_hosts());
  Prediction alone, several;
  alone.steps_per_s = 2;
  alone.times_alone = 1;
  alone.limit = "kernels";
  several.shape.strategy = {"allreduce"};
  several.shape.workers = 2;
  several.steps_per_s = 3;
  several.times_alone = 1.5;
  several.limit = "the link";
  const std::vector<Prediction> faster = {several, alone};
  EXPECT_THAT(meaning_text("resnet", 100e6, hosts, faster),
              AllOf(HasSubstr("Its values are 100 MB"),
                    HasSubstr("from c to a, carries 5.94 MB a second: 100 MB take 16.8 s there"),
                    HasSubstr("The fastest way is allreduce, 2 workers: 3 steps/s, 1.50 × one "
                              "process. The limit: the link"),
                    HasSubstr("Its flags: --ps 0 --workers 2")));
  several.steps_per_s = 1;
  several.times_alone = 0.5;
  const std::vector<Prediction> slower = {alone, several};
  EXPECT_THAT(meaning_text("resnet", 100e6, hosts, slower),
              AllOf(HasSubstr("One process is the fastest, with 2 steps/s"),
                    HasSubstr("allreduce, 2 workers: 1 steps/s, 0.50 × one process")));
  EXPECT_THAT(meaning_text("resnet", 100e6, hosts, {&alone, 1}), HasSubstr("--time-limit"));
  EXPECT_THAT(meaning_text("resnet", 100e6, hosts, slower), Not(HasSubstr("measure again")));
  hosts.hosts[1].others_share = 0.4;
  EXPECT_THAT(meaning_text("resnet", 100e6, hosts, slower), HasSubstr("measure again"));
}

}  // namespace
}  // namespace paceline

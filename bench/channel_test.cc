#include "bench/channel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "bench/link_rates.h"

namespace paceline::bench {
namespace {

// Exchanges come to their end, whatever the way and the waiting.
void exchange_some(const std::function<std::unique_ptr<Channel>(const ChannelOptions&)>& make) {
  for (const Waiting waiting : {Waiting::kSpinning, Waiting::kSleeping}) {
    for (const bool echo : {true, false}) {
      for (const Message message : {Message{1, 8}, Message{7, 5000}}) {
        const auto channel = make({message, waiting, echo});
        for (const std::uint32_t times : {1u, 3u, 2u}) channel->exchange(times);
      }
    }
  }
}

TEST(Channel, OfEveryLinkExchangesMessages) {
  for (const std::string& kind : link_kinds()) {
    SCOPED_TRACE(kind);
    exchange_some([&](const ChannelOptions& options) { return make_link_channel(kind, options); });
  }
}

TEST(Channel, BareLoopsExchangeMessages) {
  exchange_some(make_socket_channel);
  exchange_some(make_memory_channel);
}

// Of processes the system sees to it.
TEST(Channel, AThreadThatIsPausedTakesNoCore) {
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto channel = make_link_channel("inproc", {{1, 8}, Waiting::kSpinning, true});
  channel->exchange();
  channel->pause();
  const auto before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(used() - before, std::chrono::milliseconds(100));
  channel->resume();
  channel->exchange();
}

}  // namespace
}  // namespace paceline::bench

#include "bench/channel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/deadline.h"
#include "bench/link_rates.h"

namespace paceline::bench {
namespace {

// Exchanges end, whatever the channel and the way of waiting.
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
  exchange_some([](ChannelOptions options) {
    options.calls_of_link = true;
    return make_socket_channel(options);
  });
  exchange_some([](ChannelOptions options) {
    options.encrypted = true;
    return make_socket_channel(options);
  });
  exchange_some(make_memory_channel);
}

// Returns the state of every other thread of this process: R (it runs, or could), S (it sleeps).
std::string states_of_others() {
  std::string states;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    if (const auto name_end = line.rfind(") "); name_end != std::string::npos)
      states += line[name_end + 2];
  }
  return states;
}

// A far end that is a process is stopped by the system; this one is a thread.
TEST(Channel, AThreadThatIsPausedTakesNoCore) {
  const auto channel = make_link_channel("inproc", {{1, 8}, Waiting::kSpinning, true});
  channel->exchange();
  channel->pause();
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  std::string states;
  while ((states = states_of_others()).find('R') != std::string::npos && !deadline.passed())
    std::this_thread::yield();
  EXPECT_EQ(states.find('R'), std::string::npos) << states;
  channel->resume();
  channel->exchange();
}

TEST(Channel, APauseInAPauseIsNone) {
  const auto channel = make_socket_channel({{1, 8}, Waiting::kSleeping, true});
  channel->pause();
  channel->pause();
  channel->resume();
  channel->exchange();
}

}  // namespace
}  // namespace paceline::bench

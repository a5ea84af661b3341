#include "bench/channel.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "bench/link_rates.h"

namespace paceline::bench {
namespace {

// Checks only that exchanges end, for any channel.
void exchange_some(const std::function<std::unique_ptr<Channel>(const ChannelOptions&)>& make) {
  for (const bool echo : {true, false}) {
    for (const Message message : {Message{1, 8}, Message{7, 5000}}) {
      const auto channel = make({message, echo});
      for (const std::uint32_t times : {1u, 3u, 2u}) channel->exchange(times);
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

TEST(Channel, APauseInAPauseIsNone) {
  const auto channel = make_socket_channel({{1, 8}, true});
  channel->pause();
  channel->pause();
  channel->resume();
  channel->exchange();
}

}  // namespace
}  // namespace paceline::bench

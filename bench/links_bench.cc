// Links beside a bare socket and a bare ring in memory, one exchange an iteration. `paceline bench
// links` measures the same in pairs.
#include <benchmark/benchmark.h>

#include <functional>

#include "bench/channel.h"
#include "bench/link_rates.h"

namespace {

using namespace paceline::bench;

using MakeChannel = std::function<std::unique_ptr<Channel>(const ChannelOptions&)>;

void exchange(benchmark::State& state, const MakeChannel& make, const ChannelOptions& options) {
  const auto channel = make(options);
  while (state.KeepRunning()) channel->exchange();
  state.SetBytesProcessed(state.iterations() * std::int64_t(options.message.bytes()));
}

void add(const std::string& name, const MakeChannel& make) {
  const auto add_one = [&](const std::string& what, const ChannelOptions& options) {
    benchmark::RegisterBenchmark((name + what).c_str(), exchange, make, options)->UseRealTime();
  };
  add_one("/8B/spinning", {{1, 8}, Waiting::kSpinning, true});
  add_one("/8B/sleeping", {{1, 8}, Waiting::kSleeping, true});
  add_one("/75MB", {{18, 4'194'304}, Waiting::kSpinning, false});
}

}  // namespace

int main(int argc, char** argv) {
  add("bare_socket", make_socket_channel);
  add("bare_memory", make_memory_channel);
  for (const std::string& kind : link_kinds()) {
    add(kind, [kind](const ChannelOptions& options) { return make_link_channel(kind, options); });
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

// Links beside a bare socket and a bare ring in memory, one exchange an iteration. `paceline bench
// links` measures the same in pairs.
#include <benchmark/benchmark.h>

#include <functional>

#include "base/pinned.h"
#include "bench/channel.h"
#include "bench/link_rates.h"

namespace {

using namespace paceline::bench;
using paceline::Pinned;

using MakeChannel = std::function<std::unique_ptr<Channel>(const ChannelOptions&)>;

void exchange(benchmark::State& state, const MakeChannel& make, ChannelOptions options) {
  const Pinned near(0);
  options.near = &near;
  const auto channel = make(options);
  while (state.KeepRunning()) channel->exchange();
  state.SetBytesProcessed(state.iterations() * std::int64_t(options.message.bytes()));
}

void add(const std::string& name, const MakeChannel& make) {
  const auto add_one = [&](const std::string& what, const ChannelOptions& options) {
    benchmark::RegisterBenchmark((name + what).c_str(), exchange, make, options)->UseRealTime();
  };
  for (const Waiting waiting : {Waiting::kSpinning, Waiting::kSleeping}) {
    const std::string how = waiting == Waiting::kSpinning ? "/spinning" : "/sleeping";
    add_one("/8B" + how, {{1, 8}, waiting, true});
    add_one("/4KB" + how, {{1, 4000}, waiting, true});
    add_one("/64KB" + how, {{1, 64000}, waiting, true});
    add_one("/75MB" + how, {{18, 4'194'304}, waiting, false});
    add_one("/75MB_unaligned" + how, {{18, 4'194'336}, waiting, false});
    add_one("/100x10KB" + how, {{100, 10'000}, waiting, false});
  }
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

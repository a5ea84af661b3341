// Measures links beside a bare socket and a bare ring in memory, one exchange per iteration.
// `paceline bench links` measures them in pairs.
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
  add_one("/8B", {{1, 8}, true});
  add_one("/4KB", {{1, 4000}, true});
  add_one("/64KB", {{1, 64000}, true});
  add_one("/75MB", {{18, 4'194'304}, false});
  add_one("/75MB_unaligned", {{18, 4'194'336}, false});
  add_one("/100x10KB", {{100, 10'000}, false});
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

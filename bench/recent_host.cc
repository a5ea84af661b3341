#include "bench/recent_host.h"

#include <algorithm>
#include <vector>

namespace paceline::bench {

void RecentHost::add(const ForecastHost& measured) {
  hosts_.push_back(measured);
  if (hosts_.size() > kMost) hosts_.pop_front();
}

ForecastHost RecentHost::usual() const {
  ForecastHost host = hosts_.back();
  for (const auto rate :
       {&ForecastHost::flops_per_s, &ForecastHost::bytes_per_s, &ForecastHost::thread_bytes_per_s,
        &ForecastHost::rule_bytes_per_s, &ForecastHost::thread_rule_bytes_per_s,
        &ForecastHost::tcp_send_bytes_per_s, &ForecastHost::tcp_receive_bytes_per_s}) {
    std::vector<double> rates;
    for (const ForecastHost& each : hosts_) rates.push_back(each.*rate);
    const auto middle = rates.begin() + std::ptrdiff_t(rates.size() / 2);
    std::ranges::nth_element(rates, middle);
    host.*rate = *middle;
  }
  return host;
}

}  // namespace paceline::bench

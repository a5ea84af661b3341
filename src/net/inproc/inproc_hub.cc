#include "net/inproc/inproc_hub.h"

namespace paceline {

std::string InprocHub::free_name(const std::string& name) const {
  if (!name.ends_with(":0")) return name;
  const std::string prefix = name.substr(0, name.size() - 1);
  int number = 1;
  while (listeners_.contains(prefix + std::to_string(number))) ++number;
  return prefix + std::to_string(number);
}

std::string InprocHub::add(const std::string& name, std::shared_ptr<InprocListener> listener) {
  std::lock_guard lock(mutex_);
  std::string address = free_name(name);
  if (!listeners_.emplace(address, std::move(listener)).second)
    throw Error(ErrorCode::kUnavailable, address + " is in use (another task?)");
  return address;
}

std::shared_ptr<InprocListener> InprocHub::find(const std::string& address) const {
  std::lock_guard lock(mutex_);
  const auto found = listeners_.find(address);
  return found == listeners_.end() ? nullptr : found->second;
}

void InprocHub::remove(const std::string& address) {
  std::lock_guard lock(mutex_);
  listeners_.erase(address);
}

}  // namespace paceline

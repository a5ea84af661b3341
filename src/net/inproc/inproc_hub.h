// The addresses of inproc links: a hub is a network within one process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "net/link.h"

namespace paceline {

class InprocDispatcher;

struct InprocListener {
  Acceptor acceptor;
  std::shared_ptr<InprocDispatcher> dispatcher;  // of the link that listens
};

/// Thread-safe. Shared by the links that can reach each other.
class InprocHub {
 public:
  /// Returns the address: `name`, where a final ":0" is replaced by a free number. Throws
  /// kUnavailable when the name is in use.
  std::string add(const std::string& name, std::shared_ptr<InprocListener> listener);
  /// Returns null when nobody listens there.
  std::shared_ptr<InprocListener> find(const std::string& address) const;
  void remove(const std::string& address);

 private:
  std::string free_name(const std::string& name) const;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<InprocListener>> listeners_;
};

}  // namespace paceline

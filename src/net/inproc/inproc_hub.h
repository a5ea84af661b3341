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
  std::shared_ptr<InprocDispatcher> dispatcher;  // of the listening link
};

/// The links that can reach each other share one hub. Thread-safe.
class InprocHub {
 public:
  /// Returns the address: `name`, where a free number replaces a final ":0". Throws kUnavailable if
  /// the name is in use.
  std::string add(const std::string& name, std::shared_ptr<InprocListener> listener);
  /// Returns null if nobody listens there.
  std::shared_ptr<InprocListener> find(const std::string& address) const;
  void remove(const std::string& address);

 private:
  std::string free_name(const std::string& name) const;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<InprocListener>> listeners_;
};

}  // namespace paceline

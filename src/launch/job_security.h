// The security of a job's links: which of them leave this host, and the proof that they need.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/tls/link_security.h"
#include "paceline/cluster.h"

namespace paceline {

/// True if the address ("host:port") belongs to this host: to its loopback or to one of its
/// interfaces. A name that cannot be resolved counts as another host's.
bool is_of_this_host(const std::string& address);

/// Reads the proof that the cluster names (load_security); null for a process without links and for
/// an evaluator. If the tasks of a launcher need a proof and none is given, the launcher makes a
/// key for its job. `apart` says why tasks are on several hosts if their addresses do not show it,
/// and `hint` says how tasks of this job get a proof. Throws kUsage if the proof cannot be read, if
/// a link needs a proof and none is given, and if MPI would send unencrypted to other hosts.
std::shared_ptr<const LinkSecurity> secure_job(const Cluster& cluster, const std::string& apart,
                                               const std::string& hint = "");

/// Reads the proof of a server that listens at `bind`, the value of the flag `flag`. Throws kUsage
/// if the proof cannot be read, or if links need a proof and none is given; the message calls those
/// who may connect `callers`.
std::shared_ptr<const LinkSecurity> secure_server(const Security& security, const std::string& bind,
                                                  const char* flag = "--bind",
                                                  const char* callers = "workers");

/// Reads the proof of a process that calls the servers at these addresses. Throws kUsage if it
/// cannot be read, or if a link needs a proof and none is given.
std::shared_ptr<const LinkSecurity> secure_calls(const Security& security,
                                                 const std::vector<std::string>& addresses);

/// Reads the proof of a launcher's processes that meet at `elsewhere`, an address that may be on
/// another host; if it is empty, all processes are on this host. Throws kUsage like secure_calls.
/// `hint` says how such processes get a key.
std::shared_ptr<const LinkSecurity> secure_meeting(const Security& security,
                                                   const std::string& elsewhere,
                                                   const std::string& hint);

}  // namespace paceline

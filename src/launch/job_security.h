// The security of a job's links: which leave this host, and the proof that they need.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/tls/link_security.h"
#include "paceline/cluster.h"

namespace paceline {

/// True when the address ("host:port") belongs to this host: to its loopback or to one of its
/// interfaces. A name that cannot be resolved belongs to another host.
bool is_of_this_host(const std::string& address);

/// Reads the proof that the cluster names (load_security); null for a process without links.
/// `apart` says why tasks are on several hosts, where their addresses do not show it. If a
/// launcher's tasks need a proof and none is given, it makes a key for its job. Throws kUsage when
/// the proof cannot be read, when a link needs a proof and none is given (`hint` says how tasks of
/// this job get one), and when MPI would send unencrypted to other hosts.
std::shared_ptr<const LinkSecurity> secure_job(const Cluster& cluster, const std::string& apart,
                                               const std::string& hint = "");

/// Makes the security of a server that listens at `bind`, which the flag `flag` names, for any
/// caller.
std::shared_ptr<const LinkSecurity> secure_server(const Security& security, const std::string& bind,
                                                  const char* flag = "--bind",
                                                  const char* callers = "workers");

/// Makes the security of a process that calls the servers at these addresses.
std::shared_ptr<const LinkSecurity> secure_calls(const Security& security,
                                                 const std::vector<std::string>& addresses);

/// The same for the processes of a launcher that meet at `elsewhere`, which may be another host;
/// empty: all are on this one. `hint` says how such processes are given a key.
std::shared_ptr<const LinkSecurity> secure_meeting(const Security& security,
                                                   const std::string& elsewhere,
                                                   const std::string& hint);

}  // namespace paceline

// The security of a job's links: which leave this host, and the proof that they need.
#pragma once

#include <memory>
#include <string>

#include "launch/lab/lab_options.h"
#include "net/tls/link_security.h"
#include "paceline/cluster.h"

namespace paceline {

/// True when the address ("host:port") belongs to this host: to its loopback or to one of its
/// interfaces. A name that cannot be resolved belongs to another host.
bool is_of_this_host(const std::string& address);

/// Reads the proof that the cluster names (load_security); null for a process without links. A
/// launcher whose tasks need one and that
/// has none makes a key for its job. Throws kUsage when the proof cannot be read, when a link needs
/// one and there is none (`hint` says how the tasks of this job are given one), and when MPI would
/// send to other hosts in the clear.
std::shared_ptr<const LinkSecurity> secure_job(const Cluster& cluster, const LabOptions& lab,
                                               const std::string& hint = "");

/// The same for a server that listens at `bind` for whatever job comes.
std::shared_ptr<const LinkSecurity> secure_server(const Security& security,
                                                  const std::string& bind);

/// The same for the processes of a launcher that meet at `elsewhere`, which may be another host;
/// empty: all are on this one. `hint` says how such processes are given a key.
std::shared_ptr<const LinkSecurity> secure_meeting(const Security& security,
                                                   const std::string& elsewhere,
                                                   const std::string& hint);

}  // namespace paceline

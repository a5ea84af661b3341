// The connections of one tcp link.
#pragma once

#include "net/link_connections.h"

namespace paceline {

class TcpConnection;
using TcpConnections = LinkConnections<TcpConnection>;

}  // namespace paceline

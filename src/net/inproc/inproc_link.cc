#include "net/inproc/inproc_link.h"

#include <utility>

#include "net/inproc/inproc_connection.h"
#include "net/inproc/inproc_dispatcher.h"

namespace paceline {
namespace {

std::shared_ptr<InprocConnection> make_end(const std::shared_ptr<InprocPair>& pair, int side,
                                           Receiver* receiver, Acceptor acceptor) {
  auto connection = std::make_shared<InprocConnection>(pair, side, receiver, std::move(acceptor));
  if (!pair->ends[std::size_t(side)].dispatcher->add(connection))
    throw Error(ErrorCode::kUnavailable, "nobody listens any more where a connection was to go");
  return connection;
}

class InprocLink : public Link {
 public:
  InprocLink(const LinkOptions& options, std::shared_ptr<InprocHub> hub)
      : hub_(std::move(hub)), dispatcher_(std::make_shared<InprocDispatcher>(options.threads)) {}

  ~InprocLink() override {
    for (const std::string& address : listening_) hub_->remove(address);
    for (const auto& connection : dispatcher_->stop())
      connection->finish({ErrorCode::kCancelled, "the link of the connection to " +
                                                     connection->peer() + " was destroyed"});
  }

  std::string kind() const override { return "inproc"; }

  std::string listen(const std::string& address, Acceptor acceptor) override {
    auto listener =
        std::make_shared<InprocListener>(InprocListener{std::move(acceptor), dispatcher_});
    std::string bound = hub_->add(address, std::move(listener));
    std::lock_guard lock(mutex_);
    listening_.push_back(bound);
    return bound;
  }

  std::shared_ptr<Connection> connect(const std::string& address, Receiver& receiver,
                                      Deadline) override {
    const std::shared_ptr<InprocListener> listener = hub_->find(address);
    if (!listener) throw Error(ErrorCode::kUnavailable, "nobody listens at " + address);
    using End = InprocPair::End;
    const std::shared_ptr<InprocPair> pair(new InprocPair{
        {End(address, dispatcher_), End("a caller of " + address, listener->dispatcher)}});
    const auto far = make_end(pair, 1, nullptr, listener->acceptor);
    auto near = make_end(pair, 0, &receiver, nullptr);
    far->ask_for_turn();
    near->ask_for_turn();  // the far end may have ended by now
    return near;
  }

  bool help() override { return dispatcher_->help(); }

 private:
  const std::shared_ptr<InprocHub> hub_;
  const std::shared_ptr<InprocDispatcher> dispatcher_;
  std::mutex mutex_;
  std::vector<std::string> listening_;
};

}  // namespace

std::unique_ptr<Link> make_inproc_link(const LinkOptions& options, std::shared_ptr<InprocHub> hub) {
  return std::make_unique<InprocLink>(options, std::move(hub));
}

}  // namespace paceline

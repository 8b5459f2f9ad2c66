#pragma once

#include <memory>
#include <string>

namespace everstep::launcher {

// Stands in for the metadata servers of AWS (IMDSv2) and GCP, as strict as they are: without the header that they ask
// for there is no answer.
class MetadataServer {
 public:
  MetadataServer();
  MetadataServer(const MetadataServer&) = delete;
  MetadataServer& operator=(const MetadataServer&) = delete;
  ~MetadataServer();

  std::string url() const;

  void set_action(const std::string& json);  // AWS: what instance-action is from now on
  void expire_tokens();
  int tokens_given() const;
  void set_preempted(bool preempted);  // GCP

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace everstep::launcher

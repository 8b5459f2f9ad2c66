#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/etcd_client.h"

namespace everstep::launcher {

// Who may talk to the etcd that a job runs for itself: processes that can read these files, and only their owner can.
class EtcdCertificates {
 public:
  // Those of that directory, which are made if they are not there, and it too: mode 0700, files 0600. kUnavailable: the
  // system refuses.
  static Result<EtcdCertificates> of(const std::filesystem::path& directory);

  // PEM files, for --etcd-ca, --etcd-cert and --etcd-key.
  std::string ca() const;
  std::string client_certificate() const;
  std::string client_key() const;

  // Options of etcd by which it takes nobody without a certificate of ours, neither as client nor as peer.
  std::vector<std::string> server_arguments() const;

  // What a client of that URL says.
  Result<elastic::EtcdOptions> client_options(const std::string& url) const;

 private:
  explicit EtcdCertificates(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::string path_of(const char* name) const { return (directory_ / name).string(); }

  std::filesystem::path directory_;
};

}  // namespace everstep::launcher

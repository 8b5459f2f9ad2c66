#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/check.h"
#include "elastic/etcd_client.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/temporary_directory.h"

namespace everstep::elastic {

// An authority and certificates for 127.0.0.1 that it signs, made by the program openssl.
class Certificates {
 public:
  Certificates() {
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=authority -keyout ca.key -out "
        "ca.pem -addext keyUsage=critical,keyCertSign -days 2");
  }

  // Valid for so many days from now; one that ended in the past if negative.
  ServerCertificates make(const std::string& name, int days) const {
    run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name + " -keyout " + name +
        ".key -out " + name + ".csr");
    run("printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' > " + name + ".ext");
    // `openssl x509` makes nothing that ends before it begins, so that the old one begins and ends in the past.
    run("rm -f index.txt* && touch index.txt && printf '[ca]\\ndefault_ca=a\\n[a]\\ndatabase=index.txt\\n"
        "new_certs_dir=.\\nrand_serial=yes\\ndefault_md=sha256\\npolicy=p\\nunique_subject=no\\n[p]\\ncommonName="
        "supplied\\n'"
        " > ca.cnf");
    run("openssl ca -batch -config ca.cnf -cert ca.pem -keyfile ca.key -extfile " + name + ".ext -in " + name +
        ".csr -out " + name + ".pem -startdate $(date -u -d '-10 days' +%Y%m%d%H%M%SZ) -enddate $(date -u -d '" +
        std::to_string(days) + " days' +%Y%m%d%H%M%SZ)");
    return {directory_.file("ca.pem"), directory_.file(name + ".pem"), directory_.file(name + ".key")};
  }

  static EtcdOptions options_with(const ServerCertificates& files, const EtcdCluster& cluster) {
    return {cluster.endpoints(), content(files.ca), content(files.certificate), content(files.key)};
  }

 private:
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  void run(const std::string& command) const {
    const std::string line = "cd " + directory_.path().string() + " && (" + command + ") >log 2>&1";
    EVERSTEP_CHECK(std::system(line.c_str()) == 0, command + ": " + content(directory_.file("log")));
  }

  TemporaryDirectory directory_;
};

}  // namespace everstep::elastic

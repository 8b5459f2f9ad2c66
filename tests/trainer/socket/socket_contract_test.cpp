#include <gtest/gtest.h>

#include "tests/trainer/socket/wires.h"
#include "tests/trainer/wire/transport_contract.h"

namespace everstep::trainer {
namespace {

std::vector<std::unique_ptr<Transport>> over_unix(int workers) { return make_socket_transports(workers); }
std::vector<std::unique_ptr<Transport>> over_tls(int workers) { return make_socket_transports(workers, tls_options()); }
std::vector<std::unique_ptr<Transport>> over_certificates(int workers) {
  return make_socket_transports(workers, certificate_options());
}

INSTANTIATE_TEST_SUITE_P(Socket, TransportContract,
                         testing::Values(TransportMaker{"Unix", over_unix}, TransportMaker{"Tls", over_tls},
                                         TransportMaker{"Certificates", over_certificates}),
                         maker_name);

}  // namespace
}  // namespace everstep::trainer

#pragma once

#include <string>

namespace everstep::storage {

// A certificate and the key that proves it, as PEM.
struct Identity {
  std::string certificate;
  std::string key;
};

// A server and its clients that know each other and nobody else.
struct PrivateCertificates {
  std::string authority;  // PEM. Its key is gone: nobody can make another certificate that these would trust.
  Identity server;        // of 127.0.0.1; it may also be a client, as a server is that talks to itself
  Identity client;
};

// New ones, with keys on P-256: that takes a millisecond. Valid ten years into the past and the future, so that a clock
// that is wrong or jumps locks nobody out. From any thread.
PrivateCertificates make_private_certificates();

}  // namespace everstep::storage

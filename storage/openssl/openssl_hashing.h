#pragma once

#include <memory>

#include "storage/hashing.h"

namespace everstep::storage {

// SHA-256 and HMAC by OpenSSL. From any thread.
std::unique_ptr<Hashing> make_openssl_hashing();

}  // namespace everstep::storage

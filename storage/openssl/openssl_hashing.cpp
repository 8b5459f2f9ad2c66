#include "storage/openssl/openssl_hashing.h"

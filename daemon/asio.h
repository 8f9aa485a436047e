// Boost.Asio as this project uses it: callbacks, no coroutines. GCC 12 in C++23 and sanitizers
// stumble over the parts that are switched off here.
#pragma once

#define BOOST_ASIO_DISABLE_CO_AWAIT
#define BOOST_ASIO_DISABLE_FENCED_BLOCK

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

namespace ipoverbs::daemon {
namespace asio = boost::asio;
}  // namespace ipoverbs::daemon

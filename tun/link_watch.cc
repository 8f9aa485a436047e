#include "tun/link_watch.h"

#include <linux/rtnetlink.h>
#include <net/if.h>

namespace ipoverbs::tun {

LinkWatch::LinkWatch() { socket_.listen(RTNLGRP_LINK); }

LinkWatch::News LinkWatch::read(int index) {
  News news;
  const bool complete = socket_.receive([&](nlmsghdr& message) {
    const auto link = fixed_part<ifinfomsg>(message);
    // A bridge tells of its ports with these types and a family of its own.
    if (link.ifi_index != index || link.ifi_family != AF_UNSPEC) return;
    if (message.nlmsg_type == RTM_DELLINK) news.removed = true;
    if (message.nlmsg_type == RTM_NEWLINK) {
      news.up = (link.ifi_flags & IFF_UP) != 0;
      news.went_down |= !*news.up;
    }
  });
  news.lost = !complete;
  return news;
}

}  // namespace ipoverbs::tun

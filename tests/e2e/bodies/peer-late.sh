# shellcheck shell=bash
# The peer is started later: until then the daemon stays and says so, then ping is there within 2 s.
start a
expect_within 5 "a does not answer" answers a
sleep 4
expect "a went away while it waited" running a
refuse "a says that it is connected" peer_is a connected
refuse "a ping got an answer from nobody" reaches 1 a
start b
expect_within 5 "b does not answer" answers b
expect "b is there: no ping" reaches 2 a
expect "a does not say that it is connected" peer_is a connected

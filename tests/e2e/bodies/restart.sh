# shellcheck shell=bash
# kill -9 of one daemon, either, and a restart: ping is back within 2 s.
start_both
for side in b a b; do
  stop "$side" KILL || true
  start "$side"
  expect "$side was killed and restarted: no ping" reaches 2 "${other[$side]}"
  expect "the daemon that was not killed went away" running "${other[$side]}"
done

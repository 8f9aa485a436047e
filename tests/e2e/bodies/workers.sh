# shellcheck shell=bash
# The two ends have different numbers of workers.
start a --workers 3
start b --workers 1
expect "no ping" reaches 10 a
for side in a b; do
  expect "from $side" transfer "$side" "${overlay4[${other[$side]}]}" 8000000
done

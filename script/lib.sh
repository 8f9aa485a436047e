# shellcheck shell=bash
# What the scripts share. Sourced, never run; the caller has set -euo pipefail.
#
#   IPOVERBS_BUILD   folder of the builds; default: build/ of the checkout
#   IPOVERBS_CACHE   folder of the guest's kernel; default: /var/cache/ipoverbs, or ~/.cache/ipoverbs
#                    for an ordinary user

project=$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")
build_root=${IPOVERBS_BUILD:-$project/build}

# Progress goes to standard error: standard output belongs to results.
say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# The user's own mistake: exit status 2.
usage_error() {
  say "$*"
  exit 2
}

# "FILE's own comment is its help": prints the comment block that opens the running script.
print_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    die "needs root for: $* (run it as root once, or install sudo)"
  fi
}

# Thins out ninja's status lines to one in ten seconds, for a log; compilers' messages pass.
build_progress() {
  local line next=0
  while IFS= read -r line || [[ -n $line ]]; do
    if [[ ! $line =~ ^\[[0-9]+/[0-9]+\]\  ]]; then
      printf '%s\n' "$line"
    elif ((SECONDS >= next)); then
      printf '%s\n' "$line"
      next=$((SECONDS + 10))
    fi
  done
}

# configure PRESET: where that was never done, or the presets have changed since.
configure() {
  local folder=$build_root/$1
  [[ ! -e $folder/build.ninja || $project/CMakePresets.json -nt $folder/build.ninja ]] || return 0
  say "configuring $1"
  mkdir -p "$folder"
  if ! (cd "$project" && cmake --preset "$1" -B "$folder") > "$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    die "cmake could not configure $1"
  fi
  touch "$folder/build.ninja"
}

# build PRESET [TARGET...]: configures, then builds. Two builds of one preset wait for each other.
build() {
  local preset=$1 folder=$build_root/$1
  shift
  mkdir -p "$folder"
  (
    flock 9
    configure "$preset"
    say "building $preset"
    if [[ -t 2 ]]; then
      cmake --build "$folder" ${1:+--target "$@"} >&2
    else
      cmake --build "$folder" ${1:+--target "$@"} | build_progress >&2
    fi
  ) 9> "$folder/.lock"
}

# The folder for what is dear to fetch and can be fetched again.
cache_root() {
  if [[ -n ${IPOVERBS_CACHE:-} ]]; then
    echo "$IPOVERBS_CACHE"
  elif [[ $EUID -eq 0 ]]; then
    echo /var/cache/ipoverbs
  else
    echo "${XDG_CACHE_HOME:-$HOME/.cache}/ipoverbs"
  fi
}

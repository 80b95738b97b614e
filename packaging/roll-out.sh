#!/bin/sh
# Installs a version on one node after the other: roll-out.sh VERSION HOST...
# Run `cellkeep migrate` of the new version first (docs/upgrading.md). Needs the database settings here, for `cellkeep
# nodes`. Stops at the first host that is not ready in time; the remaining ones keep the previous version.
#   INSTALL  the command to run for each host, by default over ssh; it may use `$host` and `$version`
#   TIMEOUT  seconds to wait for a node, by default 120
set -eu
version=$1
shift
install=${INSTALL:-'ssh "$host" "npm install --global cellkeep@$version && systemctl restart cellkeep"'}
done=0
for host in "$@"; do
  echo "$host: installing $version"
  eval "$install"
  done=$((done + 1))
  if ! cellkeep nodes wait --ready "$done" --version "$version" --timeout "${TIMEOUT:-120}"; then
    echo "$host is not ready; the roll-out stops here, with $((done - 1)) of $# nodes on $version" >&2
    exit 1
  fi
done
cellkeep nodes wait --ready "$#" --version "$version" --timeout "${TIMEOUT:-120}"
echo "All $# nodes run $version"

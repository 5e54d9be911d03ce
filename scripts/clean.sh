#!/usr/bin/env bash
# make clean: removes build results from the checkout and prints the path of the cache, which other
# checkouts share.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
rm -rf pkg
[ ! -L node_modules ] || rm node_modules
say "the cache stays; to build everything again: rm -r $OCTET_CACHE"

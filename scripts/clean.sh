#!/usr/bin/env bash
# make clean: removes what was built in the checkout; says where the cache is, which other checkouts share.
. "$(dirname "$0")/environment.sh"
cd "$checkout"
rm -rf pkg
[ ! -L node_modules ] || rm node_modules
say "the cache stays; to build everything again: rm -r $OCTET_CACHE"

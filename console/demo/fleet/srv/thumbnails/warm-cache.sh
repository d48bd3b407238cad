#!/bin/sh
# Fills the tile cache once after a boot.
mkdir -p /tmp/thumbnails-cache

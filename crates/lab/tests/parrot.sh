#!/bin/sh
# A helper that says what it is told (crates/lab/src/helper.rs): whatever its arguments are.
exec cat

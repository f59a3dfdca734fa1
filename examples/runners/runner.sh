#!/bin/sh
# A runner in shell: put your program in place of `agent`. What it prints is the output; exit with 0 only if there is one.
#
#     kaizen run NAME --stage baseline --plain -- sh examples/runners/runner.sh {input_file}
set -eu

agent() {
    printf 'You said: '
    cat
}

agent < "${1:-/dev/stdin}"

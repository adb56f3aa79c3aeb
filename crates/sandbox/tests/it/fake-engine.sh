#!/bin/bash
here=${0%/*}
# Written at once: calls may run at the same time.
call=$(printf '%q ' "$@")
echo "$call" >>"$here/log"
echo "${DOCKER_HOST-none} ${VISIBLE-none}" >>"$here/env"
case "$1" in
  version | info) echo 27.1 ;;
  image) [ "${!#}" != missing ] || { echo "No such image: missing"; exit 1; } ;;
  ps) cat "$here/left" 2>/dev/null ;;
  exec)
    shift
    while :; do
      case "$1" in
        --interactive) shift ;;
        --workdir) cd "$2" || exit 126; shift 2 ;;
        --env) case "$2" in *=*) export "$2" ;; esac; shift 2 ;;
        *) break ;;
      esac
    done
    shift
    exec "$@" ;;
esac

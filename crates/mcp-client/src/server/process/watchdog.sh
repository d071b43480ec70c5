# Terminates process groups after their owner has exited. Reads the lines `watch GROUP` and
# `unwatch GROUP` from standard input. At the end of the input, waits for the remaining groups, then
# sends SIGTERM and SIGKILL to them.
trap '' HUP INT TERM
groups=
while read -r command group; do
  case $command in
    watch) groups="$groups $group" ;;
    unwatch)
      rest=
      for one in $groups; do
        [ "$one" = "$group" ] || rest="$rest $one"
      done
      groups=$rest
      ;;
  esac
done

# Sends a signal to all groups. Fails if no group exists.
signal() {
  none=1
  for one in $groups; do
    kill -s "$1" -- "-$one" 2>/dev/null && none=0
  done
  return $none
}

# Waits up to one second until all groups have exited. If `sleep` does not support fractions, sleeps
# one second.
wait_for_end() {
  left=10
  while [ $left -gt 0 ] && signal 0; do
    sleep 0.1 2>/dev/null || { sleep 1; left=1; }
    left=$((left - 1))
  done
}

wait_for_end
signal TERM || exit 0
wait_for_end
signal KILL

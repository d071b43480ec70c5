# Ends process groups whose owner is gone. Reads `watch GROUP` and `forget GROUP`, a line each, and at
# the end of its input asks the groups that are left to leave, then makes them.
trap '' HUP INT TERM
groups=
while read -r what group; do
  case $what in
    watch) groups="$groups $group" ;;
    forget)
      rest=
      for one in $groups; do
        [ "$one" = "$group" ] || rest="$rest $one"
      done
      groups=$rest
      ;;
  esac
done

# Fails if there was nobody to get it.
signal() {
  nobody=1
  for one in $groups; do
    kill -s "$1" -- "-$one" 2>/dev/null && nobody=0
  done
  return $nobody
}

# At most a second. A `sleep` that knows whole seconds only sleeps one.
patience() {
  left=10
  while [ $left -gt 0 ] && signal 0; do
    sleep 0.1 2>/dev/null || { sleep 1; left=1; }
    left=$((left - 1))
  done
}

patience
signal TERM || exit 0
patience
signal KILL

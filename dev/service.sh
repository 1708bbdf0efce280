# Manages one Java process per directory; dev/kafka and dev/registry source it.
# They set: here (this directory), self (their own name), dir, with_pid, discard.

die() { echo "dev/$self: $*" >&2; exit 1; }

# ---- the process: ours is the one whose command line names this directory

# The argument that marks our process. Set once dir is known.
mark_process() { mark=-Dsamestory.dir=$dir; }

running() {
  local pid
  pid=$(cat "$dir/pid" 2>/dev/null) && [ -n "$pid" ] || return 1
  tr '\0' '\n' 2>/dev/null <"/proc/$pid/cmdline" | grep -qxF -- "$mark" && echo "$pid"
}

signal() {
  local pid
  pid=$(running) || die "nothing is running in $dir"
  kill "-$1" "$pid"
}

# Waits up to $1 seconds until the process has ended.
gone_within() {
  local end=$((SECONDS + $1))
  while running >/dev/null; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.05
  done
}

# Ends the process at once, like a crash.
kill_now() {
  signal KILL
  gone_within 10 || die "the process in $dir survived SIGKILL"
}

stop() {
  if running >/dev/null; then
    # The process may be paused, or may have ended on its own meanwhile.
    (signal TERM && signal CONT) 2>/dev/null || true
    gone_within 20 || kill_now
  fi
  rm -f "$dir/pid"
}

# A free port outside the ephemeral range. Another process may still take it first.
free_port() {
  local port
  while :; do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}

# Ends everything in the directory; a script with more than one process overrides this.
end_all() { if running >/dev/null; then kill_now; fi; }

# ---- the watcher: stops the service when another process ends

# A separate process that outlives this one and its caller.
watch() {
  setsid bash "$here/$self" watch "$dir" --with-pid "$with_pid" $discard >/dev/null 2>&1 </dev/null 9>&- &
}

# The start time distinguishes a process from a later one with the same pid; a zombie counts as ended.
began() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" && $1 != "X" { print $20 }'; }

watch_loop() {
  exec 7>"$dir/watch.$with_pid"
  flock -n 7 || exit 0
  local first
  first=$(began "$with_pid")
  while [ -d "$dir" ] && [ -n "$first" ] && [ "$(began "$with_pid")" = "$first" ]; do sleep 0.3; done
  [ -d "$dir" ] || exit 0
  # Wait for a start in progress to finish.
  exec 9>"$dir/lock"
  flock 9
  end_all
  rm -f "$dir/pid" "$dir/watch.$with_pid"
  if [ -n "$discard" ]; then rm -rf "$dir"; fi
}

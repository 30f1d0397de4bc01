# shellcheck shell=bash
# Functions of the scripts that install things; to be sourced.

# as_root runs a command with root's rights, or fails.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo -n -- "$@"
  else
    return 126
  fi
}

# quietly shows the output of a command only when the command fails.
quietly() {
  local output
  output=$("$@" 2>&1) || {
    local status=$?
    printf '%s\n' "$output" >&2
    return "$status"
  }
}
